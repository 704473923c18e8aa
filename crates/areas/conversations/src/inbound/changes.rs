//! Edits and deletions of messages, and replies to them.
//!
//! Networks call back at least once and in any order. What comes before its message waits for it, and is applied in the
//! transaction that stores the message, so that nobody reads a text that its author has taken back. Of edits the one with the
//! latest time counts; networks count seconds, and of the same second the one that arrives last. Each edit is known by its id,
//! so that one that is repeated changes nothing. A deletion is final.

use super::context::{UpdateContext, identity};
use super::opt_out;
use crate::messages::{self, MessageDirection, MessageRow, trash_unused};
use crate::schema::{
    held_message_events as held, message_attachments as attachments, message_changes as table,
    messages as rows,
};
use chatnet::{Echo, InboundContent, InboundMessage, Party};
use diesel::prelude::*;
use model::{ChannelId, ContactId, FileId, JsonText, MessageId, Result, Timestamp, text_enum};
use ports::{ConsentStatement, ConsentTies, FileUses};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use store::{OneRow as _, Tx, each, lock_row};

text_enum! {
    /// What a change does.
    pub enum ChangeKind {
        /// It gives a message another text.
        Edit = "edit",
        /// It takes a message back.
        Deletion = "deletion",
        /// It replies or reacts to a message.
        Reply = "reply",
    }
}

/// A change of a message by its author.
pub(super) struct Change<'a> {
    /// The network's id of the change.
    id: &'a str,
    /// The network's id of the message.
    target: &'a str,
    /// Who changed it; `None` is the business.
    by: Option<&'a Party>,
    at: Timestamp,
    /// The new text; `None` is a deletion.
    text: Option<&'a str>,
}

impl<'a> Change<'a> {
    /// The change that a contact made, unless it wrote a message of its own.
    pub(super) fn of_message(message: &'a InboundMessage) -> Option<Self> {
        let change = Self::of(&message.content, &message.provider_id, message.sent_at)?;
        Some(Self { by: Some(&message.from), ..change })
    }

    /// The change that the business made on its own device.
    pub(super) fn of_echo(echo: &'a Echo) -> Option<Self> {
        Self::of(&echo.content, &echo.provider_id, echo.sent_at)
    }

    fn of(content: &'a InboundContent, id: &'a str, at: Timestamp) -> Option<Self> {
        match content {
            InboundContent::Edited { message, text } => {
                Some(Self { id, target: message, by: None, at, text: Some(text) })
            }
            InboundContent::Deleted { message } => {
                Some(Self { id, target: message, by: None, at, text: None })
            }
            _ => None,
        }
    }
}

/// Who made a change that waits.
#[derive(Serialize, Deserialize)]
struct Author {
    user_id: Option<String>,
    phone: Option<String>,
}

impl Author {
    fn is(&self, party: &Party) -> bool {
        match (&self.user_id, &party.user_id) {
            (Some(own), Some(other)) => own == other,
            _ => self.phone.is_some() && self.phone == party.phone,
        }
    }
}

/// Changes a message, or lets the change wait for it. Only its author changes a message.
pub(super) fn change(tx: &mut Tx, of: &UpdateContext<'_>, change: &Change<'_>) -> Result<()> {
    let row = messages::by_provider_id(tx, of.channel.id, change.target)?;
    if !note(tx, of.channel.id, change, row.is_none())? {
        return Ok(());
    }
    let Some(row) = row else { return Ok(()) };
    let author = match change.by.filter(|_| row.direction == MessageDirection::Inbound) {
        Some(party) => Some(of.areas.people.receive(tx, of.channel.workspace_id, &identity(party))?.id),
        None if change.by.is_some() => return Ok(()),
        None => None,
    };
    let row = locked(tx, row.id)?;
    if !is_written_by(&row, author) {
        return Ok(());
    }
    let Some(changed) = apply(tx, Some(of.file_uses), row, change.text, change.at)? else { return Ok(()) };
    match (author, opt_out::of_text(change.text.unwrap_or_default(), &of.settings.opt_out_keywords)) {
        (Some(contact), Some(wants_messages)) => {
            let (at, proof) = (Some(change.at), changed.content);
            let statement = ConsentStatement { wants_messages, at, ties: ConsentTies::ToLater, proof };
            of.areas.people.record_consent(tx, of.channel.workspace_id, contact, &statement).map(drop)
        }
        _ => Ok(()),
    }
}

