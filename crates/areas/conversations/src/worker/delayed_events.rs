//! Publishing messages with files: when the file and its transcript are there, or the time is over, and in the order in
//! which they came.

use super::Worker;
use crate::events::{MessageEvent, ReceivedAttachment};
use crate::inbound::cause_of;
use crate::messages::MessageRow;
use crate::schema::{held_message_events as held, message_attachments as attachments, messages};
use ::files::{FileRow, Files};
use channels::ChannelRow;
use channels::work::leased;
use chatnet::MediaKind;
use diesel::dsl::exists;
use diesel::prelude::*;
use model::{ConversationId, FileId, MessageId, Result, Timestamp};
use ports::People;
use std::collections::HashSet;
use store::Tx;

/// The most messages of one round.
const MOST: i64 = 200;
/// How long a signed link works, in seconds.
const LINK_SECONDS: i64 = 7 * 24 * 3_600;

impl Worker {
    /// Publishes the messages that wait no longer. Says whether there were any.
    pub(super) async fn publish_delayed(&self) -> Result<bool> {
        let (channel, epoch) = (self.channel.id, self.lease.epoch);
        let any = self.parts.db.read(move |read| {
            let of_channel = held::table.filter(held::channel_id.eq(channel));
            let due = diesel::select(exists(of_channel.filter(held::due_at.le(read.now()))));
            Ok(due.get_result::<bool>(read.connection())?)
        });
        if !any.await? {
            return Ok(false);
        }
        let (people, files) = (self.parts.areas.people.clone(), self.parts.files.clone());
        self.parts
            .db
            .write(move |tx| {
                let Some(channel) = leased(tx, channel, epoch)? else { return Ok(false) };
                publish(tx, &channel, &people, &files)
            })
            .await
    }
}

fn publish(tx: &mut Tx, channel: &ChannelRow, people: &People, files: &Files) -> Result<bool> {
    let now = tx.now();
    let waiting: Vec<(MessageId, ConversationId, Timestamp)> = held::table
        .filter(held::channel_id.eq(channel.id))
        .order(held::message_id)
        .limit(MOST)
        .select((held::message_id, held::conversation_id, held::due_at))
        .load(tx.connection())?;
    let (mut blocked, mut did) = (HashSet::new(), false);
    for (id, conversation, due_at) in waiting {
        if due_at > now || blocked.contains(&conversation) {
            blocked.insert(conversation);
            continue;
        }
        let row: MessageRow =
            messages::table.find(id).select(MessageRow::as_select()).get_result(tx.connection())?;
        if let Some(contact) = people.cards(tx, row.workspace_id, &[row.contact_id])?.into_iter().next() {
            let attachments = files_of(tx, files, &row, now)?;
            let url = contact.app_url.clone();
            let event = MessageEvent::received(&row, channel.channel_type, attachments, url)?;
            tx.emit(row.workspace_id, &cause_of(&contact), true, &event)?;
        }
        diesel::delete(held::table.find(id)).execute(tx.connection())?;
        did = true;
    }
    Ok(did)
}

fn files_of(tx: &mut Tx, files: &Files, row: &MessageRow, now: Timestamp) -> Result<Vec<ReceivedAttachment>> {
    let rows: Vec<(MediaKind, Option<FileId>, Option<String>)> = attachments::table
        .filter(attachments::message_id.eq(row.id))
        .order(attachments::id)
        .select((attachments::media_type, attachments::file_id, attachments::transcript))
        .load(tx.connection())?;
    let ids: Vec<FileId> = rows.iter().filter_map(|(_, file, _)| *file).collect();
    let found = ::files::among(tx, row.workspace_id, &ids)?;
    let until = now.plus_seconds(LINK_SECONDS);
    let shown = rows.into_iter().map(|(kind, file, transcript)| {
        let file: Option<&FileRow> = found.iter().find(|row| Some(row.id) == file);
        Ok(ReceivedAttachment {
            kind,
            url: file.map(|file| files.show(file, now).map(|file| file.url)).transpose()?,
            signed_url: file.map(|file| files.signed_url(file, until)),
            transcript,
        })
    });
    shown.collect()
}
