//! Files that are attached to items.
//!
//! Attaching a file does not change the version of the item. Deleted files are not shown.

use super::events::{FileData, FileEvent};
use super::model::{ItemFile, NewAttachment};
use diesel::prelude::*;
use files::FileRow;
use model::{
    Caller, Code, CollectionId, Error, FieldError, FileId, ItemId, JsonText, Result, Timestamp, WorkspaceId,
};
use operation::{Body, Created, Deleted, OptIn, OptInList, Path, State, operation};
use records::Author;
use records::activity::{self, Action, Changes, change};
use records::rows;
use records::rows::Editor;
use records::rows::ItemRow;
use records::schema::item_files;
use records::shape::{self, Shapes};
use serde_json::{Value, json};
use std::collections::HashMap;
use store::{Read, Tx, each};

/// The most files of an item.
const MOST: i64 = 100;

/// Files attached to the item
///
/// Lists the files attached to the item, most recently attached first.
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
    let after = page.page().after::<FileId>()?;
    let most = usize::try_from(page.page().fetch()).unwrap_or(usize::MAX);
    let found = attached(read, &item)?;
    let found = found.into_iter().filter(|file| after.is_none_or(|after| file.id < after)).take(most);
    Ok(page.answer(found.collect(), |file| file.id.to_string()))
}

/// Attach a file
///
/// Attaches an uploaded file to the item. A file that is already attached is a 409 `duplicate_value`. An item can have
/// up to 100 files.
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
    if usable(tx, item.workspace_id, &[new.file_id])?.is_empty() {
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
        return Err(Error::duplicate("file_id", "The file is already attached to the item.", new.file_id));
    }
    let file = one(tx, &item, new.file_id)?.ok_or_else(|| Error::not_found("file"))?;
    publish(tx, &editor.author, &item, Action::Attached, &file, change(None, Some(&json!(file.id))))?;
    Ok(Created(file))
}

/// Detach a file
///
/// Removes the file from the item. The file itself is kept.
#[operation(delete "/collections/{collectionId}/items/{itemId}/files/{fileId}", scope = "items:write")]
pub fn detach_item_file(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Path(file_id): Path<FileId>,
    shapes: State<Shapes>,
) -> Result<Deleted<ItemFile>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let item = rows::locked(tx, &editor.shape, item_id)?;
    let file = one(tx, &item, file_id)?.ok_or_else(|| Error::not_found("file"))?;
    rows::refuse_locked(&item)?;
    diesel::delete(item_files::table.find((item.id, file_id))).execute(tx.connection())?;
    publish(tx, &editor.author, &item, Action::Detached, &file, change(Some(&json!(file.id)), None))?;
    Ok(Deleted::of("item_file", file_id))
}

/// Returns those of `ids` that are readable files of the workspace, locked against deletion.
fn usable(tx: &mut Tx, workspace: WorkspaceId, ids: &[FileId]) -> Result<Vec<FileId>> {
    Ok(files::held(tx, workspace, ids)?.into_iter().map(|file| file.id).collect())
}

/// Checks that files exist and can be used.
///
/// # Errors
/// `validation_error` for each missing file, at its index below `path`.
pub(crate) fn check_all(tx: &mut Tx, workspace: WorkspaceId, ids: &[FileId], path: &str) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found = usable(tx, workspace, ids)?;
    let missing = ids.iter().enumerate().filter(|(_, id)| !found.contains(id));
    let errors = missing
        .map(|(place, _)| FieldError::new(format!("{path}[{place}]"), "is not a file of this workspace"));
    Error::all_invalid(errors.collect()).map_or(Ok(()), Err)
}

/// Returns the files of an item, the last uploaded first. There are at most 100, so they are read without paging.
fn attached(read: &mut Read, item: &ItemRow) -> Result<Vec<ItemFile>> {
    let rows: Vec<(FileId, JsonText, Timestamp)> = item_files::table
        .filter(item_files::item_id.eq(item.id))
        .filter(item_files::workspace_id.eq(item.workspace_id))
        .order(item_files::file_id.desc())
        .select((item_files::file_id, item_files::created_by, item_files::created_at))
        .load(read.connection())?;
    let ids: Vec<FileId> = rows.iter().map(|(id, ..)| *id).collect();
    let mut files: HashMap<FileId, FileRow> =
        files::among(read, item.workspace_id, &ids)?.into_iter().map(|file| (file.id, file)).collect();
    let mut attached = Vec::with_capacity(rows.len());
    for (id, attached_by, attached_at) in rows {
        let Some(file) = files.remove(&id) else { continue };
        attached.push(ItemFile {
            id,
            object: "item_file",
            item_id: item.id,
            name: file.name,
            mime_type: file.mime_type,
            size: file.size,
            sha256: file.sha256,
            attached_by: attached_by.parse()?,
            attached_at,
        });
    }
    Ok(attached)
}

fn one(read: &mut Read, item: &ItemRow, file: FileId) -> Result<Option<ItemFile>> {
    Ok(attached(read, item)?.into_iter().find(|attached| attached.id == file))
}

/// Records the activity entry and the event of an attached or detached file.
fn publish(
    tx: &mut Tx,
    author: &Author,
    item: &ItemRow,
    action: Action,
    file: &ItemFile,
    changed: Value,
) -> Result<()> {
    let changes = Changes::from_iter([("file".to_owned(), changed)]);
    activity::record(tx, author, item.collection_id, Some(item.id), action, &changes)?;
    let data = FileData { file, item_id: item.id, collection_id: item.collection_id };
    let event = match action {
        Action::Attached => FileEvent::Attached(data),
        _ => FileEvent::Detached(data),
    };
    tx.emit(item.workspace_id, &author.cause, author.livemode, &event)?;
    Ok(())
}
