//! Files that are sent: whether the network takes them.

use crate::messages::NewAttachment;
use chatnet::{Capabilities, MediaKind};
use files::FileRow;
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
    let kind = kind.unwrap_or_else(|| kind_of(&row.mime_type));
    check(row, kind, network, param)?;
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

/// As what a file is sent if nothing is asked for.
fn kind_of(mime_type: &str) -> MediaKind {
    match mime_type.split_once('/') {
        Some(("image", "jpeg" | "png")) => MediaKind::Image,
        Some(("image", "webp")) => MediaKind::Sticker,
        Some(("audio", _)) => MediaKind::Audio,
        Some(("video", "mp4" | "3gpp")) => MediaKind::Video,
        _ => MediaKind::Document,
    }
}

fn check(row: &FileRow, kind: MediaKind, network: &Capabilities, param: &str) -> Result<()> {
    let of_type = |prefix: &str| row.mime_type.starts_with(prefix);
    let (fits, most) = match kind {
        MediaKind::Image => (of_type("image/jpeg") || of_type("image/png"), network.max_image_bytes),
        MediaKind::Sticker => (of_type("image/webp"), network.max_image_bytes.min(500 * 1024)),
        MediaKind::Audio => (of_type("audio/"), network.max_av_bytes),
        MediaKind::Video => (of_type("video/"), network.max_av_bytes),
        MediaKind::Document => (true, network.max_document_bytes),
    };
    if !fits {
        let rule =
            format!("is a file of the type {}, which cannot be sent as {}", row.mime_type, kind.as_str());
        return Err(Error::invalid(param, rule));
    }
    if u64::try_from(row.size).unwrap_or(u64::MAX) > most {
        return Err(Error::invalid(param, format!("is a file of more than {most} bytes")));
    }
    Ok(())
}
