//! The operations on existing files.

use super::events::{Change, publish};
use super::model::{DeleteOptions, FilePatch, MediaFilter};
use files::{Chosen, File, Files};
use model::{Caller, Code, Error, FileId, JsonText, Result};
use operation::{
    Body, Cx, Deleted, ExpectedVersion, IfMatch, Json, OffsetList, OffsetPage, Path, Query, State, With,
    operation,
};
use ports::{FileUse, FileUses};
use serde_json::json;
use store::{Read, Tx};

/// The maximum number of references to a file in a response.
const MOST_USES: i64 = 100;

/// The media library
///
/// Lists the files of the workspace, newest first, with filters for kind, media type, folder, tag, name and time. Files
/// in the trash are left out unless `trashed=true` is sent.
#[operation(get "/media", scope = "files:read")]
pub(super) fn list_media(
    read: &mut Read,
    caller: &Caller,
    Query(filter): Query<MediaFilter>,
    page: OffsetPage,
    files: State<Files>,
) -> Result<OffsetList<File>> {
    let (rows, total) = files::list(read, caller.workspace_id(), &Chosen::from(filter), page)?;
    let now = read.now();
    let data = rows.iter().map(|row| files.0.show(row, now)).collect::<Result<_>>()?;
    Ok(OffsetList::of(page, data, total))
}

/// One file with its permanent and signed links
///
/// Returns the file with the objects that refer to it. `url` is permanent; `signed_url` works for seven days.
#[operation(get "/files/{fileId}", scope = "files:read")]
pub(super) fn get_file(
    read: &mut Read,
    caller: &Caller,
    Path(file_id): Path<FileId>,
    files: State<Files>,
    uses: State<FileUses>,
) -> Result<With<Json<File>>> {
    let row = files::find(read, caller.workspace_id(), file_id)?
        .filter(|row| row.status == files::FileStatus::Ready)
        .ok_or_else(|| Error::not_found("file"))?;
    let mut file = files.0.show(&row, read.now())?;
    file.attached_to = Some(uses.0.of(read, row.workspace_id, row.id, MOST_USES)?);
    Ok(With::etag(row.version, Json(file)))
}

/// Rename or describe a file
///
/// Changes the name, folder, tags or metadata and returns the file. The content never changes. `trashed: false` restores
/// a deleted file.
#[operation(patch "/files/{fileId}", scope = "files:write")]
pub(super) fn update_file(
    tx: &mut Tx,
    caller: &Caller,
    Path(file_id): Path<FileId>,
    if_match: IfMatch,
    Body(mut patch): Body<FilePatch>,
    files: State<Files>,
) -> Result<With<Json<File>>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let mut row = files::locked(tx, caller.workspace_id(), file_id)?;
    expected.check(row.version)?;
    if patch.trashed == Some(true) {
        return Err(Error::invalid("trashed", "must be false; delete the file to move it to the trash"));
    }
    if row.trashed_at.is_some() && patch.trashed.is_none() {
        let message = "The file is in the trash. Restore it with `trashed: false`.";
        return Err(Error::new(Code::InvalidState, message).with("details", json!({ "state": "trashed" })));
    }
    let before = row.clone();
    row.trashed_at = None;
    if let Some(name) = &patch.name {
        row.name = files::safe_name(name);
    }
    if let Some(tags) = patch.take_tags() {
        row.tags = JsonText::of(&tags);
    }
    if let Some(metadata) = &patch.metadata {
        row.metadata = JsonText::of(metadata);
    }
    patch.folder.apply(&mut row.folder);
    row.folder = row.folder.as_deref().map(files::composed);
    if row.is_described_as(&before) {
        return Ok(With::etag(row.version, Json(files.0.show(&row, tx.now())?)));
    }
    let row = files::update(tx, &row)?;
    let file = publish(tx, caller, &files.0, &row, Change::Updated)?;
    Ok(With::etag(row.version, Json(file)))
}

/// Delete a file
///
/// Moves the file to the trash, where it stays for 30 days; its links answer 410 at once. If other objects refer to it, the
/// request is rejected with 409 `file_in_use` unless `force=true` is sent. References are kept and work again if the file
/// is restored.
#[operation(delete "/files/{fileId}", scope = "files:write")]
pub(super) async fn delete_file(
    cx: &Cx,
    Path(file_id): Path<FileId>,
    Query(options): Query<DeleteOptions>,
    if_match: IfMatch,
    State(files): State<Files>,
    State(uses): State<FileUses>,
) -> Result<Deleted<File>> {
    let (caller, workspace) = (cx.caller.clone(), cx.caller.workspace_id());
    let expected = ExpectedVersion::from(if_match);
    if cx.made::<FileId>()?.is_none() && !options.force {
        // Finding references can take a while, so check them once before the transaction.
        let uses = uses.clone();
        let used = cx.db.read(move |read| {
            expected.check(files::live(read, workspace, file_id)?.version)?;
            uses.of(read, workspace, file_id, MOST_USES)
        });
        refuse_used(&used.await?)?;
    }
    cx.change(move |tx| {
        let mut row = files::locked(tx, workspace, file_id)?;
        if row.trashed_at.is_some() {
            return Err(Error::not_found("file"));
        }
        expected.check(row.version)?;
        if !options.force {
            // A reference may have been added since that check. New ones wait for this transaction (see
            // `files::held`).
            refuse_used(&uses.of(tx, workspace, file_id, MOST_USES)?)?;
        }
        row.trashed_at = Some(tx.now());
        let row = files::update(tx, &row)?;
        publish(tx, &caller, &files, &row, Change::Deleted)?;
        Ok(row.id)
    })
    .await?;
    Ok(Deleted::of("file", file_id))
}

fn refuse_used(used: &[FileUse]) -> Result<()> {
    if used.is_empty() {
        return Ok(());
    }
    let message = "Other objects refer to the file. Send `force=true` to delete it all the same.";
    Err(Error::new(Code::FileInUse, message).with("details", json!({ "attached_to": used })))
}
