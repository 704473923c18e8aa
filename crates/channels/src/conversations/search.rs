//! Search over the words of messages.
//!
//! Messages are looked through newest first, led by the rarest of the words, or by the contact where one is given. The
//! work is bounded: of the messages that lead, the newest [`MOST_LOOKED_AT`] are looked at.

use super::model::MessageSearch;
use crate::messages::{Message, MessageRow, print};
use crate::schema::{message_terms, messages};
use diesel::prelude::*;
use fields::terms::tokens;
use files::Files;
use model::{Caller, Error, MessageId, Result, WorkspaceId};
use operation::{OptIn, OptInList, Query, State, operation};
use std::collections::BTreeSet;
use store::Read;

/// How many messages are looked at together.
const AT_ONCE: i64 = 500;
/// How many messages are looked at for one page.
const MOST_LOOKED_AT: i64 = 5_000;
/// The most words of a search.
const MOST_WORDS: usize = 8;
/// For how many words the beginning of one can stand.
const MOST_ENDINGS: usize = 24;

/// Search message text
///
/// Finds messages that have all words, newest first. The text of voice notes is found too. At most the 5,000 newest messages
/// with the rarest word are searched for one page, and at most 24 words that begin like the last word.
#[operation(get "/conversations/search", scope = "conversations:read", ceiling = 50)]
pub fn search_conversations(
    read: &mut Read,
    caller: &Caller,
    Query(search): Query<MessageSearch>,
    page: OptIn,
    files: State<Files>,
) -> Result<OptInList<Message>> {
    let mut words: Vec<String> = tokens(&search.q);
    let Some(beginning) = words.pop() else {
        return Err(Error::invalid("q", "must have a letter or a digit"));
    };
    words.sort_unstable();
    words.dedup();
    if words.len() >= MOST_WORDS {
        return Err(Error::invalid("q", format_args!("must have at most {MOST_WORDS} words")));
    }
    let mut seeker = Seeker { workspace: caller.workspace_id(), search, words, beginning };
    let after = page.page().after::<MessageId>()?;
    let rows = seeker.find(read, after, page.page().fetch())?;
    let printed = print(read, &files.0, &rows)?;
    Ok(page.answer(printed, |message| message.id.to_string()))
}

struct Seeker {
    workspace: WorkspaceId,
    search: MessageSearch,
    /// Those that a message must have as they are.
    words: Vec<String>,
    /// The word that a message must have, or have one that begins so.
    beginning: String,
}

/// What names the next messages to look at.
enum Lead {
    Contact,
    Word(String),
    Beginning(Vec<String>),
}

impl Seeker {
    fn find(&mut self, read: &mut Read, after: Option<MessageId>, most: i64) -> Result<Vec<MessageRow>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let lead = self.lead(read, after)?;
        let mut found: Vec<MessageRow> = Vec::new();
        let (mut before, mut looked_at) = (after, 0);
        while looked_at < MOST_LOOKED_AT && found.len() < most {
            let ids = self.next(read, &lead, before)?;
            let Some(last) = ids.last().copied() else { break };
            looked_at += AT_ONCE;
            before = Some(last);
            let is_end = ids.len() < usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
            let ids = self.matching(read, &lead, ids)?;
            found.extend(self.rows(read, &ids, most - found.len())?);
            if is_end {
                break;
            }
        }
        Ok(found)
    }

    /// Of several words the one whose newest messages reach back the furthest is the rarest.
    fn lead(&self, read: &mut Read, after: Option<MessageId>) -> Result<Lead> {
        if self.search.contact_id.is_some() {
            return Ok(Lead::Contact);
        }
        let mut best: Option<(bool, MessageId, &String)> = None;
        for word in &self.words {
            let ids = self.of_word(read, word, after)?;
            let is_full = ids.len() >= usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
            let reach = (is_full, ids.last().copied().unwrap_or(MessageId(0)), word);
            if best.is_none_or(|best| (reach.0, reach.1) < (best.0, best.1)) {
                best = Some(reach);
            }
        }
        match best {
            Some((_, _, word)) => Ok(Lead::Word(word.clone())),
            None => Ok(Lead::Beginning(self.endings(read)?)),
        }
    }

    fn next(&self, read: &mut Read, lead: &Lead, before: Option<MessageId>) -> Result<Vec<MessageId>> {
        match lead {
            Lead::Contact => self.of_contact(read, before),
            Lead::Word(word) => self.of_word(read, word, before),
            Lead::Beginning(words) => {
                let mut ids = BTreeSet::new();
                for word in words {
                    ids.extend(self.of_word(read, word, before)?);
                }
                let most = usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
                Ok(ids.into_iter().rev().take(most).collect())
            }
        }
    }

    fn of_contact(&self, read: &mut Read, before: Option<MessageId>) -> Result<Vec<MessageId>> {
        let mut query = messages::table
            .filter(messages::contact_id.nullable().eq(self.search.contact_id))
            .filter(messages::workspace_id.eq(self.workspace))
            .order(messages::id.desc())
            .limit(AT_ONCE)
            .select(messages::id)
            .into_boxed();
        if let Some(before) = before {
            query = query.filter(messages::id.lt(before));
        }
        Ok(query.load(read.connection())?)
    }

    fn of_word(&self, read: &mut Read, word: &str, before: Option<MessageId>) -> Result<Vec<MessageId>> {
        let before = before.unwrap_or(MessageId(i64::MAX));
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
        let end = end_of(&self.beginning);
        let mut words: Vec<String> = Vec::new();
        while words.len() < MOST_ENDINGS {
            let from = words.last().unwrap_or(&self.beginning);
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
        for word in &self.words {
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
        if !matches!(lead, Lead::Beginning(_)) && !ids.is_empty() {
            let having: Vec<MessageId> = message_terms::table
                .filter(message_terms::message_id.eq_any(&ids))
                .filter(message_terms::term.ge(&self.beginning))
                .filter(message_terms::term.lt(end_of(&self.beginning)))
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
