//! Reading conversations and what was said in them.

use super::model::{
    AssigneeFilter, Conversation, ConversationFilter, ConversationHandler, ConversationWindow,
    MessageListing, MessageOrder, MessagePreview,
};
use crate::messages::{Conversation as Row, Message, MessageRow, MessageSender, MessageType, print};
use crate::schema::{conversations, messages};
use channels::ChannelType;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool};
use files::Files;
use model::{Caller, ContactId, ConversationId, MessageId, Result, WorkspaceId};
use operation::{Json, OptIn, OptInList, Path, Query, State, operation};
use ports::{ContactCard, People};
use std::collections::HashMap;
use store::{OneRow as _, Read};

/// How many characters of the last message a conversation shows.
const PREVIEW: usize = 200;

/// How many conversations one request looks at for those with an assignee or a handler, which contacts have.
const LOOKED_AT: usize = 5_000;

/// How many of them are read at once.
const BATCH: usize = 250;

/// List conversations
///
/// Lists the conversations of the workspace, those with the newest message first. Pages continue after that message, so a
/// conversation that gets another one moves to the first page. With `assignee` or `handler`, a request looks at the newest 5,000
/// conversations that the other filters leave: a page may have fewer rows than `limit`, and the next page continues from there.
#[operation(get "/conversations", scope = "conversations:read", ceiling = 50)]
pub fn list_conversations(
    read: &mut Read,
    caller: &Caller,
    Query(filter): Query<ConversationFilter>,
    page: OptIn,
    people: State<People>,
) -> Result<OptInList<Conversation>> {
    let workspace = caller.workspace_id();
    let after = page.page().after::<MessageId>()?;
    if filter.assignee.is_some() || filter.handler.is_some() {
        let (rows, next) = of_handlers(read, workspace, &filter, &people.0, after, page.most())?;
        let shown = show(read, &people.0, workspace, &rows)?;
        return Ok(page.answer_part(shown, next.map(|next| next.to_string()).as_deref()));
    }
    let rows = newest(read, workspace, &filter, &people.0, after, page.page().fetch())?;
    let places: HashMap<ConversationId, MessageId> =
        rows.iter().map(|row| (row.id, row.last_message_id)).collect();
    let shown = show(read, &people.0, workspace, &rows)?;
    Ok(page.answer(shown, |one| places.get(&one.id).map(ToString::to_string).unwrap_or_default()))
}

/// Reads the conversations that a filter leaves, without its assignee and handler.
fn newest(
    read: &mut Read,
    workspace: WorkspaceId,
    filter: &ConversationFilter,
    people: &People,
    after: Option<MessageId>,
    most: i64,
) -> Result<Vec<Row>> {
    let mut query = conversations::table
        .order(conversations::last_message_id.desc())
        .limit(most)
        .select(Row::as_select())
        .into_boxed();
    // A channel is of one workspace: without a condition on the workspace, the indexes of the channel are used.
    query = match filter.channel_id {
        Some(channel) if channels::is_of(read, channel, workspace)? => {
            query.filter(conversations::channel_id.eq(channel))
        }
        Some(_) => return Ok(Vec::new()),
        // Written as no index has it: SQLite would else look for the few of a contact among all of the workspace.
        None if filter.contact_id.is_some() => {
            query.filter(sql::<Bool>("+workspace_id = ").bind::<BigInt, _>(workspace.0))
        }
        None => query.filter(conversations::workspace_id.eq(workspace)),
    };
    if let Some(status) = filter.status {
        query = query.filter(conversations::status.eq(status));
    }
    if let Some(contact) = filter.contact_id {
        // The conversations of a merged contact are those of the one that remains.
        let ids = people.ids_of(read, workspace, contact)?;
        query = query.filter(conversations::contact_id.eq(ids.first().copied().unwrap_or(contact)));
    }
    // Written as the indexes have it, so that those are used.
    match filter.unread {
        Some(true) => query = query.filter(sql::<Bool>("unread_count > 0")),
        Some(false) => query = query.filter(sql::<Bool>("unread_count = 0")),
        None => {}
    }
    if let Some(after) = after {
        query = query.filter(conversations::last_message_id.lt(after));
    }
    Ok(query.load(read.connection())?)
}

/// Reads the conversations that a filter leaves with its assignee and handler, and where to go on.
fn of_handlers(
    read: &mut Read,
    workspace: WorkspaceId,
    filter: &ConversationFilter,
    people: &People,
    mut after: Option<MessageId>,
    most: i64,
) -> Result<(Vec<Row>, Option<MessageId>)> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut found: Vec<Row> = Vec::new();
    for _ in 0..LOOKED_AT / BATCH {
        let rows = newest(read, workspace, filter, people, after, i64::try_from(BATCH).unwrap_or(i64::MAX))?;
        let cards = cards_of(read, people, workspace, &rows)?;
        let is_last = rows.len() < BATCH;
        for row in rows {
            after = Some(row.last_message_id);
            if !filter.is_for(cards.get(&row.contact_id)) {
                continue;
            }
            if found.len() == most {
                let last = found.last().map(|row| row.last_message_id);
                return Ok((found, last));
            }
            found.push(row);
        }
        if is_last {
            return Ok((found, None));
        }
    }
    Ok((found, after))
}