/// Whether a contact wrote a message; `None` is the business.
fn is_written_by(row: &MessageRow, author: Option<ContactId>) -> bool {
    match author {
        Some(contact) => row.direction == MessageDirection::Inbound && row.contact_id == contact,
        None => row.direction == MessageDirection::Outbound,
    }
}

/// Notes a change. Gives whether it is new.
fn note(tx: &mut Tx, channel: ChannelId, change: &Change<'_>, waits: bool) -> Result<bool> {
    let author =
        |party: &Party| JsonText::of(&Author { user_id: party.user_id.clone(), phone: party.phone.clone() });
    let kind = if change.text.is_some() { ChangeKind::Edit } else { ChangeKind::Deletion };
    let row = (
        table::channel_id.eq(channel),
        table::provider_change_id.eq(change.id),
        table::provider_message_id.eq(change.target),
        table::kind.eq(kind),
        table::author.eq(change.by.filter(|_| waits).map(author)),
        table::content.eq(change.text.filter(|_| waits)),
        table::waits.eq(waits),
        table::changed_at.eq(change.at),
        table::created_at.eq(tx.now()),
    );
    let noted = each!(tx.connection(), |connection| diesel::insert_into(table::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok(noted > 0)
}

/// Lets a reply or a reaction, which is stored, wait for its message.
pub(super) fn await_target(
    tx: &mut Tx,
    channel: ChannelId,
    reply: &str,
    target: &str,
    at: Timestamp,
) -> Result<()> {
    let row = (
        table::channel_id.eq(channel),
        table::provider_change_id.eq(reply),
        table::provider_message_id.eq(target),
        table::kind.eq(ChangeKind::Reply),
        table::waits.eq(true),
        table::changed_at.eq(at),
        table::created_at.eq(tx.now()),
    );
    each!(tx.connection(), |connection| diesel::insert_into(table::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok(())
}

/// A message of which it is known from now on what the network calls it.
pub(super) struct Known<'a> {
    pub(super) id: MessageId,
    pub(super) provider_id: &'a str,
    /// Who wrote it; `None` is the business.
    pub(super) from: Option<&'a Party>,
}

/// A change that waited.
#[derive(Queryable, Selectable)]
#[diesel(table_name = table)]
struct Waiting {
    id: i64,
    provider_change_id: String,
    provider_message_id: String,
    kind: ChangeKind,
    author: Option<JsonText>,
    content: Option<String>,
    changed_at: Timestamp,
}

impl Waiting {
    fn is_by(&self, from: Option<&Party>) -> Result<bool> {
        let author: Option<Author> = self.author.as_ref().map(JsonText::parse).transpose()?;
        Ok(match (author, from) {
            (Some(author), Some(from)) => author.is(from),
            (author, from) => author.is_none() && from.is_none(),
        })
    }
}

/// Applies what waited for messages, and gives those that it changed. Without `file_uses` their files stay.
pub(super) fn catch_up(
    tx: &mut Tx,
    channel: ChannelId,
    file_uses: Option<&FileUses>,
    known: &[Known<'_>],
) -> Result<HashMap<MessageId, MessageRow>> {
    let mut changed = HashMap::new();
    let waiting = take(tx, channel, known)?;
    let known: HashMap<&str, &Known<'_>> = known.iter().map(|known| (known.provider_id, known)).collect();
    for waiting in &waiting {
        let Some(message) = known.get(waiting.provider_message_id.as_str()) else { continue };
        if waiting.kind == ChangeKind::Reply {
            let reply = rows::table
                .filter(rows::channel_id.eq(channel))
                .filter(rows::provider_message_id.eq(&waiting.provider_change_id))
                .filter(rows::reply_to_id.is_null());
            diesel::update(reply).set(rows::reply_to_id.eq(message.id)).execute(tx.connection())?;
        } else if waiting.is_by(message.from)? {
            let row = locked(tx, message.id)?;
            let row = apply(tx, file_uses, row, waiting.content.as_deref(), waiting.changed_at)?;
            changed.extend(row.map(|row| (row.id, row)));
        }
    }
    Ok(changed)
}

/// Takes what waits for messages, in its order. Edits stay known without their texts.
fn take(tx: &mut Tx, channel: ChannelId, known: &[Known<'_>]) -> Result<Vec<Waiting>> {
    let waiting: Vec<Waiting> = table::table
        .filter(table::channel_id.eq(channel))
        .filter(table::provider_message_id.eq_any(known.iter().map(|known| known.provider_id)))
        .filter(table::waits.eq(true))
        .order((table::changed_at, table::id))
        .select(Waiting::as_select())
        .load(tx.connection())?;
    if waiting.is_empty() {
        return Ok(waiting);
    }
    let taken = table::table.filter(table::id.eq_any(waiting.iter().map(|waiting| waiting.id)));
    diesel::update(taken)
        .set((table::waits.eq(false), table::author.eq(None::<JsonText>), table::content.eq(None::<String>)))
        .execute(tx.connection())?;
    Ok(waiting)
}

/// A message that nobody else changes until the transaction ends.
fn locked(tx: &mut Tx, id: MessageId) -> Result<MessageRow> {
    lock_row!(tx, rows::table.find(id).select(rows::id), for_no_key_update);
    rows::table.find(id).select(MessageRow::as_select()).get_result(tx.connection()).or_not_found("message")
}

/// Gives a locked message a new text, or takes it back where there is none. Gives the message if that changed it.
fn apply(
    tx: &mut Tx,
    file_uses: Option<&FileUses>,
    row: MessageRow,
    text: Option<&str>,
    at: Timestamp,
) -> Result<Option<MessageRow>> {
    // Nobody changes a message in the future.
    let at = at.min(tx.now());
    match text {
        _ if row.deleted_at.is_some() => Ok(None),
        Some(_) if row.edited_at.is_some_and(|before| before.seconds() > at.seconds()) => Ok(None),
        Some(text) => edit(tx, &row, text, at).map(Some),
        None => delete(tx, file_uses, &row, at).map(Some),
    }
}

fn edit(tx: &mut Tx, row: &MessageRow, text: &str, at: Timestamp) -> Result<MessageRow> {
    let now = tx.now();
    let edited: MessageRow = diesel::update(rows::table.find(row.id))
        .set((rows::content.eq(text), rows::edited_at.eq(at), rows::updated_at.eq(now)))
        .returning(rows::all_columns)
        .get_result(tx.connection())?;
    let transcript: Option<Option<String>> = attachments::table
        .filter(attachments::message_id.eq(row.id))
        .select(attachments::transcript)
        .first(tx.connection())
        .optional()?;
    messages::terms::reindex(tx, &edited, transcript.flatten().as_deref())?;
    Ok(edited)
}

/// Takes a message back: nothing of it can be read any more, and what was not published yet is not published.
fn delete(tx: &mut Tx, file_uses: Option<&FileUses>, row: &MessageRow, at: Timestamp) -> Result<MessageRow> {
    let now = tx.now();
    let deleted: MessageRow = diesel::update(rows::table.find(row.id))
        .set((
            rows::content.eq(""),
            rows::detail.eq(None::<JsonText>),
            rows::deleted_at.eq(at),
            rows::updated_at.eq(now),
        ))
        .returning(rows::all_columns)
        .get_result(tx.connection())?;
    diesel::delete(held::table.find(row.id)).execute(tx.connection())?;
    // Whoever reads a file at this moment finds that its attachment is gone, and keeps nothing.
    let files: Vec<(Option<FileId>, Option<String>)> =
        diesel::delete(attachments::table.filter(attachments::message_id.eq(row.id)))
            .returning((attachments::file_id, attachments::provider_media_id))
            .get_results(tx.connection())?;
    let received = files.into_iter().filter(|(_, media)| media.is_some()).filter_map(|(file, _)| file);
    if let Some(file_uses) = file_uses {
        for file in received {
            trash_unused(tx, file_uses, row.workspace_id, file)?;
        }
    }
    messages::terms::reindex(tx, &deleted, None)?;
    Ok(deleted)
}
