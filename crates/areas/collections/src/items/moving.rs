//! The operation that moves an item to another collection.
//!
//! Values go to the fields with the same keys, or to those that a mapping names. Comments, files, free links, the
//! external key and the activity log move along. Relation fields that refer to the item lose it, because they can
//! only hold items of the collection that it leaves.

use super::duplicate::written_values;
use super::model::ItemMove;
use diesel::prelude::*;
use fields::Data;
use fields::Problem;
use fields::value::Mode;
use fields::{Field, FieldType};
use model::{Caller, Code, CollectionId, Error, FieldError, ItemId, Result};
use operation::{Body, IfMatch, Json, Path, State, operation};
use records::activity::{self, Action, Changes, change};
use records::links::table::ITEM;
use records::links::{self, LockSet};
use records::print::Printer;
use records::rows;
use records::rows::Editor;
use records::rows::ItemRow;
use records::rows::values::{self, Missing};
use records::rows::write::Draft;
use records::schema::item_links;
use records::shape::{Shape, Shapes};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::LockMode;
use store::{Read, Tx};
use utoipa::ToSchema;

/// The result of a move, or what it would be.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "collection_id": 2, "dry_run": true, "kept": { "name": "name" }, "detached": 0 }))]
pub struct ItemMoveReport {
    /// Always `item_move`.
    pub object: &'static str,
    /// The id of the item, which does not change.
    pub item_id: ItemId,
    /// The id of the destination collection.
    pub collection_id: CollectionId,
    /// Whether this is a dry run and nothing was moved.
    pub dry_run: bool,
    /// The fields whose values are kept, with their destination fields.
    pub kept: BTreeMap<String, String>,
    /// The values that are lost.
    pub lost: Vec<LostValue>,
    /// How many items lose their relation to the item.
    pub detached: usize,
    /// The item after the move. `null` for a dry run.
    #[schema(value_type = Option<super::item::Item>)]
    pub item: Option<Value>,
}

/// A value that is lost in a move.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "field": "price", "value": 39.9, "reason": "no_field" }))]
pub struct LostValue {
    /// The key of the field.
    pub field: String,
    /// The value.
    pub value: Value,
    /// The reason: `left_out` (dropped by the mapping), `no_field`, `read_only_field`, `other_target`, or why the value
    /// is not valid, such as `unknown_option`.
    pub reason: &'static str,
}

/// Move an item to another collection
///
/// Values are stored in the fields with the same keys, or as `mapping` states. A move that would lose other values is
/// rejected with 409 `invalid_state`, which lists them, unless `force` is set. With `dry_run`, nothing is moved and the
/// report shows what would happen.
#[operation(post "/collections/{collectionId}/items/{itemId}/move", scope = "items:write")]
pub fn move_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(wanted): Body<ItemMove>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Json<ItemMoveReport>> {
    let (from, to) = open_both(tx, caller, &shapes.0, collection_id, wanted.collection_id)?;
    links::hold(tx, from.shape.workspace, |tx| {
        let mut locks = LockSet::default();
        locks.add(links::locks::all_ends(tx, from.shape.workspace, &[item_id])?, LockMode::Exclusive);
        Ok(locks)
    })?;
    let row = rows::locked(tx, &from.shape, item_id)?;
    rows::refuse_locked(&row)?;
    rows::expect_version(&from.shape, &row, if_match.into())?;
    let plan = Plan::of(&from.shape, &to.shape, &written_values(tx, &from.shape, &row)?, &wanted.mapping)?;
    let pointing = pointing_to(tx, &row)?;
    let mut report = ItemMoveReport {
        object: "item_move",
        item_id,
        collection_id: to.shape.collection,
        dry_run: wanted.dry_run,
        kept: plan.kept,
        detached: pointing.len(),
        lost: plan.lost,
        item: None,
    };
    let data = values::merge(&to.shape, None, &plan.data, Missing::Default, Mode::Strict, "")?;
    if wanted.dry_run {
        return Ok(Json(report));
    }
    let loses = report.detached > 0 || report.lost.iter().any(|lost| lost.reason != LEFT_OUT);
    if loses && !wanted.force {
        let details = json!({ "state": "lossy", "lost": report.lost, "detached": report.detached });
        let message = "The move would lose values. Send `force` to move the item anyway.";
        return Err(Error::new(Code::InvalidState, message).with("details", details));
    }
    let row = carry(tx, &from, &to, &row, data, pointing)?;
    report.item = Some(Printer::whole(&to.shape).json(&row)?);
    Ok(Json(report))
}

