//! Conversations over channels as agents read them: what each side said, as its reader saw it.

use super::detail::Detail;
use super::readable::readable;
use super::row::{MessageDirection, MessageRow, MessageSenderType, MessageStatus, MessageType};
use crate::schema::{message_attachments, messages as table};
use channels::templates;
use chatnet::{ResolvedMessage, TemplateComponents};
use diesel::prelude::*;
use model::{ChannelId, MemberId, MessageId, Result, WorkspaceId};
use ports::{ChannelQuestion, ChannelTurn, ChannelTurns, Members, Speaker};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use store::Read;

/// What was said over channels, with the names of the people of the team.
#[derive(Debug, Clone)]
pub struct Turns(pub Arc<dyn Members>);

impl ChannelTurns for Turns {
    fn before(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        question: ChannelQuestion,
        after: Option<MessageId>,
        most: i64,
    ) -> Result<Vec<ChannelTurn>> {
        let rows = rows(read, workspace, question, after, most)?;
        let (transcripts, templates) = (transcripts(read, &rows)?, sent_templates(read, &rows)?);
        let members: HashSet<MemberId> = rows.iter().filter_map(member_of).collect();
        let members: Vec<MemberId> = members.into_iter().collect();
        let members =
            if members.is_empty() { Vec::new() } else { self.0.among(read, workspace, &members)? };
        let names: HashMap<MemberId, String> = members.into_iter().map(|one| (one.id, one.name)).collect();
        let mut turns = Vec::with_capacity(rows.len());
        let mut person_answers = false;
        for row in &rows {
            let mut speaker = speaker(row, &names);
            let is_person = is_person(row);
            let by_agent = row.sender_type == MessageSenderType::Agent;
            let text = shown(row, transcripts.get(&row.id).map(String::as_str), &templates)?;
            if let Speaker::Other(who) = &mut speaker
                && is_person
                && !person_answers
            {
                who.push_str(", who took over from the agent");
            } else if by_agent && person_answers {
                turns.push(handed_back(row.id));
            }
            person_answers = is_person || (person_answers && !by_agent);
            turns.push(ChannelTurn { id: row.id, speaker, text });
        }
        // The agent is asked, so the conversation is its own again.
        if let Some(last) = rows.last().filter(|_| person_answers) {
            turns.push(handed_back(last.id));
        }
        Ok(turns)
    }
}

fn handed_back(id: MessageId) -> ChannelTurn {
    let text = "The conversation was handed back to the agent.".to_owned();
    ChannelTurn { id, speaker: Speaker::Other("Note".to_owned()), text }
}

/// The messages that the contact and the business saw, oldest first.
fn rows(
    read: &mut Read,
    workspace: WorkspaceId,
    question: ChannelQuestion,
    after: Option<MessageId>,
    most: i64,
) -> Result<Vec<MessageRow>> {
    let unseen = [MessageStatus::Failed, MessageStatus::Cancelled, MessageStatus::Expired];
    let mut query = table::table
        .filter(table::conversation_id.eq(question.conversation))
        .filter(table::workspace_id.eq(workspace))
        .filter(table::id.lt(question.first))
        .filter(table::deleted_at.is_null())
        .filter(table::message_type.ne_all([MessageType::Reaction, MessageType::Unsupported]))
        .filter(table::status.is_null().or(table::status.ne_all(unseen)))
        .order(table::id.desc())
        .limit(most)
        .select(MessageRow::as_select())
        .into_boxed();
    if let Some(after) = after {
        query = query.filter(table::id.gt(after));
    }
    let mut rows: Vec<MessageRow> = query.load(read.connection())?;
    rows.reverse();
    Ok(rows)
}

fn is_person(row: &MessageRow) -> bool {
    matches!(row.sender_type, MessageSenderType::User | MessageSenderType::Device)
}

/// The member of the team who wrote a message, as far as that is known.
fn member_of(row: &MessageRow) -> Option<MemberId> {
    let id = row.sender_id.as_deref().filter(|_| row.sender_type == MessageSenderType::User)?;
    id.parse().ok().map(MemberId)
}

