//! Many items in one request, which is one transaction: creating, changing, creating or changing, deleting.

mod call;
mod model;

use self::call::{Done, each_row, row_by_row};
use self::model::{
    BulkChange, BulkCreate, BulkDelete, BulkReport, BulkRow, BulkStatus, BulkUpdate, BulkUpsert, Rows,
};
use super::model::mode;
use ::model::{Caller, Code, CollectionId, Error, ItemId, Patch, Result};
use fields::Data;
use fields::value::Mode;
use operation::{ExpectedVersion, Json, Path, State, operation};
use records::links::{self, Grip, Grips};
use records::rows;
use records::rows::Change;
use records::rows::Editor;
use records::rows::ItemRow;
use records::rows::matching::{Found, Matcher, OnMatch};
use records::rows::values::{self, Missing};
use records::rows::write::{self, Draft};
use records::shape::Shapes;
use serde_json::json;
use store::Tx;

/// Create up to 1,000 items
#[operation(post "/collections/{collectionId}/items/bulk-create", scope = "items:write", body_mib = 16)]
pub fn bulk_create_items(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    body: Rows<BulkCreate>,
    shapes: State<Shapes>,
) -> Result<Json<BulkReport>> {
    let BulkCreate { mode: bulk_mode, typecast, rows } = &*body.0;
    let inputs = rows.iter().map(|row| &row.data);
    let editor = open(tx, caller, &shapes, collection_id, *typecast, inputs)?;
    call::alone_if_unique(tx, &editor, rows.iter().any(|row| row.external_key.is_some()))?;
    let mode = mode(*typecast);
    let merge = |row: &BulkRow| values::merge(&editor.shape, None, &row.data, Missing::Default, mode, "");
    links::hold(tx, editor.shape.workspace, |tx| {
        let mut grips = Grips::default();
        for row in rows.iter().filter(|row| editor.relates(&row.data, Missing::Default)) {
            if let Ok(data) = merge(row) {
                links::foresee(tx, &editor.writer(), None, &data, &mut grips)?;
            }
        }
        Ok(grips)
    })?;
    let report = each_row(tx, &editor, *bulk_mode, rows, |tx, _, row| {
        let data = merge(row)?;
        let draft = Draft { data, external_key: row.external_key.clone(), position: None };
        Ok((BulkStatus::Created, editor.writer().insert(tx, draft)?.id))
    })?;
    Ok(Json(report))
}

/// Change up to 1,000 items
///
/// The rows are done in order, so one may change what another has changed before.
#[operation(post "/collections/{collectionId}/items/bulk-update", scope = "items:write", body_mib = 16)]
pub fn bulk_update_items(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    body: Rows<BulkUpdate>,
    shapes: State<Shapes>,
) -> Result<Json<BulkReport>> {
    let BulkUpdate { mode: bulk_mode, typecast, rows } = &*body.0;
    let inputs = rows.iter().map(|row| &row.data);
    let editor = open(tx, caller, &shapes, collection_id, *typecast, inputs)?;
    call::alone_if_unique(tx, &editor, rows.iter().any(|row| row.external_key != Patch::Keep))?;
    let mode = mode(*typecast);
    links::hold(tx, editor.shape.workspace, |tx| {
        let mut grips = Grips::default();
        for row in rows {
            if editor.relates(&row.data, Missing::Keep) {
                change_of(row, mode).foresee(tx, &editor, row.id, &mut grips)?;
            } else {
                grips.add([row.id], Grip::Changing);
            }
        }
        Ok(grips)
    })?;
    let report = each_row(tx, &editor, *bulk_mode, rows, |tx, _, row| {
        let item = rows::live(tx, &editor.shape, row.id).map_err(|error| error.param("id"))?;
        done(change_of(row, mode).make(tx, &editor, item)?)
    })?;
    Ok(Json(report))
}

