//! Closing, snoozing and opening conversations. What a contact writes opens its conversation again.

use crate::messages::ConversationStatus;
use crate::schema::conversations;
use diesel::prelude::*;
use jobs::{Job, JobContext, JobError};
use model::{ConversationId, Error, Result, Timestamp};
use serde::Serialize;
use std::time::Duration;
use store::{OneRow as _, Tx, lock_row};

/// The job that opens snoozed conversations.
const JOB: &str = "conversations.unsnooze";
/// The most characters of a reason.
const MAX_REASON: usize = 200;
/// For how many days a conversation can be snoozed.
const MAX_DAYS: i64 = 366;

/// The state of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Queryable, Selectable)]
#[diesel(table_name = conversations)]
pub struct ConversationState {
    /// The id of the conversation.
    pub id: ConversationId,
    /// The status.
    pub status: ConversationStatus,
    /// Until when the conversation is snoozed.
    pub snoozed_until: Option<Timestamp>,
    /// When the conversation was closed.
    pub closed_at: Option<Timestamp>,
    /// Why the conversation was closed.
    pub close_reason: Option<String>,
}

/// A change of the state of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateChange {
    /// The conversation is over.
    Close {
        /// Why.
        reason: Option<String>,
    },
    /// The conversation is to come back at this time.
    Snooze {
        /// When.
        until: Timestamp,
    },
    /// The conversation goes on.
    Reopen,
}

/// Changes the state of a conversation. A change to the state that it already has makes no new version. Closing a closed
/// conversation changes only the reason.
///
/// # Errors
/// `not_found`, and `validation_error` for a reason that is too long and for a time that is not in the next 366 days.
pub fn set_state(tx: &mut Tx, id: ConversationId, change: &StateChange) -> Result<ConversationState> {
    let found = conversations::table.find(id);
    lock_row!(tx, found.select(conversations::id), for_no_key_update);
    let before: ConversationState = found
        .select(ConversationState::as_select())
        .get_result(tx.connection())
        .or_not_found("conversation")?;
    let after = before.clone().changed(change, tx.now())?;
    if after != before {
        diesel::update(conversations::table.find(id))
            .set((
                conversations::status.eq(after.status),
                conversations::snoozed_until.eq(after.snoozed_until),
                conversations::closed_at.eq(after.closed_at),
                conversations::close_reason.eq(after.close_reason.as_deref()),
                conversations::version.eq(conversations::version + 1),
                conversations::updated_at.eq(tx.now()),
            ))
            .execute(tx.connection())?;
    }
    Ok(after)
}

impl ConversationState {
    fn changed(self, change: &StateChange, now: Timestamp) -> Result<Self> {
        let open = Self {
            status: ConversationStatus::Open,
            snoozed_until: None,
            closed_at: None,
            close_reason: None,
            ..self
        };
        Ok(match change {
            StateChange::Reopen => open,
            StateChange::Close { reason } => {
                let reason = reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
                if reason.is_some_and(|reason| reason.chars().count() > MAX_REASON) {
                    return Err(Error::invalid(
                        "reason",
                        format!("must have at most {MAX_REASON} characters"),
                    ));
                }
                let closed_at = self.closed_at.or(Some(now));
                Self {
                    status: ConversationStatus::Closed,
                    closed_at,
                    close_reason: reason.map(str::to_owned),
                    ..open
                }
            }
            StateChange::Snooze { until } => {
                if *until <= now || *until > now.plus_seconds(MAX_DAYS * 86_400) {
                    return Err(Error::invalid("until", format!("must be in the next {MAX_DAYS} days")));
                }
                Self { status: ConversationStatus::Snoozed, snoozed_until: Some(*until), ..open }
            }
        })
    }
}

/// The job that opens conversations whose snooze is over.
pub(crate) fn job() -> Job {
    Job::every(JOB, Duration::from_secs(30), "opens conversations whose snooze is over", unsnooze)
}

async fn unsnooze(job: JobContext) -> Result<(), JobError> {
    job.db.write(open_due).await?;
    Ok(())
}

fn open_due(tx: &mut Tx) -> Result<()> {
    let now = tx.now();
    diesel::update(conversations::table.filter(conversations::snoozed_until.le(now)))
        .set((
            conversations::status.eq(ConversationStatus::Open),
            conversations::snoozed_until.eq(None::<Timestamp>),
            conversations::version.eq(conversations::version + 1),
            conversations::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}
