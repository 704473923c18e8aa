//! Search over the words of messages.
//!
//! Messages are looked through newest first, led by the rarest of the words, or by the contact where one is given. The
//! work for a page is bounded: of the messages that lead, [`MAX_LOOKED_AT`] are looked at, and the next page goes on behind
//! them.

use super::model::MessageSearch;
use crate::messages::{Message, MessageRow, print};
use crate::schema::{message_terms, messages};
use diesel::prelude::*;
use fields::terms;
use files::Files;
use model::{Caller, Error, MessageId, Result, WorkspaceId};
use operation::{OptIn, OptInList, Query, State, operation};
use ports::People;
use std::collections::BTreeSet;
use store::Read;

/// How many messages are looked at together.
const AT_ONCE: i64 = 500;
/// How many messages are looked at for one page.
const MAX_LOOKED_AT: i64 = 5_000;
/// The most words of a search.
const MAX_WORDS: usize = 8;
/// The most terms of a search. A long run of writing without spaces is found by the first of its own.
const MAX_TERMS: usize = 16;
/// If more words than this have the beginning that is looked for, it is found in most messages.
const MAX_ENDINGS: usize = 24;

/// Search message text
///
/// Finds messages that have all words, newest first. The text of voice notes is found too. For one page the next 5,000
/// messages with the rarest word are looked at, so a page can have fewer messages than `limit`, even none, and still be
/// followed by another. The form without pages finds what the first page would.
#[operation(get "/conversations/search", scope = "conversations:read", ceiling = 50)]
pub fn search_conversations(
    read: &mut Read,
    caller: &Caller,
    Query(mut search): Query<MessageSearch>,
    page: OptIn,
    files: State<Files>,
    people: State<People>,
) -> Result<OptInList<Message>> {
    if let Some(contact) = search.contact_id {
        search.contact_id = people.0.ids_of(read, caller.workspace_id(), contact)?.first().copied();
    }
    let wanted = Wanted::of(&search.q)?;
    let after = page.page().after::<MessageId>()?;
    let found = match wanted {
        Some(wanted) => {
            let mut seeker = Seeker { workspace: caller.workspace_id(), search, wanted };
            seeker.find(read, after, page.most())?
        }
        None if search.q.is_ascii() => return Err(Error::invalid("q", "must have a letter or a digit")),
        // Messages are not found by their emoji.
        None => Found { rows: Vec::new(), next: None },
    };
    let printed = print(read, &files.0, &found.rows)?;
    let next = found.next.map(|id| id.to_string());
    Ok(page.answer_part(printed, next.as_deref()))
}

struct Seeker {
    workspace: WorkspaceId,
    search: MessageSearch,
    wanted: Wanted,
}

/// What messages must have.
struct Wanted {
    /// Words as they are.
    words: Vec<String>,
    /// A word that begins so, which may lead.
    beginning: String,
    /// Others that begin so: single letters of writing without spaces.
    more_beginnings: Vec<String>,
}

impl Wanted {
    /// What a text asks for; `None` where it has no word.
    ///
    /// # Errors
    /// 400 `validation_error` where it has too many.
    fn of(text: &str) -> Result<Option<Self>> {
        let mut parts = terms::wanted(text);
        let Some(last) = parts.last_mut() else { return Ok(None) };
        let Some(beginning) = last.words.pop() else { return Ok(None) };
        let distinct: BTreeSet<&[String]> = parts.iter().map(|part| part.words.as_slice()).collect();
        if distinct.len() > MAX_WORDS {
            return Err(Error::invalid("q", format_args!("must have at most {MAX_WORDS} words")));
        }
        let (open, closed): (Vec<_>, Vec<_>) =
            parts.into_iter().filter(|part| !part.words.is_empty()).partition(|part| part.open);
        let list = |parts: Vec<terms::Wanted>| {
            let mut words: Vec<String> =
                parts.into_iter().flat_map(|part| part.words).take(MAX_TERMS).collect();
            words.sort_unstable();
            words.dedup();
            words
        };
        Ok(Some(Self { words: list(closed), beginning, more_beginnings: list(open) }))
    }
}

/// What names the next messages to look at.
enum Lead {
    Contact,
    Word(String),
    Beginning(Vec<String>),
    /// The beginning is that of so many words that most messages have one.
    All,
}

/// What was found for a page.
struct Found {
    rows: Vec<MessageRow>,
    /// What is older than this message was not looked at.
    next: Option<MessageId>,
}

