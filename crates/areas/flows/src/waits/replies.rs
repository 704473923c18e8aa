//! Replies of contacts: the newest run that waits for one takes what the contact wrote.

use crate::draft::settings::FlowWhenHumanActive;
use crate::engine::FlowEngine;
use crate::runs::row::{FlowRunStatus, RunRow};
use crate::runs::waits::{FlowWaitType, WaitRow, arrive};
use crate::schema::flow_waits;
use diesel::prelude::*;
use expressions::text;
use flow_answers::Reply;
use model::{ContactId, JsonText, MessageId, Result, Timestamp, WorkspaceId};
use ports::{IncomingMessage, IncomingMessages, MessageTaker, TakerRank, Taking};
use regex::RegexBuilder;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Read, Tx};

/// The most waits of a contact that are looked at.
const MOST_WAITS: i64 = 20;
/// The beginning of the ids of buttons and rows of questions.
pub(crate) const BUTTON_PREFIX: &str = "flow:";
/// The most bytes of a compiled regular expression.
const LARGEST_PATTERN: usize = 256 * 1024;

/// What is stored with a wait for a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReplyDetails {
    /// The message with the question. Only later messages answer it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<MessageId>,
    /// Only messages from then on count. Without it, those from the beginning of the step on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// The ids of the buttons or rows of the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) buttons: Vec<String>,
    /// Words of which one must be in a message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) keywords: Vec<String>,
    /// A regular expression that a message must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pattern: Option<String>,
    /// What happens while a person answers the contact.
    pub(crate) when_human_active: FlowWhenHumanActive,
    /// The number of answers that did not fit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) misses: i64,
    /// What was gathered so far, by a node that waits for further messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gathered: Vec<Reply>,
    /// The seconds that are left of the timeout, while a person answers the contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_seconds: Option<i64>,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl ReplyDetails {
    /// Details of a wait for any message.
    pub(crate) fn new(when_human_active: FlowWhenHumanActive) -> Self {
        Self {
            asked: None,
            since: None,
            buttons: Vec::new(),
            keywords: Vec::new(),
            pattern: None,
            when_human_active,
            misses: 0,
            gathered: Vec::new(),
            left_seconds: None,
        }
    }

    /// The messages that the wait is for. None if no message has a keyword or fits the pattern.
    fn counted(&self, wait: &WaitRow, messages: &[IncomingMessage]) -> Vec<Reply> {
        let since = self.since.unwrap_or(wait.since);
        let counts = |message: &&IncomingMessage| {
            let is_later = match self.asked {
                Some(asked) => message.id > asked,
                None => message.at >= since,
            };
            // A button of another question answers that one.
            let is_of_question = |id: &&String| id.starts_with(BUTTON_PREFIX);
            let is_own =
                message.reply_id.as_ref().filter(is_of_question).is_none_or(|id| self.buttons.contains(id));
            is_later && is_own && wait.due_at.is_none_or(|due| message.at <= due)
        };
        let counted: Vec<&IncomingMessage> = messages.iter().filter(counts).collect();
        if !counted.iter().any(|message| self.is_wanted(&message.text)) {
            return Vec::new();
        }
        counted.into_iter().map(reply_of).collect()
    }

    /// Returns whether a text has a keyword and fits the pattern, as far as there are any.
    fn is_wanted(&self, said: &str) -> bool {
        if !self.gathered.is_empty() {
            return true;
        }
        let folded = text::base(&text::fold(said));
        let has = |keyword: &String| {
            let keyword = text::base(&text::fold(keyword.trim()));
            !keyword.is_empty() && has_words(&folded, &keyword)
        };
        let fits = |pattern: &String| {
            let mut builder = RegexBuilder::new(pattern);
            let built = builder.size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_PATTERN).build();
            built.is_ok_and(|pattern| pattern.is_match(said))
        };
        (self.keywords.is_empty() || self.keywords.iter().any(has)) && self.pattern.as_ref().is_none_or(fits)
    }
}

/// Returns whether a text contains words that are not part of longer ones.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(place, _)| {
        let before = text.get(..place).and_then(|before| before.chars().next_back());
        let behind = text.get(place + words.len()..).and_then(|behind| behind.chars().next());
        ![before, behind].into_iter().flatten().any(char::is_alphanumeric)
    })
}

fn reply_of(message: &IncomingMessage) -> Reply {
    let IncomingMessage { id, text, reply_id, files, .. } = message.clone();
    Reply { id, text, reply_id, file_ids: files }
}

/// Takes messages for runs that wait for a reply.
pub(crate) struct Replies(pub(crate) FlowEngine);

impl MessageTaker for Replies {
    fn rank(&self) -> TakerRank {
        TakerRank::WaitingRun
    }

    fn awaits_choice(&self, read: &mut Read, workspace: WorkspaceId, contact: ContactId) -> Result<bool> {
        let waits = open(read, workspace, contact)?;
        let details = waits.iter().filter_map(|wait| wait.details.parse::<ReplyDetails>().ok());
        Ok(details.into_iter().any(|details| !details.buttons.is_empty()))
    }

