//! Periods of subscriptions: how one begins, is renewed and ends, and the Energy that it brings.
//!
//! A plan is monthly. When a period is over, [`renew`] begins the next one. Whether it is paid is another matter:
//! whoever collects the fee puts the subscription to `past_due` when that fails, and back to `active` when the money
//! is there, which goes on with the same period.

use crate::ledger::{GrantKind, GrantSource, NewGrant, grant};
use auth::workspaces::{self, Subscription, WorkspaceRecord};
use model::{Code, Error, GrantId, Result, SubscriptionStatus, Timestamp, WorkspaceId};
use store::Tx;

/// The most subscriptions that one renewal takes.
const BATCH: i64 = 100;

/// Puts a workspace on a plan. A running period of the same plan goes on; another plan begins one now. It ends at
/// `until`, or a month after it began, and is renewed then. For `trialing` that is the end, for `past_due` the day on
/// which the payment was due, and for `canceled` the last day, now if not given. The Energy that the plan includes is
/// given by [`grant_included`].
///
/// # Errors
/// `validation_error` for a plan that does not exist, a status that only overlays others, and an `until` that the
/// status needs or does not allow; `workspace_not_found`.
pub fn set_plan(
    tx: &mut Tx,
    workspace: WorkspaceId,
    plan: &str,
    status: SubscriptionStatus,
    until: Option<Timestamp>,
) -> Result<WorkspaceRecord> {
    let now = tx.now();
    check(status, until, now)?;
    if auth::plans::by_id(tx, plan)?.is_none() {
        return Err(Error::invalid("plan", "is not in the catalogue"));
    }
    let before = workspaces::lock(tx, workspace)?;
    let (period_start, period_end) = period(&before, plan, status, until, now);
    workspaces::set_subscription(tx, workspace, &Subscription { plan, status, period_start, period_end })
}

fn check(status: SubscriptionStatus, until: Option<Timestamp>, now: Timestamp) -> Result<()> {
    use SubscriptionStatus as S;
    match status {
        S::EnergyDepleted => {
            Err(Error::invalid("status", "`energy_depleted` shows what is so, and cannot be set"))
        }
        S::Trialing | S::PastDue if until.is_none() => {
            Err(Error::invalid("until", format_args!("must be given for `{}`", status.as_str())))
        }
        S::Active | S::Sponsored if until.is_some_and(|until| until <= now) => {
            Err(Error::invalid("until", "must be in the future"))
        }
        _ => Ok(()),
    }
}

/// Whether periods of this status follow each other.
fn is_running(status: SubscriptionStatus) -> bool {
    use SubscriptionStatus as S;
    matches!(status, S::Active | S::Sponsored | S::PastDue)
}

/// The period in which a change of plan leaves a workspace.
fn period(
    before: &WorkspaceRecord,
    plan: &str,
    status: SubscriptionStatus,
    until: Option<Timestamp>,
    now: Timestamp,
) -> (Timestamp, Option<Timestamp>) {
    use SubscriptionStatus as S;
    let is_same = before.plan.as_deref() == Some(plan);
    let went_on = before.period_start.filter(|_| is_same);
    match status {
        S::Active | S::Sponsored => {
            // A payment that was late has written its day over the period's end.
            let month = went_on.map(|start| start.plus_months(1));
            let end = before.period_end.into_iter().chain(month).find(|end| *end > now);
            let running = went_on.filter(|_| is_running(before.subscription)).zip(end);
            let (start, end) = running.unwrap_or((now, now.plus_months(1)));
            (start, Some(until.unwrap_or(end)))
        }
        S::PastDue => (went_on.filter(|_| is_running(before.subscription)).unwrap_or(now), until),
        S::Trialing => (went_on.filter(|_| before.subscription == status).unwrap_or(now), until),
        S::Canceled => (before.period_start.unwrap_or(now), Some(until.unwrap_or(now))),
        S::Inactive | S::EnergyDepleted => (before.period_start.unwrap_or(now), until),
    }
}

/// Says that the running period is the last: at its end the plan is cancelled. [`set_plan`] takes that back.
///
/// # Errors
/// `invalid_state` where the subscription is neither `active` nor `sponsored`, `workspace_not_found`.
pub fn cancel_at_period_end(tx: &mut Tx, workspace: WorkspaceId) -> Result<WorkspaceRecord> {
    use SubscriptionStatus as S;
    let before = workspaces::lock(tx, workspace)?;
    if !matches!(before.subscription, S::Active | S::Sponsored) {
        return Err(Error::new(
            Code::InvalidState,
            "Only a plan that would be renewed ends with its period.",
        ));
    }
    workspaces::end_with_period(tx, workspace)
}

