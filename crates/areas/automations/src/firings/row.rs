//! Rows of firings.

use super::log::{FIRING_LOG, ROW_BYTES};
use crate::schema::automation_firings as table;
use diesel::prelude::*;
use model::{
    AutomationId, ContactId, EventId, FiringId, FlowRunId, InvocationId, JsonText, Result, RunId, Timestamp,
    WorkspaceId, text_enum,
};
use store::logs::{self, Size};
use store::{OneRow, Read, Tx, each, lock_row};

text_enum! {
    /// What became of an occurrence that fits the trigger of an automation.
    pub enum FiringStatus {
        /// What it starts has not been started yet.
        Pending = "pending",
        /// It started the target.
        Dispatched = "dispatched",
        /// It did not fire, for the reason in `reason`.
        Skipped = "skipped",
        /// It waits until a person releases or discards it.
        Held = "held",
        /// It waited, and was discarded.
        Discarded = "discarded",
        /// The target could not be started.
        Failed = "failed",
    }
}

impl FiringStatus {
    /// Returns whether it still waits.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Held)
    }
}

text_enum! {
    /// Why an automation did not fire, or why what it starts was not started.
    pub enum FiringReason {
        /// The conditions do not hold.
        ConditionFalse = "condition_false",
        /// A condition could not be evaluated. `evaluation` says which one, and why.
        ConditionError = "condition_error",
        /// The template of a key or of the input could not be evaluated.
        TemplateError = "template_error",
        /// Another firing with the same key came before (`policy.dedupe`).
        Duplicate = "duplicate",
        /// A later occurrence took its place (`policy.debounce`).
        Debounced = "debounced",
        /// There were too many firings (`policy.throttle`).
        Throttled = "throttled",
        /// The automation rests after a firing (`policy.cooldown_seconds`).
        Cooldown = "cooldown",
        /// It has fired for the contact (`policy.once_per_contact`).
        OncePerContact = "once_per_contact",
        /// The automation caused what fires it, directly or through others.
        LoopDetected = "loop_detected",
        /// It fires much more often than usual.
        Flood = "flood",
        /// A person answers the contact (`policy.when_human_active`).
        HumanActive = "human_active",
        /// The contact wants no marketing messages (`policy.skip_opted_out`).
        OptedOut = "opted_out",
        /// The contact was deleted, or is blocked.
        ContactUnavailable = "contact_unavailable",
        /// The workspace has no Energy.
        EnergyDepleted = "energy_depleted",
        /// What it starts was deleted or switched off.
        TargetInactive = "target_inactive",
        /// What it starts refused to start. `error` says why.
        TargetRefused = "target_refused",
        /// The key that changed the automation last was revoked, or lacks a scope.
        KeyLost = "key_lost",
        /// It is about data of a test key, and a run of an agent would be real.
        TestMode = "test_mode",
        /// The automation was switched off, suspended or deleted while the firing waited.
        SwitchedOff = "switched_off",
        /// A person discarded it while it was held.
        Discarded = "discarded",
        /// What an earlier firing started has not ended (`overlap`).
        Overlap = "overlap",
        /// Its time was missed (`catch_up`).
        Missed = "missed",
    }
}

/// A row of `automation_firings`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = table)]
pub(crate) struct FiringRow {
    /// Its place in the log.
    #[diesel(skip_insertion)]
    pub(crate) number: i64,
    pub(crate) id: FiringId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) automation_id: AutomationId,
    /// What fired: the id of the event, or the slot of a timer. An automation has one firing for each.
    pub(crate) occurrence: String,
    pub(crate) event_id: Option<EventId>,
    /// The type of the event, or that of the trigger.
    pub(crate) kind: String,
    pub(crate) contact_id: Option<ContactId>,
    pub(crate) livemode: bool,
    pub(crate) status: FiringStatus,
    pub(crate) reason: Option<FiringReason>,
    /// JSON: what a guard saw.
    pub(crate) details: Option<JsonText>,
    /// JSON of the conditions with their values.
    pub(crate) evaluation: Option<JsonText>,
    /// JSON of `$trigger`.
    pub(crate) payload: JsonText,
    /// JSON of [`model::Chain`]: the place of what the firing starts.
    pub(crate) chain: Option<JsonText>,
    pub(crate) debounce_key: Option<String>,
    /// Of a firing that is debounced: when the first in the row occurred.
    pub(crate) waiting_since: Option<Timestamp>,
    /// When it starts the target. `None` once it has ended, and while it is held.
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) flow_run_id: Option<FlowRunId>,
    pub(crate) run_id: Option<RunId>,
    pub(crate) invocation_id: Option<InvocationId>,
    /// How what it started has ended, as far as guards have seen it.
    pub(crate) outcome: Option<String>,
    /// JSON of the error of the target.
    pub(crate) error: Option<JsonText>,
    pub(crate) created_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
}

impl FiringRow {
    /// Finds a firing of an automation.
    ///
    /// # Errors
    /// `not_found`.
    pub(crate) fn find(
        read: &mut Read,
        workspace: WorkspaceId,
        automation: AutomationId,
        id: &FiringId,
    ) -> Result<Self> {
        table::table
            .filter(table::id.eq(id))
            .filter(table::workspace_id.eq(workspace))
            .filter(table::automation_id.eq(automation))
            .select(Self::as_select())
            .get_result(read.connection())
            .or_not_found("execution")
    }

    /// Locks a firing and finds it. `None` if it is gone.
    pub(crate) fn locked(tx: &mut Tx, id: &FiringId) -> Result<Option<Self>> {
        lock_row!(tx, table::table.filter(table::id.eq(id)).select(table::number), for_no_key_update);
        Ok(table::table
            .filter(table::id.eq(id))
            .select(Self::as_select())
            .get_result(tx.connection())
            .optional()?)
    }

