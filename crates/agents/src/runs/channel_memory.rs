//! Memory of a run that answers over a channel: what the contact, agents and people said there, as turns.

use super::queries::Exchange;
use model::{MessageId, Result, WorkspaceId};
use operation::ports::{ChannelQuestion, ChannelTurn, ChannelTurns, Speaker};
use store::Read;

/// The most messages that are read for each turn that is remembered.
const MESSAGES_OF_TURN: i64 = 4;
/// Stands before the id of a message, so that it is not taken for that of a run.
const PREFIX: &str = "message:";

/// The place of a turn that ends with a message.
pub(super) fn of_message(id: MessageId) -> String {
    format!("{PREFIX}{id}")
}

fn message_of(place: &str) -> Option<MessageId> {
    place.strip_prefix(PREFIX)?.parse().ok().map(MessageId)
}

/// Whether a place is that of a message before a question.
pub(super) fn is_before(place: &str, question: ChannelQuestion) -> bool {
    message_of(place).is_some_and(|id| id < question.first)
}

/// The last `most` turns before a question and behind the place `after`, oldest first.
pub(super) fn turns(
    read: &mut Read,
    all: &dyn ChannelTurns,
    workspace: WorkspaceId,
    question: ChannelQuestion,
    after: Option<&str>,
    most: i64,
) -> Result<Vec<Exchange>> {
    let after = after.and_then(message_of);
    let said = all.before(read, workspace, question, after, most * MESSAGES_OF_TURN)?;
    let mut turns = paired(said);
    let excess = turns.len().saturating_sub(usize::try_from(most).unwrap_or(1));
    turns.drain(..excess);
    Ok(turns)
}

/// Puts what the contact wrote and what was answered to it into turns.
fn paired(said: Vec<ChannelTurn>) -> Vec<Exchange> {
    let mut turns: Vec<Exchange> = Vec::new();
    for ChannelTurn { id, speaker, text } in said {
        let from_contact = speaker == Speaker::Contact;
        let text = match speaker {
            Speaker::Contact | Speaker::Agent => text,
            Speaker::Other(who) => format!("[{who}] {text}"),
        };
        let continued = turns.last_mut().filter(|turn| !from_contact || turn.output.is_none());
        let turn = match continued {
            Some(turn) => turn,
            None => {
                turns.push(Exchange { place: String::new(), input: None, output: None });
                let Some(turn) = turns.last_mut() else { continue };
                turn
            }
        };
        turn.place = of_message(id);
        let side = if from_contact { &mut turn.input } else { &mut turn.output };
        match side {
            Some(earlier) => {
                earlier.push('\n');
                earlier.push_str(&text);
            }
            None => *side = Some(text),
        }
    }
    turns
}
