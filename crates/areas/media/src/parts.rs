//! The operations on multipart uploads.

use super::model::{CompleteRequest, PartCheck, PartNumber, Upload, UploadPart, UploadRequest};
use super::upload::commit;
use files::uploads::{self, NewUpload};
use files::{File, Files};
use model::{Caller, Result, UploadId};
use operation::{Body, Created, Cx, Json, Octets, Path, Query, State, operation};
use store::Tx;

/// Start an upload in parts
///
/// For files up to 5 GiB and for connections that break. Send the parts with `PUT`, in any order and in parallel, then
/// complete the upload. An upload that is not completed within 24 hours is deleted.
#[operation(post "/files/uploads", scope = "files:write")]
pub(super) fn create_upload(
    tx: &mut Tx,
    caller: &Caller,
    Body(request): Body<UploadRequest>,
) -> Result<Created<Upload>> {
    let (size, sha256, mime_type) = (request.size, request.sha256.clone(), request.mime_type.clone());
    let new = NewUpload {
        workspace: caller.workspace_id(),
        uploaded_by: caller.cause().actor,
        details: request.description().details(None, mime_type),
        size,
        sha256: sha256.map(|digest| digest.to_ascii_lowercase()),
    };
    Ok(Created(Upload::of(uploads::create(tx, &new)?)?))
}

/// Send one part
///
/// Stores the body, up to 25 MiB, as the part with this number. Sending a part again replaces it. The part is stored when
/// the response arrives, and survives a restart of the service.
#[operation(put "/files/uploads/{uploadId}/parts/{partNumber}", scope = "files:write", body_mib = 25)]
pub(super) async fn put_upload_part(
    cx: &Cx,
    Path(upload_id): Path<UploadId>,
    Path(part_number): Path<PartNumber>,
    Query(check): Query<PartCheck>,
    Octets(bytes): Octets,
    State(files): State<Files>,
) -> Result<Json<UploadPart>> {
    let workspace = cx.caller.workspace_id();
    let id = upload_id.clone();
    let upload = cx.db.read(move |read| uploads::find(read, workspace, &id)).await?;
    let part = files.put_part(&cx.db, &upload, part_number.0, check.sha256.as_deref(), bytes).await?;
    Ok(Json(UploadPart::of(upload_id, part)))
}

/// Join the parts into a file
///
/// The parts from 1 to the highest number are joined in this order. If some are missing, or their size is not the announced
/// one, the response is 409 `upload_incomplete` with `details.missing_parts`; send them and complete the upload then.
/// Completing an upload a second time returns the same file.
#[operation(post "/files/uploads/{uploadId}/complete", scope = "files:write")]
pub(super) async fn complete_upload(
    cx: &Cx,
    Path(upload_id): Path<UploadId>,
    Body(request): Body<CompleteRequest>,
    State(files): State<Files>,
) -> Result<Created<File>> {
    let workspace = cx.caller.workspace_id();
    let found = cx.db.read(move |read| {
        let upload = uploads::find(read, workspace, &upload_id)?;
        let file = uploads::completed(read, &upload)?;
        let parts = uploads::parts(read, &upload.id)?;
        Ok((upload, file, parts))
    });
    let (upload, file, parts) = found.await?;
    if let Some(file) = file {
        return commit(cx, files, move |_| Ok((file.clone(), false))).await;
    }
    uploads::refuse_ended(&upload, cx.db.now())?;
    uploads::refuse_incomplete(&upload, &parts, request.parts)?;
    let stored = files.join(&cx.db, &upload, parts).await?;
    commit(cx, files, move |tx| uploads::complete(tx, &upload, &stored)).await
}