fn speaker(row: &MessageRow, names: &HashMap<MemberId, String>) -> Speaker {
    let who = match row.sender_type {
        _ if row.direction == MessageDirection::Inbound => return Speaker::Contact,
        MessageSenderType::Contact => return Speaker::Contact,
        MessageSenderType::Agent if row.message_type != MessageType::Template => return Speaker::Agent,
        MessageSenderType::User => match member_of(row).and_then(|id| names.get(&id)) {
            Some(name) => return Speaker::Other(format!("{name}, a person of the team")),
            None => "A person of the team",
        },
        MessageSenderType::Device => "A person of the team",
        MessageSenderType::Broadcast => "Broadcast of the business",
        _ if row.message_type == MessageType::Template => "Template of the business",
        _ => "Message of the business",
    };
    Speaker::Other(who.to_owned())
}

/// What a reader of the message saw.
fn shown(row: &MessageRow, transcript: Option<&str>, templates: &Templates) -> Result<String> {
    let Some(detail) = row.detail.as_ref().filter(|_| row.direction == MessageDirection::Outbound) else {
        return readable(row, transcript);
    };
    let detail: Detail = detail.parse()?;
    if let Some(template) = &detail.template {
        let key = (row.channel_id, template.name.clone(), template.language.clone());
        // A template may have changed since: its text is then as it was stored.
        let filled = templates.get(&key).and_then(|components| components.resolve(template).ok());
        if let Some(filled) = filled {
            return Ok(lines(ResolvedMessage { body: row.content.clone(), ..filled }));
        }
    }
    if let Some(interactive) = detail.interactive {
        let buttons = interactive.buttons.into_iter().map(|button| button.title);
        let chosen = interactive.list.into_iter().flat_map(|list| list.sections).flat_map(|part| part.rows);
        let buttons = buttons.chain(chosen.map(|row| row.title)).collect();
        let (header, body, footer) = (interactive.header, interactive.body, interactive.footer);
        return Ok(lines(ResolvedMessage { header, body, footer, buttons }));
    }
    readable(row, transcript)
}

fn lines(message: ResolvedMessage) -> String {
    let buttons =
        (!message.buttons.is_empty()).then(|| format!("[Buttons: {}]", message.buttons.join(" | ")));
    let parts = [message.header, Some(message.body), message.footer, buttons];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Templates of channels, by name and language.
type Templates = HashMap<(ChannelId, String, String), TemplateComponents>;

/// The templates that were sent.
fn sent_templates(read: &mut Read, rows: &[MessageRow]) -> Result<Templates> {
    let sent: Vec<&MessageRow> =
        rows.iter().filter(|row| row.message_type == MessageType::Template).collect();
    let Some(first) = sent.first() else { return Ok(Templates::new()) };
    let mut names = HashSet::new();
    for detail in sent.iter().filter_map(|row| row.detail.as_ref()) {
        names.extend(detail.parse::<Detail>()?.template.map(|template| template.name));
    }
    let channel = first.channel_id;
    let found = templates::components_named(read, channel, &names)?;
    Ok(found
        .into_iter()
        .map(|(name, language, components)| ((channel, name, language), components))
        .collect())
}

/// The words of voice notes.
pub(crate) fn transcripts(read: &mut Read, messages: &[MessageRow]) -> Result<HashMap<MessageId, String>> {
    let is_heard = |row: &&MessageRow| row.message_type == MessageType::Audio;
    let ids: Vec<MessageId> = messages.iter().filter(is_heard).map(|row| row.id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found: Vec<(MessageId, Option<String>)> = message_attachments::table
        .filter(message_attachments::message_id.eq_any(ids))
        .select((message_attachments::message_id, message_attachments::transcript))
        .load(read.connection())?;
    Ok(found.into_iter().filter_map(|(id, words)| Some((id, words?))).collect())
}