/// Create or change up to 1,000 items by a key field
///
/// A row is for the item with the same values in the fields of `match_on`. Where there is none it becomes a new item,
/// where there are several it is a mistake (`ambiguous_match`). A row that changes nothing is `unchanged`: its item keeps
/// its version, and no event tells of it.
#[operation(post "/collections/{collectionId}/items/bulk-upsert", scope = "items:write", body_mib = 16)]
pub fn bulk_upsert_items(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    body: Rows<BulkUpsert>,
    shapes: State<Shapes>,
) -> Result<Json<BulkReport>> {
    let BulkUpsert { mode: bulk_mode, typecast, match_on, on_match, rows } = &*body.0;
    let inputs = rows.iter().map(|row| &row.data);
    let editor = open(tx, caller, &shapes, collection_id, *typecast, inputs)?;
    editor.alone(tx, call::IN_BULK)?;
    let mut upsert = Upsert {
        editor: &editor,
        matcher: Matcher::new(&editor.shape, match_on)?,
        on_match: *on_match,
        mode: mode(*typecast),
    };
    if rows.iter().any(|row| editor.relates(&row.data, Missing::Default)) {
        links::hold(tx, editor.shape.workspace, |tx| upsert.foresee(tx, rows))?;
    }
    let report = row_by_row(tx, &editor, *bulk_mode, rows, |tx, _, row| {
        upsert.put(tx, &row.data, row.external_key.as_deref())
    })?;
    Ok(Json(report))
}

/// Delete up to 1,000 items
///
/// They are moved to the trash; with `permanent` they are deleted for good, also out of the trash.
#[operation(post "/collections/{collectionId}/items/bulk-delete", scope = "items:write", body_mib = 16)]
pub fn bulk_delete_items(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    body: Rows<BulkDelete>,
    shapes: State<Shapes>,
) -> Result<Json<BulkReport>> {
    let BulkDelete { mode, permanent, ids } = &*body.0;
    let editor = open(tx, caller, &shapes, collection_id, false, std::iter::empty())?;
    if *permanent {
        links::hold_purged(tx, &shapes.0, editor.shape.workspace, ids)?;
    } else {
        links::hold_leaving(tx, &shapes.0, editor.shape.workspace, ids)?;
    }
    let report = each_row(tx, &editor, *mode, ids, |tx, index, id| {
        let row = rows::find(tx, &editor.shape, *id)?
            .filter(|row| *permanent || row.trashed_at.is_none())
            .ok_or_else(|| Error::not_found("item").param(format!("ids[{index}]")))?;
        if *permanent {
            editor.writer().destroy(tx, &row)?;
        } else {
            editor.writer().trash(tx, &row)?;
        }
        Ok((BulkStatus::Deleted, *id))
    })?;
    Ok(Json(report))
}

/// Opens a collection for one request, whose changes have their `operation_id` in common. It is the request's own id
/// under another name, so that a transaction that is run again has the same.
fn open<'a, 'd>(
    tx: &mut Tx,
    caller: &Caller,
    shapes: &'a State<Shapes>,
    collection: CollectionId,
    typecast: bool,
    inputs: impl Iterator<Item = &'d Data> + Clone,
) -> Result<Editor<'a>> {
    let mut editor = Editor::open_for(tx, caller, &shapes.0, collection, typecast, inputs)?;
    let request = caller.request.as_str();
    editor.author.operation = Some(format!("op_{}", request.strip_prefix("req_").unwrap_or(request)));
    Ok(editor)
}

fn change_of(row: &BulkChange, mode: Mode) -> Change<'_> {
    Change {
        data: &row.data,
        missing: Missing::Keep,
        mode,
        external_key: row.external_key.clone(),
        expected: ExpectedVersion::of_body(row.version),
        path: "",
    }
}

fn done(written: write::Written) -> Result<Done> {
    let status = if written.changed { BulkStatus::Updated } else { BulkStatus::Unchanged };
    Ok((status, written.row.id))
}