const LEFT_OUT: &str = "left_out";

/// Opens both collections, the one with the lower id first, so that opposite moves cannot deadlock.
fn open_both<'a>(
    tx: &mut Tx,
    caller: &Caller,
    shapes: &'a Shapes,
    from: CollectionId,
    to: CollectionId,
) -> Result<(Editor<'a>, Editor<'a>)> {
    if from == to {
        return Err(Error::invalid("collection_id", "must be another collection"));
    }
    let target =
        |error: Error| if error.code() == Code::NotFound { error.param("collection_id") } else { error };
    if from < to {
        let from = Editor::open(tx, caller, shapes, from)?;
        return Ok((from, Editor::open(tx, caller, shapes, to).map_err(target)?));
    }
    let to = Editor::open(tx, caller, shapes, to).map_err(target)?;
    Ok((Editor::open(tx, caller, shapes, from)?, to))
}

/// The values after the move, and the report on them.
#[derive(Default)]
struct Plan {
    data: Data,
    kept: BTreeMap<String, String>,
    lost: Vec<LostValue>,
}

impl Plan {
    fn of(from: &Shape, to: &Shape, data: &Data, mapping: &BTreeMap<String, Option<String>>) -> Result<Self> {
        let mut errors = Vec::new();
        for (source, target) in mapping {
            let param = format!("mapping.{source}");
            let target = target.as_deref();
            if from.field(source).is_none() {
                errors.push(FieldError::new(param, "is not a field of the item's collection"));
            } else if target.is_some_and(|target| to.field(target).is_none()) {
                errors.push(FieldError::new(param, "must be a field of the other collection"));
            }
        }
        if let Some(error) = Error::all_invalid(errors) {
            return Err(error);
        }
        let mut plan = Self::default();
        for field in &from.fields {
            let Some(value) = data.get(&field.key) else { continue };
            match mapping.get(&field.key) {
                Some(None) => plan.lose(field, value, LEFT_OUT),
                Some(Some(target)) => plan.put(field, value, to.field(target)),
                None => plan.put(field, value, to.field(&field.key)),
            }
        }
        Ok(plan)
    }

    fn lose(&mut self, field: &Field, value: &Value, reason: &'static str) {
        self.lost.push(LostValue { field: field.key.clone(), value: value.clone(), reason });
    }

    fn put(&mut self, field: &Field, value: &Value, target: Option<&Field>) {
        let Some(target) = target else { return self.lose(field, value, "no_field") };
        let taken = self.data.contains_key(&target.key);
        match fitted(field, value, target) {
            _ if taken => self.lose(field, value, "field_taken"),
            Ok(Some(fitted)) => {
                self.data.insert(target.key.clone(), fitted);
                self.kept.insert(field.key.clone(), target.key.clone());
            }
            Ok(None) => {}
            Err(problem) => self.lose(field, value, problem.code),
        }
    }
}

