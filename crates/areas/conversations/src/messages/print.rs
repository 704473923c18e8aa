//! Messages as they go out. A page takes the same number of queries as one message.

use super::detail::Detail;
use super::enqueue::{AttachmentStatus, TranscriptStatus};
use super::model::{Message, MessageAttachment, MessageReaction, MessageSender, MessageStatusChange};
use super::row::{MessageDirection, MessageError, MessageRow, MessageStatus, MessageType};
use crate::schema::{message_attachments, message_statuses, messages};
use channels::ChannelType;
use chatnet::MediaKind;
use diesel::prelude::*;
use files::{FileRow, FileStatus, Files};
use model::{AttachmentId, FileId, JsonText, MessageId, Result, Timestamp, WorkspaceId};
use std::collections::HashMap;
use store::Read;

/// The most statuses and the most reactions that are read for a page.
const MOST: i64 = 5_000;

#[derive(Queryable, Selectable)]
#[diesel(table_name = message_attachments)]
struct AttachmentRow {
    id: AttachmentId,
    message_id: MessageId,
    media_type: MediaKind,
    status: AttachmentStatus,
    file_id: Option<FileId>,
    mime_type: Option<String>,
    name: Option<String>,
    duration_ms: Option<i64>,
    transcript: Option<String>,
    transcript_status: TranscriptStatus,
}

/// Messages of one workspace as they go out.
///
/// # Errors
/// When what is stored is damaged.
pub(crate) fn print(read: &mut Read, files: &Files, rows: &[MessageRow]) -> Result<Vec<Message>> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let ids: Vec<MessageId> = rows.iter().map(|row| row.id).collect();
    let types = channels::types(read, rows.iter().map(|row| row.channel_id))?;
    let mut attachments = attachments(read, files, first.workspace_id, &ids)?;
    let mut histories = histories(read, &ids)?;
    let mut reactions = reactions(read, &ids)?;
    rows.iter()
        .map(|row| {
            let detail: Detail = row.detail.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default();
            let is_deleted = row.deleted_at.is_some();
            let detail = if is_deleted { Detail::default() } else { detail };
            Ok(Message {
                id: row.id,
                object: "message",
                conversation_id: row.conversation_id,
                contact_id: row.contact_id,
                channel_id: row.channel_id,
                channel_type: types.get(&row.channel_id).copied().unwrap_or(ChannelType::Chatnet),
                direction: row.direction,
                sender: MessageSender { kind: row.sender_type, id: row.sender_id.clone() },
                kind: row.message_type,
                content: if is_deleted { String::new() } else { row.content.clone() },
                attachments: attachments.remove(&row.id).filter(|_| !is_deleted).unwrap_or_default(),
                template: detail.template,
                interactive: detail.interactive,
                location: detail.location,
                contacts: detail.contacts,
                reply_id: detail.reply_id,
                order: detail.order,
                form: detail.form,
                referral: detail.referral,
                product: detail.product,
                raw: detail.raw,
                reply_to: row.reply_to_id,
                reactions: reactions.remove(&row.id).unwrap_or_default(),
                status: row.status,
                status_history: histories.remove(&row.id).unwrap_or_default(),
                error: error_of(row.error.as_ref())?,
                provider_message_id: row.provider_message_id.clone(),
                provider_timestamp: row.provider_at,
                edited_at: row.edited_at,
                deleted_at: row.deleted_at,
                broadcast_id: row.broadcast_id,
                run_id: row.run_id.clone(),
                attempt: row.attempt,
                created_at: row.created_at,
                updated_at: row.updated_at,
            })
        })
        .collect()
}

fn error_of(error: Option<&JsonText>) -> Result<Option<MessageError>> {
    error.map(JsonText::parse).transpose()
}