/// Rows that are matched with items.
struct Upsert<'a> {
    editor: &'a Editor<'a>,
    matcher: Matcher,
    on_match: OnMatch,
    mode: Mode,
}

impl Upsert<'_> {
    /// The items that the rows will change, as far as can be told before, with those at the other ends of their links.
    fn foresee(&mut self, tx: &mut Tx, rows: &[BulkRow]) -> Result<Grips> {
        let (editor, mut grips) = (self.editor, Grips::default());
        for row in rows {
            let external_key = row.external_key.as_deref();
            // What is wrong with a row is told when it is done.
            let Ok(wanted) = self.matcher.wanted(&editor.shape, &row.data, external_key, self.mode) else {
                continue;
            };
            let found = match self.matcher.find(tx, &editor.shape, &wanted) {
                Err(error) if error.code() == Code::InternalError => return Err(error),
                Err(_) => continue,
                Ok(found) => found,
            };
            match found {
                Found::One(id) if self.on_match == OnMatch::Update => {
                    self.change(&row.data, external_key).foresee(tx, editor, id, &mut grips)?;
                }
                Found::None => {
                    if let Ok(data) = self.fresh(&row.data) {
                        links::foresee(tx, &editor.writer(), None, &data, &mut grips)?;
                    }
                }
                Found::One(_) | Found::Several(_) => {}
            }
        }
        Ok(grips)
    }

    /// Does one row.
    fn put(&mut self, tx: &mut Tx, given: &Data, external_key: Option<&str>) -> Result<Done> {
        let wanted = self.matcher.wanted(&self.editor.shape, given, external_key, self.mode)?;
        let found = match self.matcher.find(tx, &self.editor.shape, &wanted)? {
            Found::One(id) => id,
            Found::Several(ids) => return Err(ambiguous(&ids)),
            Found::None => match tx.savepoint(|tx| self.create(tx, given, external_key)) {
                Ok(row) => {
                    self.matcher.note(&self.editor.shape, &row)?;
                    return Ok((BulkStatus::Created, row.id));
                }
                // Somebody else created it since we looked.
                Err(error) if error.code() == Code::DuplicateValue => {
                    match self.matcher.find(tx, &self.editor.shape, &wanted)? {
                        Found::One(id) => id,
                        _ => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            },
        };
        match self.on_match {
            OnMatch::Skip => Ok((BulkStatus::Skipped, found)),
            OnMatch::Error => Err(Error::new(Code::DuplicateValue, "There is such an item already.")
                .with("details", json!({ "existing_id": found }))),
            OnMatch::Update => self.update(tx, found, given, external_key),
        }
    }

    fn create(&self, tx: &mut Tx, given: &Data, external_key: Option<&str>) -> Result<ItemRow> {
        let data = self.fresh(given)?;
        let draft = Draft { data, external_key: external_key.map(str::to_owned), position: None };
        self.editor.writer().insert(tx, draft)
    }

    /// The values of a new item.
    fn fresh(&self, given: &Data) -> Result<Data> {
        values::merge(&self.editor.shape, None, given, Missing::Default, self.mode, "")
    }

    fn update(&self, tx: &mut Tx, id: ItemId, given: &Data, external_key: Option<&str>) -> Result<Done> {
        let item = rows::locked(tx, &self.editor.shape, id)?;
        done(self.change(given, external_key).make(tx, self.editor, item)?)
    }

    fn change<'c>(&self, data: &'c Data, external_key: Option<&str>) -> Change<'c> {
        Change {
            data,
            missing: Missing::Keep,
            mode: self.mode,
            external_key: external_key.map_or(Patch::Keep, |key| Patch::Set(key.to_owned())),
            expected: ExpectedVersion::default(),
            path: "",
        }
    }
}

fn ambiguous(ids: &[ItemId]) -> Error {
    Error::new(Code::AmbiguousMatch, "Several items have these values.")
        .with("details", json!({ "existing_ids": ids }))
}
