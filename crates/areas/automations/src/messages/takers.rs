//! Automations as takers of messages: those by keyword that interrupt, those by keyword, and those for any message.

use crate::firings::row::FiringStatus;
use crate::matching::{Matching, consider_locked, lock};
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use crate::surroundings::Surroundings;
use crate::triggers::TriggerType;
use crate::triggers::compiled::Settings;
use crate::triggers::config::BusinessHours;
use model::{ContactId, Result, WorkspaceId};
use ports::{
    ChannelQuestion, ChannelTurns, IncomingMessage, IncomingMessages, MessageTaker, Opening, TakerRank,
    Taking,
};
use serde_json::{Value, json};
use std::sync::Arc;
use store::{Read, Tx};

/// Takes messages for automations.
pub(crate) struct Taker {
    rank: TakerRank,
    matching: Matching,
    around: Surroundings,
    turns: Arc<dyn ChannelTurns>,
}

/// The takers of all ranks.
pub(crate) fn takers(
    matching: &Matching,
    around: &Surroundings,
    turns: &Arc<dyn ChannelTurns>,
) -> Vec<Arc<dyn MessageTaker>> {
    let taker = |rank| -> Arc<dyn MessageTaker> {
        Arc::new(Taker { rank, matching: matching.clone(), around: around.clone(), turns: turns.clone() })
    };
    [TakerRank::Interrupting, TakerRank::Keyword, TakerRank::Message].into_iter().map(taker).collect()
}

/// An automation that messages fit.
struct Fitting<'a> {
    rule: &'a Arc<Rule>,
    /// The word, and its length.
    word: Option<(usize, String)>,
}

impl MessageTaker for Taker {
    fn rank(&self) -> TakerRank {
        self.rank
    }

    fn awaits_choice(&self, _: &mut Read, _: WorkspaceId, _: ContactId) -> Result<bool> {
        Ok(false)
    }

    fn offer(&self, tx: &mut Tx, workspace: WorkspaceId, messages: &IncomingMessages) -> Result<Taking> {
        let sets = self.matching.rules.of(tx, &[workspace])?;
        let Some(set) = sets.get(&workspace) else { return Ok(Taking::Declined) };
        let kind = match self.rank {
            TakerRank::Message => TriggerType::MessageReceived,
            _ => TriggerType::Keyword,
        };
        let now = tx.now();
        let rules = set.of_messages(kind).filter(|rule| rule.row.is_active(now));
        let mut fitting: Vec<Fitting<'_>> = rules.filter_map(|rule| self.fits(rule, messages)).collect();
        // The longest word counts; among equal ones the priority, by which they are ordered already.
        fitting.sort_by_key(|one| std::cmp::Reverse(one.word.as_ref().map_or(0, |(length, _)| *length)));
        lock(tx, fitting.iter().map(|one| &**one.rule))?;
        let mut taking = Taking::Declined;
        for one in fitting {
            if !self.is_in_time(tx, workspace, one.rule, messages)? {
                continue;
            }
            if !self.fires(tx, workspace, &one, messages)? {
                continue;
            }
            if one.rule.stops_processing() {
                return Ok(Taking::Taken);
            }
            taking = Taking::TakenAlso;
        }
        Ok(taking)
    }
}

impl Taker {
    /// Returns whether messages fit a trigger, as far as no database is needed.
    fn fits<'a>(&self, rule: &'a Arc<Rule>, messages: &IncomingMessages) -> Option<Fitting<'a>> {
        let is_of = |channel: Option<i64>| channel.is_none_or(|channel| channel == messages.channel.0);
        match &rule.settings {
            Settings::Keyword(settings, words) => {
                let is_ranked = settings.interrupt == (self.rank == TakerRank::Interrupting);
                if !is_ranked || !is_of(settings.channel_id) {
                    return None;
                }
                let whole = whole_text(&messages.messages);
                let texts =
                    messages.messages.iter().map(|message| message.text.as_str()).chain([whole.as_str()]);
                let found = texts.filter_map(|text| words.longest(text));
                let (length, word) = found.max_by_key(|(length, _)| *length)?;
                Some(Fitting { rule, word: Some((length, word.to_owned())) })
            }
            Settings::Message(settings) => is_of(settings.channel_id).then_some(Fitting { rule, word: None }),
            _ => None,
        }
    }

    /// Returns whether they are the first ones, and arrive within the hours, where the trigger wants that.
    fn is_in_time(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        rule: &Rule,
        messages: &IncomingMessages,
    ) -> Result<bool> {
        let Settings::Message(settings) = &rule.settings else { return Ok(true) };
        if settings.first_only && !self.is_first(read, workspace, messages)? {
            return Ok(false);
        }
        if settings.business_hours == BusinessHours::Any {
            return Ok(true);
        }
        let now = read.now();
        let opening = self.around.business.opening(read, workspace, now)?;
        let is_open = !matches!(opening, Some(Opening::Closed(_)));
        Ok(is_open == (settings.business_hours == BusinessHours::Open))
    }

    fn is_first(&self, read: &mut Read, workspace: WorkspaceId, messages: &IncomingMessages) -> Result<bool> {
        let Some(first) = messages.messages.first() else { return Ok(false) };
        let question = ChannelQuestion { conversation: messages.conversation, first: first.id };
        Ok(self.turns.before(read, workspace, question, None, 1)?.is_empty())
    }

    /// Makes messages a firing. Returns whether it fires.
    fn fires(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        one: &Fitting<'_>,
        messages: &IncomingMessages,
    ) -> Result<bool> {
        let is_first = self.is_first(tx, workspace, messages)?;
        let last = messages.messages.last().map(|message| message.id.to_string()).unwrap_or_default();
        let occurrence = Occurrence {
            key: format!("message:{last}"),
            event: None,
            kind: one.rule.row.trigger_type.as_str().to_owned(),
            payload: payload(messages, one.word.as_ref().map(|(_, word)| word.as_str()), is_first),
            contact: Some(messages.contact.id),
            livemode: true,
            chain: tx.chain().cloned(),
            missed: None,
        };
        let firing = consider_locked(tx, &self.matching, one.rule, &occurrence)?;
        let fires = matches!(firing.status, FiringStatus::Pending | FiringStatus::Held);
        if fires && self.rank == TakerRank::Interrupting {
            self.around.flows.get()?.interrupt(tx, workspace, messages.contact.id)?;
        }
        Ok(fires)
    }
}

fn whole_text(messages: &[IncomingMessage]) -> String {
    messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// `$trigger` of messages.
fn payload(messages: &IncomingMessages, word: Option<&str>, is_first: bool) -> Value {
    let each = messages.messages.iter();
    let each: Vec<Value> = each
        .map(|message| json!({ "id": message.id, "text": message.text, "reply_id": message.reply_id }))
        .collect();
    json!({
        "text": whole_text(&messages.messages),
        "messages": each,
        "keyword": word,
        "channel_id": messages.channel,
        "conversation_id": messages.conversation,
        "contact_id": messages.contact.id,
        "is_first": is_first,
    })
}
