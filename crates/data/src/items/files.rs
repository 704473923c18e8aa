//! Files that are attached to items.
//!
//! Attaching is no change of the item: its version stays. A file that is deleted is no longer shown.

use super::model::NewAttachment;
use diesel::prelude::*;
use model::{
    Actor, Caller, Code, CollectionId, Error, FieldError, FileId, ItemId, JsonText, NewEvent, Result,
    Timestamp, WorkspaceId,
};
use operation::{Body, Created, Deleted, OptIn, OptInList, Path, State, operation};
use records::Author;
use records::activity::{self, Action, Changes, change};
use records::rows;
use records::rows::Editor;
use records::rows::ItemRow;
use records::shape::{self, Shapes};
use serde::Serialize;
use serde_json::{Value, json};
use store::schema::{files, item_files};
use store::{OptInPage, Read, Tx, each};
use utoipa::ToSchema;

/// The most files of an item.
const MOST: i64 = 100;

/// A file that is attached to an item.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ItemFile {
    /// The file.
    pub id: FileId,
    /// Always `item_file`.
    pub object: &'static str,
    /// The item.
    pub item_id: ItemId,
    /// The file's name.
    pub name: String,
    /// What it is, found by looking at its bytes.
    pub mime_type: String,
    /// Its size in bytes.
    pub size: i64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Who attached it.
    pub attached_by: Actor,
    /// When it was attached.
    pub attached_at: Timestamp,
}

#[derive(Debug, Queryable)]
struct Attached {
    id: FileId,
    name: String,
    mime_type: String,
    size: i64,
    sha256: String,
    created_by: JsonText,
    created_at: Timestamp,
}

impl Attached {
    fn file(self, item: ItemId) -> Result<ItemFile> {
        Ok(ItemFile {
            id: self.id,
            object: "item_file",
            item_id: item,
            name: self.name,
            mime_type: self.mime_type,
            size: self.size,
            sha256: self.sha256,
            attached_by: self.created_by.parse()?,
            attached_at: self.created_at,
        })
    }
}

/// Files attached to the item
///
/// Those that were uploaded last come first.
#[operation(get "/collections/{collectionId}/items/{itemId}/files", scope = "items:read", ceiling = 100)]
pub fn list_item_files(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<ItemFile>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let item = rows::live(read, &shape, item_id)?;
    let found = attached(read, &item, page.page())?;
    let found = found.into_iter().map(|file| file.file(item.id)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(found, |file| file.id.to_string()))
}

/// Attach a file
///
/// A file that is attached already is 409 `duplicate_value`. An item has at most 100 files.
#[operation(post "/collections/{collectionId}/items/{itemId}/files", scope = "items:write")]
pub fn attach_item_file(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(new): Body<NewAttachment>,
    shapes: State<Shapes>,
) -> Result<Created<ItemFile>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let item = rows::locked(tx, &editor.shape, item_id)?;
    rows::refuse_locked(&item)?;
    if live_files(tx, item.workspace_id, &[new.file_id])?.is_empty() {
        return Err(Error::not_found("file").param("file_id"));
    }
    let count: i64 =
        item_files::table.filter(item_files::item_id.eq(item.id)).count().get_result(tx.connection())?;
    if count >= MOST {
        return Err(Error::new(Code::LimitReached, format!("An item has at most {MOST} files.")));
    }
    let row = (
        item_files::item_id.eq(item.id),
        item_files::file_id.eq(new.file_id),
        item_files::workspace_id.eq(item.workspace_id),
        item_files::collection_id.eq(item.collection_id),
        item_files::created_by.eq(&editor.author.cause.actor),
        item_files::created_at.eq(tx.now()),
    );
    let added = each!(tx.connection(), |connection| diesel::insert_into(item_files::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    if added == 0 {
        return Err(Error::new(Code::DuplicateValue, "The file is attached to the item already.")
            .param("file_id")
            .with("details", json!({ "existing_id": new.file_id })));
    }
    let file = one(tx, &item, new.file_id)?.ok_or_else(|| Error::not_found("file"))?;
    tell(tx, &editor.author, &item, Action::Attached, &file, change(None, Some(&json!(file.id))))?;
    Ok(Created(file))
}

/// Detach a file
///
/// The file itself stays.
#[operation(delete "/collections/{collectionId}/items/{itemId}/files/{fileId}", scope = "items:write")]
pub fn detach_item_file(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Path(file_id): Path<FileId>,
    shapes: State<Shapes>,
) -> Result<Deleted<FileId>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let item = rows::locked(tx, &editor.shape, item_id)?;
    let file = one(tx, &item, file_id)?.ok_or_else(|| Error::not_found("file"))?;
    rows::refuse_locked(&item)?;
    diesel::delete(item_files::table.find((item.id, file_id))).execute(tx.connection())?;
    tell(tx, &editor.author, &item, Action::Detached, &file, change(Some(&json!(file.id)), None))?;
    Ok(Deleted::of("item_file", file_id))
}