/// Converts a value to the type of another field: unchanged if it fits, or else parsed as text.
fn fitted(field: &Field, value: &Value, target: &Field) -> Result<Option<Value>, Problem> {
    let is_reference = field.kind.is_reference() || target.kind.is_reference();
    let other_target = field.options.target_collection_id != target.options.target_collection_id;
    if is_reference && (field.kind != target.kind || other_target) {
        return Err(Problem::new("other_target", "refers to another collection"));
    }
    if let Ok(value) = values::checked(target, value, None, Mode::Strict) {
        return Ok(value);
    }
    // Convert a choice by its label, which can be a choice or a text in the target field.
    let label =
        value.as_str().and_then(|key| field.options.choice(key)).map(|(_, choice)| choice.label.as_str());
    let value = label.filter(|_| field.kind == FieldType::Select).map_or_else(|| value.clone(), Value::from);
    values::checked(target, &value, None, Mode::Typecast)
}

/// Returns the items whose relation fields refer to an item. The reverse field of a relation counts as well.
fn pointing_to(read: &mut Read, row: &ItemRow) -> Result<Vec<(CollectionId, ItemId)>> {
    Ok(item_links::table
        .filter(item_links::to_kind.eq(ITEM))
        .filter(item_links::to_id.eq(row.id.to_string()))
        .filter(item_links::workspace_id.eq(row.workspace_id))
        .filter(item_links::field_id.ne(0))
        .filter(item_links::item_id.ne(row.id))
        .select((item_links::collection_id, item_links::item_id))
        .distinct()
        .load(read.connection())?)
}

/// Moves a locked item.
fn carry(
    tx: &mut Tx,
    from: &Editor<'_>,
    to: &Editor<'_>,
    old: &ItemRow,
    data: Data,
    pointing: Vec<(CollectionId, ItemId)>,
) -> Result<ItemRow> {
    let writer = from.writer();
    writer.unindex(tx, old)?;
    unlink(tx, old)?;
    let changed = Changes::from_iter([(
        "collection_id".to_owned(),
        change(Some(&json!(old.collection_id)), Some(&json!(to.shape.collection))),
    )]);
    let draft = Draft { data, external_key: old.external_key.clone(), position: None };
    let row = to.writer().arrive(tx, old, draft, &changed)?;
    follow(tx, &row)?;
    activity::record(tx, &from.author, old.collection_id, Some(old.id), Action::Moved, &changed)?;
    writer.renew_all(tx, pointing, Action::Updated)?;
    rows::live(tx, &to.shape, row.id)
}

/// Deletes the links of relation fields at both ends.
fn unlink(tx: &mut Tx, row: &ItemRow) -> Result<()> {
    let of_it = item_links::table.filter(item_links::item_id.eq(row.id)).filter(item_links::field_id.ne(0));
    diesel::delete(of_it).execute(tx.connection())?;
    let to_it = item_links::table
        .filter(item_links::to_kind.eq(ITEM))
        .filter(item_links::to_id.eq(row.id.to_string()))
        .filter(item_links::workspace_id.eq(row.workspace_id))
        .filter(item_links::field_id.ne(0));
    diesel::delete(to_it).execute(tx.connection())?;
    Ok(())
}

/// Moves comments, files and free links to the new collection.
fn follow(tx: &mut Tx, row: &ItemRow) -> Result<()> {
    use records::schema::{item_comments, item_files};
    let home = row.collection_id;
    diesel::update(item_comments::table.filter(item_comments::item_id.eq(row.id)))
        .set(item_comments::collection_id.eq(home))
        .execute(tx.connection())?;
    diesel::update(item_files::table.filter(item_files::item_id.eq(row.id)))
        .set(item_files::collection_id.eq(home))
        .execute(tx.connection())?;
    diesel::update(item_links::table.filter(item_links::item_id.eq(row.id)))
        .set(item_links::collection_id.eq(home))
        .execute(tx.connection())?;
    let to_it = item_links::table
        .filter(item_links::to_kind.eq(ITEM))
        .filter(item_links::to_id.eq(row.id.to_string()))
        .filter(item_links::workspace_id.eq(row.workspace_id));
    diesel::update(to_it).set(item_links::to_collection_id.eq(home)).execute(tx.connection())?;
    Ok(())
}
