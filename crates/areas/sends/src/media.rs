//! Files that are sent: whether the network takes them.

use chatnet::{Capabilities, MediaKind};
use conversations::messages::NewAttachment;
use model::{Error, FileId, Result, WorkspaceId};
use store::Read;

/// A file as an attachment of a message.
///
/// # Errors
/// `not_found` with `param`; `validation_error` where the network does not take the file as `kind`.
pub(super) fn attachment(
    read: &mut Read,
    workspace: WorkspaceId,
    file: FileId,
    kind: Option<MediaKind>,
    network: &Capabilities,
    param: &str,
) -> Result<NewAttachment> {
    let found = files::among(read, workspace, &[file])?;
    let row = found.iter().find(|row| row.is_ready());
    let row = row.ok_or_else(|| Error::not_found("file").param(param))?;
    let kind = kind.unwrap_or_else(|| MediaKind::of_type(&row.mime_type));
    let bytes = u64::try_from(row.size).unwrap_or(u64::MAX);
    network.check_file(kind, &row.mime_type, bytes).map_err(|rule| Error::invalid(param, rule))?;
    Ok(NewAttachment {
        kind,
        file: Some(row.id),
        provider_media_id: None,
        mime_type: Some(row.mime_type.clone()),
        name: Some(row.name.clone()),
        is_voice: false,
        transcribe: false,
    })
}
