//! Silences: contacts who do not answer our last message, and conversations in which nobody writes.
//!
//! Events of messages begin and end waits, which are rows. A wait that is over fires, and its row goes in the same transaction.

use crate::matching::{Matching, consider};
use crate::occurrence::Occurrence;
use crate::rules::row::{AutomationRow, AutomationStatus};
use crate::schema::{automation_timers, automations};
use crate::timer_rows::{TimerRow, delete};
use crate::triggers::TriggerType;
use crate::triggers::compiled::Settings;
use diesel::prelude::*;
use events::{EventConsumer, LoggedEvent};
use model::{
    AutomationId, ChannelId, ContactId, ConversationId, Env, JsonText, MessageId, Result, Timestamp,
    WorkspaceId,
};
use ports::ContactReferences;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use store::Tx;

const SENT: &str = "contact.message.sent";
const RECEIVED: &str = "contact.message.received";

/// The message with which a silence begins.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Message {
    contact_id: ContactId,
    conversation_id: ConversationId,
    channel_id: ChannelId,
    message_id: MessageId,
}

/// Keeps the waits for silences by the events of messages.
pub(crate) struct Silences;

/// An automation that waits for silences.
struct Waiting {
    row: AutomationRow,
    is_reply: bool,
    minutes: i64,
    channel: Option<i64>,
    allows_self: bool,
}

impl Waiting {
    fn of(row: AutomationRow) -> Option<Self> {
        let config = row.trigger_config.parse().ok()?;
        let (is_reply, minutes, channel) = match Settings::read(row.trigger_type, &config).ok()? {
            Settings::NoReply(settings) => (true, settings.minutes, settings.channel_id),
            Settings::Idle(settings) => (false, settings.minutes, settings.channel_id),
            _ => return None,
        };
        let allows_self = row.policy().is_ok_and(|policy| policy.allow_self_trigger);
        Some(Self { row, is_reply, minutes, channel, allows_self })
    }

    fn key(&self, message: &Message) -> String {
        if self.is_reply {
            reply_key(message.contact_id)
        } else {
            format!("idle:{}", message.conversation_id)
        }
    }

    /// The wait that an event begins; `None` if it begins none.
    fn begun(&self, event: &LoggedEvent, message: &Message) -> Option<TimerRow> {
        // Messages that the automation caused begin no new wait: a contact who never answers would be asked for ever.
        let is_own = event.chain().is_some_and(|chain| chain.automations.contains(&self.row.id));
        let is_ours = event.kind == SENT || !self.is_reply;
        let is_on = self.channel.is_none_or(|channel| channel == message.channel_id.0);
        let begins = is_ours && is_on && (self.allows_self || !is_own);
        begins.then(|| TimerRow {
            automation_id: self.row.id,
            key: self.key(message),
            workspace_id: event.workspace_id,
            contact_id: Some(message.contact_id),
            since: event.created_at,
            due_at: due(event.created_at, self.minutes),
            details: JsonText::of(message),
            chain: Some(JsonText::of(&event.leads_to())),
        })
    }
}

fn reply_key(contact: ContactId) -> String {
    format!("reply:{contact}")
}

fn due(since: Timestamp, minutes: i64) -> Timestamp {
    since.plus_seconds(minutes.saturating_mul(60))
}

impl EventConsumer for Silences {
    fn name(&self) -> &'static str {
        "automations.silences"
    }

    fn wants(&self, kind: &str) -> bool {
        matches!(kind, SENT | RECEIVED)
    }

    fn take(&self, tx: &mut Tx, events: &[LoggedEvent]) -> Result<()> {
        let workspaces: BTreeSet<WorkspaceId> = events.iter().map(|event| event.workspace_id).collect();
        let waiting = waiting(tx, &workspaces)?;
        if waiting.is_empty() {
            return Ok(());
        }
        // The last event of each key decides.
        let mut last: BTreeMap<(AutomationId, String), Option<TimerRow>> = BTreeMap::new();
        for event in events {
            let Ok(message) = event.data.parse::<Message>() else { continue };
            for waiting in waiting.iter().filter(|waiting| waiting.row.workspace_id == event.workspace_id) {
                let begun = waiting.begun(event, &message);
                // A reply ends a wait, whatever the channel. An own message leaves the wait that there is.
                let ends = waiting.is_reply && event.kind == RECEIVED;
                if begun.is_some() || ends {
                    last.insert((waiting.row.id, waiting.key(&message)), begun);
                }
            }
        }
        let begun: Vec<TimerRow> = last.values().flatten().cloned().collect();
        TimerRow::put(tx, &begun)?;
        for waiting in &waiting {
            let ended = last.iter().filter(|((id, _), row)| *id == waiting.row.id && row.is_none());
            let keys: Vec<&str> = ended.map(|((_, key), _)| key.as_str()).collect();
            if !keys.is_empty() {
                delete(tx, waiting.row.id, &keys)?;
            }
        }
        Ok(())
    }
}