    /// Finds the firing of an occurrence.
    pub(crate) fn of_occurrence(
        read: &mut Read,
        automation: AutomationId,
        occurrence: &str,
    ) -> Result<Option<Self>> {
        Ok(table::table
            .filter(table::automation_id.eq(automation))
            .filter(table::occurrence.eq(occurrence))
            .select(Self::as_select())
            .get_result(read.connection())
            .optional()?)
    }

    /// Inserts the row. `false` if the automation has a firing for the occurrence.
    pub(crate) fn insert(&self, tx: &mut Tx) -> Result<bool> {
        let inserted = each!(tx.connection(), |connection| diesel::insert_into(table::table)
            .values(self)
            .on_conflict_do_nothing()
            .execute(connection))?;
        if inserted == 1 {
            let bytes = ROW_BYTES.on(tx) + self.text_bytes();
            logs::add(tx, FIRING_LOG.name, &logs::sum([(self.workspace_id, Size::row(bytes))]));
        }
        Ok(inserted == 1)
    }

    /// Writes what may change of a firing that the transaction has locked. `before` is the row as it was.
    pub(crate) fn store(&self, before: &Self, tx: &mut Tx) -> Result<()> {
        diesel::update(table::table.find(self.number))
            .set((
                table::status.eq(self.status),
                table::reason.eq(self.reason),
                table::details.eq(&self.details),
                table::due_at.eq(self.due_at),
                table::flow_run_id.eq(&self.flow_run_id),
                table::run_id.eq(&self.run_id),
                table::invocation_id.eq(&self.invocation_id),
                table::outcome.eq(&self.outcome),
                table::error.eq(&self.error),
                table::ended_at.eq(self.ended_at),
            ))
            .execute(tx.connection())?;
        let growth = Size::part(self.text_bytes() - before.text_bytes());
        logs::add(tx, FIRING_LOG.name, &logs::sum([(self.workspace_id, growth)]));
        Ok(())
    }

    /// Ends it without a start.
    pub(crate) fn end(&mut self, status: FiringStatus, reason: FiringReason, now: Timestamp) {
        self.status = status;
        self.reason = Some(reason);
        self.due_at = None;
        self.ended_at = Some(now);
    }

    fn text_bytes(&self) -> i64 {
        let optional = [&self.details, &self.evaluation, &self.chain, &self.error];
        let texts = optional.into_iter().flatten().chain([&self.payload]);
        texts.map(|text: &JsonText| i64::try_from(text.as_str().len()).unwrap_or(0)).sum()
    }
}

/// Ends all firings of an automation that wait. Returns their number.
pub(crate) fn discard_open(tx: &mut Tx, automation: AutomationId, reason: FiringReason) -> Result<i64> {
    discard(tx, automation, &[FiringStatus::Pending, FiringStatus::Held], reason)
}

fn discard(
    tx: &mut Tx,
    automation: AutomationId,
    those: &[FiringStatus],
    reason: FiringReason,
) -> Result<i64> {
    let now = tx.now();
    let open = table::table.filter(table::automation_id.eq(automation)).filter(table::status.eq_any(those));
    let discarded = diesel::update(open)
        .set((
            table::status.eq(FiringStatus::Discarded),
            table::reason.eq(reason),
            table::due_at.eq(None::<Timestamp>),
            table::ended_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(i64::try_from(discarded).unwrap_or(i64::MAX))
}

/// Finds the firing that waits with a key of `policy.debounce`, and when the first in its row occurred.
pub(crate) fn debounced(
    read: &mut Read,
    automation: AutomationId,
    key: &str,
) -> Result<Option<(FiringId, Timestamp)>> {
    let waiting: Option<(FiringId, Option<Timestamp>, Timestamp)> = table::table
        .filter(table::automation_id.eq(automation))
        .filter(table::debounce_key.eq(key))
        .filter(table::status.eq(FiringStatus::Pending))
        .select((table::id, table::waiting_since, table::created_at))
        .first(read.connection())
        .optional()?;
    Ok(waiting.map(|(id, since, created)| (id, since.unwrap_or(created))))
}

/// Ends a firing whose place a later one takes.
pub(crate) fn replace_debounced(tx: &mut Tx, id: &FiringId) -> Result<()> {
    let now = tx.now();
    diesel::update(table::table.filter(table::id.eq(id)).filter(table::status.eq(FiringStatus::Pending)))
        .set((
            table::status.eq(FiringStatus::Skipped),
            table::reason.eq(FiringReason::Debounced),
            table::due_at.eq(None::<Timestamp>),
            table::ended_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// The most held firings that one request releases.
const MOST_RELEASED: i64 = 1_000;

/// Locks and finds the oldest firings of an automation that are held.
pub(crate) fn held(tx: &mut Tx, automation: AutomationId) -> Result<Vec<FiringRow>> {
    let ids: Vec<FiringId> = table::table
        .filter(table::automation_id.eq(automation))
        .filter(table::status.eq(FiringStatus::Held))
        .order(table::number)
        .limit(MOST_RELEASED)
        .select(table::id)
        .load(tx.connection())?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in &ids {
        rows.extend(FiringRow::locked(tx, id)?.filter(|row| row.status == FiringStatus::Held));
    }
    Ok(rows)
}

/// Discards the firings of an automation that are held. Returns their number.
pub(crate) fn discard_held(tx: &mut Tx, automation: AutomationId) -> Result<i64> {
    discard(tx, automation, &[FiringStatus::Held], FiringReason::Discarded)
}