/// Those of `ids` that are files of the workspace and can be read.
fn live_files(read: &mut Read, workspace: WorkspaceId, ids: &[FileId]) -> Result<Vec<FileId>> {
    Ok(files::table
        .filter(files::workspace_id.eq(workspace))
        .filter(files::id.eq_any(ids))
        .filter(files::status.eq("ready"))
        .filter(files::trashed_at.is_null())
        .select(files::id)
        .load(read.connection())?)
}

/// Refuses files that are not there to be used.
///
/// # Errors
/// `validation_error` that names each of them below `path`.
pub(crate) fn check_all(read: &mut Read, workspace: WorkspaceId, ids: &[FileId], path: &str) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found = live_files(read, workspace, ids)?;
    let missing = ids.iter().enumerate().filter(|(_, id)| !found.contains(id));
    let errors = missing
        .map(|(place, _)| FieldError::new(format!("{path}[{place}]"), "is not a file of this workspace"));
    Error::all_invalid(errors.collect()).map_or(Ok(()), Err)
}

const COLUMNS: (
    files::id,
    files::name,
    files::mime_type,
    files::size,
    files::sha256,
    item_files::created_by,
    item_files::created_at,
) = (
    files::id,
    files::name,
    files::mime_type,
    files::size,
    files::sha256,
    item_files::created_by,
    item_files::created_at,
);

fn attached(read: &mut Read, item: &ItemRow, page: &OptInPage) -> Result<Vec<Attached>> {
    let mut query = item_files::table
        .inner_join(files::table.on(files::id.eq(item_files::file_id)))
        .filter(item_files::item_id.eq(item.id))
        .filter(item_files::workspace_id.eq(item.workspace_id))
        .filter(files::trashed_at.is_null())
        .order(item_files::file_id.desc())
        .limit(page.fetch())
        .select(COLUMNS)
        .into_boxed();
    if let Some(after) = page.after::<FileId>()? {
        query = query.filter(item_files::file_id.lt(after));
    }
    Ok(query.load(read.connection())?)
}

fn one(read: &mut Read, item: &ItemRow, file: FileId) -> Result<Option<ItemFile>> {
    let found = item_files::table
        .inner_join(files::table.on(files::id.eq(item_files::file_id)))
        .filter(item_files::item_id.eq(item.id))
        .filter(item_files::file_id.eq(file))
        .filter(item_files::workspace_id.eq(item.workspace_id))
        .filter(files::trashed_at.is_null())
        .select(COLUMNS)
        .get_result::<Attached>(read.connection());
    found.optional()?.map(|file| file.file(item.id)).transpose()
}

fn tell(
    tx: &mut Tx,
    author: &Author,
    item: &ItemRow,
    action: Action,
    file: &ItemFile,
    changed: Value,
) -> Result<()> {
    let changes = Changes::from_iter([("file".to_owned(), changed)]);
    activity::record(tx, author, item.collection_id, Some(item.id), action, &changes)?;
    let kind = if matches!(action, Action::Attached) { "item.file.attached" } else { "item.file.detached" };
    let data = json!({ "file": file, "item_id": item.id, "collection_id": item.collection_id });
    tx.emit_untyped(item.workspace_id, &author.cause, NewEvent::new(kind, author.livemode, &data))?;
    Ok(())
}