fn waiting(tx: &mut Tx, workspaces: &BTreeSet<WorkspaceId>) -> Result<Vec<Waiting>> {
    let rows: Vec<AutomationRow> = automations::table
        .filter(automations::workspace_id.eq_any(workspaces))
        .filter(automations::trigger_type.eq_any([TriggerType::NoReply, TriggerType::ConversationIdle]))
        .filter(automations::status.eq(AutomationStatus::On))
        .order(automations::id)
        .select(AutomationRow::as_select())
        .load(tx.connection())?;
    Ok(rows.into_iter().filter_map(Waiting::of).collect())
}

/// Fires a wait that is over, or lets it go on if the rule has become longer.
pub(super) fn fire(
    tx: &mut Tx,
    matching: &Matching,
    row: Option<&AutomationRow>,
    timer: &TimerRow,
) -> Result<()> {
    let now = tx.now();
    // Messages from before the automation was switched on do not count.
    let row = row.filter(|row| row.is_active(now) && row.enabled_at.is_none_or(|at| at <= timer.since));
    // A wait of the other kind is left from an earlier trigger.
    let waiting = row.cloned().and_then(Waiting::of);
    let Some(waiting) = waiting.filter(|waiting| waiting.is_reply == timer.key.starts_with("reply:")) else {
        return timer.delete(tx);
    };
    let (row, due) = (&waiting.row, due(timer.since, waiting.minutes));
    if due > now {
        return timer.postpone(tx, due);
    }
    if let Ok(message) = timer.details.parse::<Message>() {
        let contact = timer.contact_id.unwrap_or(message.contact_id);
        let occurrence = Occurrence {
            key: format!("{}:{}", timer.key, timer.since.millis()),
            event: None,
            kind: row.trigger_type.as_str().to_owned(),
            payload: json!({
                "contact_id": contact, "conversation_id": message.conversation_id,
                "channel_id": message.channel_id, "message_id": message.message_id, "since": timer.since,
                "minutes": waiting.minutes,
            }),
            contact: Some(contact),
            livemode: row.env == Env::Live,
            chain: model::Chain::stored(timer.chain.as_ref()),
            missed: None,
        };
        consider(tx, matching, row, &occurrence)?;
    }
    timer.delete(tx)
}

/// Waits as references to contacts.
pub(crate) struct SilenceReferences;

impl ContactReferences for SilenceReferences {
    fn tables(&self) -> &'static [&'static str] {
        &["automation_timers"]
    }

    fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<()> {
        let rows: Vec<TimerRow> = of_contacts(workspace, &[from])
            .select(TimerRow::as_select())
            .order((automation_timers::automation_id, automation_timers::key))
            .load(tx.connection())?;
        for row in rows {
            row.delete(tx)?;
            let key = if row.key.starts_with("reply:") { reply_key(to) } else { row.key.clone() };
            // The survivor's own wait stays.
            TimerRow { key, contact_id: Some(to), ..row }.add(tx)?;
        }
        Ok(())
    }

    fn wrote(&self, tx: &mut Tx, workspace: WorkspaceId, contacts: &[ContactId]) -> Result<()> {
        // The event of the message comes later, and the wait may be over before that.
        diesel::delete(of_contacts(workspace, contacts))
            .filter(automation_timers::key.like("reply:%"))
            .execute(tx.connection())?;
        Ok(())
    }

    fn delete(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
        diesel::delete(of_contacts(workspace, &[contact])).execute(tx.connection())?;
        Ok(())
    }
}

#[diesel::dsl::auto_type]
fn of_contacts<'a>(workspace: WorkspaceId, contacts: &'a [ContactId]) -> _ {
    automation_timers::table
        .filter(automation_timers::workspace_id.eq(workspace))
        .filter(automation_timers::contact_id.eq_any(contacts))
}