impl Seeker {
    fn find(&mut self, read: &mut Read, after: Option<MessageId>, most: i64) -> Result<Found> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let lead = self.lead(read, after)?;
        let mut rows: Vec<MessageRow> = Vec::new();
        let (mut next, mut looked_at) = (after, 0);
        while looked_at < MAX_LOOKED_AT {
            let ids = self.next(read, &lead, next)?;
            let is_end = ids.len() < usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
            looked_at += AT_ONCE;
            next = ids.last().copied().filter(|_| !is_end);
            let ids = self.matching(read, &lead, ids)?;
            rows.extend(self.rows(read, &ids, most - rows.len() + 1)?);
            if rows.len() > most {
                rows.truncate(most);
                next = rows.last().map(|row| row.id);
                break;
            }
            if is_end {
                break;
            }
        }
        Ok(Found { rows, next })
    }

    /// Of several words the one whose newest messages reach back the furthest is the rarest.
    fn lead(&self, read: &mut Read, after: Option<MessageId>) -> Result<Lead> {
        if self.search.contact_id.is_some() {
            return Ok(Lead::Contact);
        }
        let mut best: Option<(bool, MessageId, &String)> = None;
        let after = after.unwrap_or(MessageId(i64::MAX));
        for word in &self.wanted.words {
            let ids = self.of_word(read, word, after)?;
            let is_full = ids.len() >= usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
            let reach = (is_full, ids.last().copied().unwrap_or(MessageId(0)), word);
            if best.is_none_or(|best| (reach.0, reach.1) < (best.0, best.1)) {
                best = Some(reach);
            }
        }
        match best {
            Some((_, _, word)) => Ok(Lead::Word(word.clone())),
            None => {
                let endings = self.endings(read)?;
                Ok(if endings.len() > MAX_ENDINGS { Lead::All } else { Lead::Beginning(endings) })
            }
        }
    }

    fn next(&self, read: &mut Read, lead: &Lead, before: Option<MessageId>) -> Result<Vec<MessageId>> {
        let before = before.unwrap_or(MessageId(i64::MAX));
        let ids = match lead {
            Lead::Contact => return self.of_contact(read, before),
            Lead::Word(word) => return self.of_word(read, word, before),
            Lead::All => self.of_channels(read, before)?,
            Lead::Beginning(words) => {
                let mut ids = BTreeSet::new();
                for word in words {
                    ids.extend(self.of_word(read, word, before)?);
                }
                ids
            }
        };
        let most = usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
        Ok(ids.into_iter().rev().take(most).collect())
    }

    fn of_contact(&self, read: &mut Read, before: MessageId) -> Result<Vec<MessageId>> {
        Ok(messages::table
            .filter(messages::contact_id.nullable().eq(self.search.contact_id))
            .filter(messages::workspace_id.eq(self.workspace))
            .filter(messages::id.lt(before))
            .order(messages::id.desc())
            .limit(AT_ONCE)
            .select(messages::id)
            .load(read.connection())?)
    }

    /// The newest messages of all channels, each by an index.
    fn of_channels(&self, read: &mut Read, before: MessageId) -> Result<BTreeSet<MessageId>> {
        let channels = channels::ids(read, self.workspace)?;
        let mut ids = BTreeSet::new();
        for channel in channels.into_iter().filter(|id| self.search.channel_id.is_none_or(|only| only == *id))
        {
            let of_channel: Vec<MessageId> = messages::table
                .filter(messages::channel_id.eq(channel))
                .filter(messages::id.lt(before))
                .order(messages::id.desc())
                .limit(AT_ONCE)
                .select(messages::id)
                .load(read.connection())?;
            ids.extend(of_channel);
        }
        Ok(ids)
    }

    fn of_word(&self, read: &mut Read, word: &str, before: MessageId) -> Result<Vec<MessageId>> {
        Ok(message_terms::table
            .filter(message_terms::workspace_id.eq(self.workspace))
            .filter(message_terms::term.eq(word))
            .filter(message_terms::message_id.lt(before))
            .order(message_terms::message_id.desc())
            .limit(AT_ONCE)
            .select(message_terms::message_id)
            .load(read.connection())?)
    }

    /// The words that begin so, each found from the one before.
    fn endings(&self, read: &mut Read) -> Result<Vec<String>> {
        let end = end_of(&self.wanted.beginning);
        let mut words: Vec<String> = Vec::new();
        while words.len() <= MAX_ENDINGS {
            let from = words.last().unwrap_or(&self.wanted.beginning);
            let own = message_terms::table
                .filter(message_terms::workspace_id.eq(self.workspace))
                .filter(message_terms::term.lt(&end))
                .order(message_terms::term)
                .select(message_terms::term);
            let next: Option<String> = if words.is_empty() {
                own.filter(message_terms::term.ge(from)).first(read.connection()).optional()?
            } else {
                own.filter(message_terms::term.gt(from)).first(read.connection()).optional()?
            };
            let Some(next) = next else { break };
            words.push(next);
        }
        Ok(words)
    }

    /// Those of the messages that have the words which do not lead.
    fn matching(&self, read: &mut Read, lead: &Lead, mut ids: Vec<MessageId>) -> Result<Vec<MessageId>> {
        for word in &self.wanted.words {
            if matches!(lead, Lead::Word(leading) if leading == word) {
                continue;
            }
            let having: Vec<MessageId> = message_terms::table
                .filter(message_terms::message_id.eq_any(&ids))
                .filter(message_terms::term.eq(word))
                .select(message_terms::message_id)
                .load(read.connection())?;
            let having: BTreeSet<MessageId> = having.into_iter().collect();
            ids.retain(|id| having.contains(id));
        }
        let last = Some(&self.wanted.beginning).filter(|_| !matches!(lead, Lead::Beginning(_)));
        for beginning in self.wanted.more_beginnings.iter().chain(last) {
            if ids.is_empty() {
                break;
            }
            let having: Vec<MessageId> = message_terms::table
                .filter(message_terms::message_id.eq_any(&ids))
                .filter(message_terms::term.ge(beginning))
                .filter(message_terms::term.lt(end_of(beginning)))
                .select(message_terms::message_id)
                .load(read.connection())?;
            let having: BTreeSet<MessageId> = having.into_iter().collect();
            ids.retain(|id| having.contains(id));
        }
        Ok(ids)
    }

    fn rows(&self, read: &mut Read, ids: &[MessageId], most: usize) -> Result<Vec<MessageRow>> {
        let mut query = messages::table
            .filter(messages::id.eq_any(ids))
            .filter(messages::workspace_id.eq(self.workspace))
            .order(messages::id.desc())
            .limit(i64::try_from(most).unwrap_or(i64::MAX))
            .select(MessageRow::as_select())
            .into_boxed();
        if let Some(channel) = self.search.channel_id {
            query = query.filter(messages::channel_id.eq(channel));
        }
        Ok(query.load(read.connection())?)
    }
}

/// What sorts behind all words that begin so.
fn end_of(beginning: &str) -> String {
    format!("{beginning}{}", char::MAX)
}