/// Gives the Energy that the workspace's plan includes, once for each period; it ends with the period. `None`
/// where the plan includes none, there is no plan, or it is neither `active`, `sponsored` nor `trialing`.
///
/// # Errors
/// `workspace_not_found`; `validation_error` where the balance would be above what an account may own.
pub fn grant_included(tx: &mut Tx, workspace: WorkspaceId) -> Result<Option<GrantId>> {
    use SubscriptionStatus as S;
    let record = workspaces::by_id(tx, workspace)?;
    if !matches!(record.subscription, S::Active | S::Sponsored | S::Trialing) {
        return Ok(None);
    }
    let (Some(plan), Some(start)) = (record.plan, record.period_start) else { return Ok(None) };
    let included = auth::plans::by_id(tx, &plan)?.map_or(0, |plan| plan.included_energy);
    if included == 0 || record.period_end.is_some_and(|end| end <= tx.now()) {
        return Ok(None);
    }
    let mut new = NewGrant::new(GrantKind::Plan, included);
    new.expires_at = record.period_end;
    new.note = Some(format!("Included in the plan {plan}."));
    let id = format!("{workspace}:{plan}:{}", start.millis());
    new.source = Some(GrantSource { kind: "plan", id });
    grant(tx, workspace, &new).map(Some)
}

/// Begins the next period of the plans whose period is over, and gives the Energy that they include; a plan whose
/// last period is over is cancelled. After a pause only the period that it is now is begun: nobody could use the
/// Energy of those before. Gives the number of workspaces: at most 100, and then there may be more.
///
/// # Errors
/// When the database fails.
pub fn renew(tx: &mut Tx) -> Result<usize> {
    // Grants lock accounts, and all who lock several do so in the order of these workspaces.
    let due = workspaces::due_for_renewal(tx, BATCH)?;
    for workspace in &due {
        renew_one(tx, workspace)?;
    }
    Ok(due.len())
}

fn renew_one(tx: &mut Tx, workspace: &WorkspaceRecord) -> Result<()> {
    let now = tx.now();
    if workspace.cancel_at_period_end {
        return workspaces::cancel(tx, workspace.id);
    }
    let Some((start, end)) = workspace.period_end.map(|end| period_of(end, now)) else { return Ok(()) };
    workspaces::begin_period(tx, workspace.id, start, end)?;
    match grant_included(tx, workspace.id) {
        // One that owns as much as anybody may must not keep the others waiting.
        Err(error) if error.code() == Code::ValidationError => {
            tracing::error!(workspace = workspace.id.0, %error, "a plan's Energy could not be given");
            Ok(())
        }
        given => given.map(drop),
    }
}

/// The month that `now` is in, counted from the end of an earlier period.
fn period_of(earlier: Timestamp, now: Timestamp) -> (Timestamp, Timestamp) {
    let mut months = 1;
    while earlier.plus_months(months) <= now {
        months += 1;
    }
    (earlier.plus_months(months - 1), earlier.plus_months(months))
}

#[cfg(test)]
mod tests {
    use super::period_of;
    use model::Timestamp;

    #[test]
    fn periods_are_months_from_where_the_last_one_ended() {
        for (earlier, now, start, end) in [
            ("2026-01-15T12:00:00Z", "2026-01-15T12:00:00Z", "2026-01-15T12:00:00Z", "2026-02-15T12:00:00Z"),
            ("2026-01-15T12:00:00Z", "2026-02-15T11:59:59Z", "2026-01-15T12:00:00Z", "2026-02-15T12:00:00Z"),
            ("2026-01-15T12:00:00Z", "2026-04-15T12:00:00Z", "2026-04-15T12:00:00Z", "2026-05-15T12:00:00Z"),
            ("2026-01-31T00:00:00Z", "2026-03-01T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"),
        ] {
            let time = |text: &str| Timestamp::parse(text).unwrap();
            assert_eq!(period_of(time(earlier), time(now)), (time(start), time(end)), "{earlier} {now}");
        }
    }
}