fn attachments(
    read: &mut Read,
    files: &Files,
    workspace: WorkspaceId,
    ids: &[MessageId],
) -> Result<HashMap<MessageId, Vec<MessageAttachment>>> {
    let rows: Vec<AttachmentRow> = message_attachments::table
        .filter(message_attachments::message_id.eq_any(ids))
        .order(message_attachments::id)
        .select(AttachmentRow::as_select())
        .load(read.connection())?;
    let file_ids: Vec<FileId> = rows.iter().filter_map(|row| row.file_id).collect();
    let stored = if file_ids.is_empty() { Vec::new() } else { files::among(read, workspace, &file_ids)? };
    let stored: HashMap<FileId, FileRow> = stored.into_iter().map(|file| (file.id, file)).collect();
    let now = read.now();
    let mut all: HashMap<MessageId, Vec<MessageAttachment>> = HashMap::new();
    for row in rows {
        let file = row.file_id.and_then(|id| stored.get(&id)).filter(|file| file.status == FileStatus::Ready);
        let shown = file.map(|file| files.show(file, now)).transpose()?;
        let (permanent_url, signed_url) = shown.map(|file| (file.url, file.signed_url)).unzip();
        all.entry(row.message_id).or_default().push(MessageAttachment {
            id: row.id,
            kind: row.media_type,
            status: row.status,
            permanent_url,
            signed_url,
            file_id: row.file_id,
            name: row.name.or_else(|| file.map(|file| file.name.clone())),
            mime_type: row.mime_type.or_else(|| file.map(|file| file.mime_type.clone())),
            size: file.map(|file| file.size),
            duration_ms: row.duration_ms.or_else(|| file.and_then(|file| file.duration_ms)),
            transcript: row.transcript,
            transcript_status: row.transcript_status,
        });
    }
    Ok(all)
}

fn histories(read: &mut Read, ids: &[MessageId]) -> Result<HashMap<MessageId, Vec<MessageStatusChange>>> {
    let rows: Vec<(MessageId, MessageStatus, Timestamp, Option<JsonText>)> = message_statuses::table
        .filter(message_statuses::message_id.eq_any(ids))
        .order(message_statuses::id)
        .limit(MOST)
        .select((
            message_statuses::message_id,
            message_statuses::status,
            message_statuses::reported_at,
            message_statuses::error,
        ))
        .load(read.connection())?;
    let mut all: HashMap<MessageId, Vec<MessageStatusChange>> = HashMap::new();
    for (id, status, at, error) in rows {
        let error = error_of(error.as_ref())?;
        all.entry(id).or_default().push(MessageStatusChange { status, at, error });
    }
    Ok(all)
}

/// The latest reaction of each sender, unless it was taken back.
fn reactions(read: &mut Read, ids: &[MessageId]) -> Result<HashMap<MessageId, Vec<MessageReaction>>> {
    let mut rows: Vec<MessageRow> = messages::table
        .filter(messages::reply_to_id.eq_any(ids))
        .filter(messages::message_type.eq(MessageType::Reaction))
        .filter(messages::deleted_at.is_null())
        .order(messages::id.desc())
        .limit(MOST)
        .select(MessageRow::as_select())
        .load(read.connection())?;
    // An earlier reaction may have come later.
    rows.sort_by_key(|row| std::cmp::Reverse(row.provider_at.unwrap_or(row.created_at).seconds()));
    let mut seen: Vec<(MessageId, MessageDirection, Option<String>)> = Vec::new();
    let mut all: HashMap<MessageId, Vec<MessageReaction>> = HashMap::new();
    for row in rows {
        let Some(target) = row.reply_to_id else { continue };
        // On the network the business is one sender, whoever of it reacted.
        let sender = row.sender_id.clone().filter(|_| row.direction == MessageDirection::Inbound);
        let sender = (target, row.direction, sender);
        if seen.contains(&sender) {
            continue;
        }
        seen.push(sender);
        let detail: Detail = row.detail.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default();
        let Some(emoji) = detail.emoji.filter(|emoji| !emoji.is_empty()) else { continue };
        let at = row.provider_at.unwrap_or(row.created_at);
        all.entry(target).or_default().push(MessageReaction { emoji, sender: row.sender_type, at });
    }
    Ok(all)
}