impl ConversationFilter {
    /// Whether the contact of a conversation has the assignee and the handler.
    fn is_for(&self, contact: Option<&ContactCard>) -> bool {
        let assignee = match contact.and_then(|card| card.assignee) {
            Some(member) => AssigneeFilter::Member(member),
            None => AssigneeFilter::Nobody,
        };
        self.assignee.is_none_or(|wanted| wanted == assignee)
            && self.handler.is_none_or(|wanted| wanted == ConversationHandler::of(contact))
    }
}

impl ConversationHandler {
    fn of(contact: Option<&ContactCard>) -> Self {
        match contact {
            Some(card) if card.autopilot && !card.is_blocked => Self::Agent,
            _ => Self::Human,
        }
    }
}

fn cards_of(
    read: &mut Read,
    people: &People,
    workspace: WorkspaceId,
    rows: &[Row],
) -> Result<HashMap<ContactId, ContactCard>> {
    let contacts: Vec<ContactId> = rows.iter().map(|row| row.contact_id).collect();
    let cards = people.cards(read, workspace, &contacts)?;
    Ok(cards.into_iter().map(|card| (card.id, card)).collect())
}

/// One conversation
///
/// Returns the conversation with its last message and the window for free messages.
#[operation(get "/conversations/{conversationId}", scope = "conversations:read")]
pub fn get_conversation(
    read: &mut Read,
    caller: &Caller,
    Path(conversation_id): Path<ConversationId>,
    people: State<People>,
) -> Result<Json<Conversation>> {
    let row = live(read, caller.workspace_id(), conversation_id)?;
    let shown = show(read, &people.0, row.workspace_id, std::slice::from_ref(&row))?;
    let one = shown.into_iter().next();
    one.map(Json).ok_or_else(|| model::Error::not_found("conversation"))
}

/// Its messages
///
/// Lists the messages of the conversation, newest first. A reaction is listed under the message to which it belongs.
#[operation(get "/conversations/{conversationId}/messages", scope = "conversations:read", ceiling = 100)]
pub fn list_conversation_messages(
    read: &mut Read,
    caller: &Caller,
    Path(conversation_id): Path<ConversationId>,
    Query(listing): Query<MessageListing>,
    page: OptIn,
    files: State<Files>,
) -> Result<OptInList<Message>> {
    let conversation = live(read, caller.workspace_id(), conversation_id)?;
    let mut query = messages::table
        .filter(messages::conversation_id.eq(conversation.id))
        .filter(messages::message_type.ne(MessageType::Reaction))
        .limit(page.page().fetch())
        .select(MessageRow::as_select())
        .into_boxed();
    let after = page.page().after::<MessageId>()?;
    query = match listing.order {
        MessageOrder::Asc => {
            let query = query.order(messages::id.asc());
            if let Some(after) = after { query.filter(messages::id.gt(after)) } else { query }
        }
        MessageOrder::Desc => {
            let query = query.order(messages::id.desc());
            if let Some(after) = after { query.filter(messages::id.lt(after)) } else { query }
        }
    };
    let rows: Vec<MessageRow> = query.load(read.connection())?;
    let printed = print(read, &files.0, &rows)?;
    Ok(page.answer(printed, |message| message.id.to_string()))
}

fn live(read: &mut Read, workspace: WorkspaceId, id: ConversationId) -> Result<Row> {
    conversations::table
        .find(id)
        .filter(conversations::workspace_id.eq(workspace))
        .select(Row::as_select())
        .get_result(read.connection())
        .or_not_found("conversation")
}

/// Conversations as they go out, in the same number of queries for any number of them.
fn show(read: &mut Read, people: &People, workspace: WorkspaceId, rows: &[Row]) -> Result<Vec<Conversation>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let cards = cards_of(read, people, workspace, rows)?;
    let last: Vec<MessageId> = rows.iter().map(|row| row.last_message_id).collect();
    let last: Vec<MessageRow> = messages::table
        .filter(messages::id.eq_any(&last))
        .select(MessageRow::as_select())
        .load(read.connection())?;
    let last: HashMap<MessageId, MessageRow> = last.into_iter().map(|row| (row.id, row)).collect();
    let types = channels::types(read, rows.iter().map(|row| row.channel_id))?;
    let now = read.now();
    let shown = rows.iter().map(|row| {
        let card = cards.get(&row.contact_id);
        Conversation {
            id: row.id,
            object: "conversation",
            contact_id: row.contact_id,
            channel_id: row.channel_id,
            channel_type: types.get(&row.channel_id).copied().unwrap_or(ChannelType::Chatnet),
            status: row.status,
            handler: ConversationHandler::of(card),
            assignee: card.and_then(|card| card.assignee),
            unread_count: row.unread_count,
            last_message: last.get(&row.last_message_id).map(preview),
            last_message_at: row.last_message_at,
            window: ConversationWindow { open: row.is_open_at(now), expires_at: row.window_expires_at() },
            first_reply_at: row.first_reply_at,
            snoozed_until: row.snoozed_until,
            closed_at: row.closed_at,
            close_reason: row.close_reason.clone(),
            app_url: card.and_then(|card| card.app_url.clone()),
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    });
    Ok(shown.collect())
}

fn preview(row: &MessageRow) -> MessagePreview {
    let content = if row.deleted_at.is_some() { "" } else { row.content.as_str() };
    MessagePreview {
        id: row.id,
        direction: row.direction,
        sender: MessageSender { kind: row.sender_type, id: row.sender_id.clone() },
        kind: row.message_type,
        content: content.chars().take(PREVIEW).collect(),
        status: row.status,
        created_at: row.created_at,
    }
}