    fn offer(&self, tx: &mut Tx, workspace: WorkspaceId, offered: &IncomingMessages) -> Result<Taking> {
        for wait in open(tx, workspace, offered.contact.id)? {
            let Ok(details) = wait.details.parse::<ReplyDetails>() else {
                tracing::error!(run_id = %wait.run_id, "a wait for a reply cannot be read");
                continue;
            };
            if !offered.contact.autopilot {
                match details.when_human_active {
                    FlowWhenHumanActive::Continue => {}
                    FlowWhenHumanActive::Hold => continue,
                    FlowWhenHumanActive::Cancel => {
                        cancel(&self.0, tx, &wait)?;
                        continue;
                    }
                }
            }
            let replies = details.counted(&wait, &offered.messages);
            if replies.is_empty() {
                continue;
            }
            let what = json!({ "messages": replies, "channel_id": offered.channel });
            if arrive(tx, &wait.run_id, wait.token, &what)? {
                self.0.wake_after(tx);
                return Ok(Taking::Taken);
            }
        }
        Ok(Taking::Declined)
    }
}

/// The waits for replies of a contact to which nothing has arrived, those of the newest run first.
fn open(read: &mut Read, workspace: WorkspaceId, contact: ContactId) -> Result<Vec<WaitRow>> {
    Ok(flow_waits::table
        .filter(flow_waits::workspace_id.eq(workspace))
        .filter(flow_waits::contact_id.eq(contact))
        .filter(flow_waits::kind.eq(FlowWaitType::Reply))
        .filter(flow_waits::arrived.is_null())
        .filter(flow_waits::livemode.eq(true))
        .order((flow_waits::run_id.desc(), flow_waits::position.desc()))
        .limit(MOST_WAITS)
        .select(WaitRow::as_select())
        .load(read.connection())?)
}

/// Cancels the run of a wait.
pub(super) fn cancel(engine: &FlowEngine, tx: &mut Tx, wait: &WaitRow) -> Result<()> {
    let row = RunRow::find(tx, wait.workspace_id, &wait.run_id)?;
    engine.end_now(tx, row, FlowRunStatus::Cancelled)?;
    Ok(())
}

/// A person took the conversation over, or handed it back: the timeouts of questions rest meanwhile.
pub(super) fn handed_over(
    engine: &FlowEngine,
    tx: &mut Tx,
    workspace: WorkspaceId,
    contact: ContactId,
    to_person: bool,
) -> Result<()> {
    for wait in open(tx, workspace, contact)? {
        let Ok(mut details) = wait.details.parse::<ReplyDetails>() else { continue };
        match details.when_human_active {
            FlowWhenHumanActive::Continue => continue,
            FlowWhenHumanActive::Cancel if to_person => {
                cancel(engine, tx, &wait)?;
                continue;
            }
            FlowWhenHumanActive::Cancel => continue,
            FlowWhenHumanActive::Hold => {}
        }
        let now = tx.now();
        let due_at = match (wait.due_at, details.left_seconds) {
            (Some(due), _) if to_person => {
                details.left_seconds = Some((due.millis() - now.millis()).max(0) / 1000);
                None
            }
            (None, Some(left)) if !to_person => {
                details.left_seconds = None;
                Some(now.plus_seconds(left))
            }
            _ => continue,
        };
        diesel::update(flow_waits::table.find((&wait.run_id, wait.token)))
            .set((flow_waits::due_at.eq(due_at), flow_waits::details.eq(JsonText::of(&details))))
            .execute(tx.connection())?;
        super::wake(tx, &wait.run_id)?;
        engine.wake_after(tx);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_whole_words() {
        let wants = |keywords: &[&str], said: &str| {
            let keywords = keywords.iter().map(|word| (*word).to_owned()).collect();
            ReplyDetails { keywords, ..ReplyDetails::new(FlowWhenHumanActive::Hold) }.is_wanted(said)
        };
        assert!(wants(&[], "anything"));
        assert!(wants(&["yes", "sí"], "SI, por favor"));
        assert!(wants(&["call me"], "Please call me!"));
        assert!(!wants(&["no"], "nothing"));
        assert!(!wants(&[" "], "nothing"));
    }

    #[test]
    fn a_pattern_is_part_of_the_message() {
        let wants = |pattern: &str, said: &str| {
            let pattern = Some(pattern.to_owned());
            ReplyDetails { pattern, ..ReplyDetails::new(FlowWhenHumanActive::Hold) }.is_wanted(said)
        };
        assert!(wants("[0-9]{4}", "My order is 1042."));
        assert!(!wants("^[0-9]{4}$", "My order is 1042."));
        assert!(!wants("(a+)+$", &format!("{}b", "a".repeat(50_000))));
        assert!(!wants("((", "(("));
    }
}
