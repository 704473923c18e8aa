//! Subscriptions for the authentication gate: a workspace with its plan, and whether it is blocked.

use crate::schema::{plans, workspaces};
use diesel::prelude::*;
use model::{PartnerId, Plan, Result, SubscriptionStatus, Timestamp, Workspace, WorkspaceId};
use store::Read;

type PlanRow = (String, Option<i64>, Option<i64>, i64, Option<i64>, i64, bool);
type WorkspaceRow =
    (WorkspaceId, String, Option<PartnerId>, SubscriptionStatus, Option<Timestamp>, bool, Option<String>);

/// Returns the current workspaces with their plans, in no particular order. Ids that do not exist are left out.
pub(crate) fn load_workspaces(
    read: &mut Read,
    ids: impl IntoIterator<Item = WorkspaceId>,
) -> Result<Vec<Workspace>> {
    let rows: Vec<(WorkspaceRow, Option<PlanRow>)> = workspaces::table
        .left_join(plans::table.on(workspaces::plan_id.eq(plans::id.nullable())))
        .filter(workspaces::id.eq_any(ids))
        .select((
            (
                workspaces::id,
                workspaces::slug,
                workspaces::partner_id,
                workspaces::subscription_status,
                workspaces::period_end,
                workspaces::cancel_at_period_end,
                workspaces::blocked_reason,
            ),
            (
                plans::id,
                plans::rate_limit_rpm,
                plans::monthly_quota,
                plans::test_runs_per_day,
                plans::contacts_limit,
                plans::usd_micros_per_1000_energy,
                plans::energy_metered,
            )
                .nullable(),
        ))
        .load(read.connection())?;
    let now = read.now();
    Ok(rows.into_iter().map(|(row, plan)| workspace(row, plan, now)).collect())
}

fn workspace(row: WorkspaceRow, plan: Option<PlanRow>, now: Timestamp) -> Workspace {
    let (id, slug, partner, subscription, period_end, ends, blocked) = row;
    let has_plan = plan.is_some();
    let (plan_id, rpm, quota, test_runs, contacts, price, energy_metered) =
        plan.unwrap_or_else(|| (Plan::NONE.to_owned(), None, None, 0, None, 0, true));
    let period = Period { end: period_end, is_last: ends };
    let blocked_reason = blocked.or_else(|| refusal(subscription, has_plan, period, now));
    let plan = Plan {
        id: plan_id,
        rate_limit_rpm: rpm,
        monthly_quota: quota,
        test_runs_per_day: test_runs,
        contacts_limit: contacts,
        usd_micros_per_1000_energy: price,
        energy_metered,
    };
    Workspace { id, slug, partner, plan, subscription, blocked_reason }
}

/// Grace period for a late payment, in seconds.
const GRACE_SECONDS: i64 = 7 * 24 * 3600;

/// A subscription's period.
struct Period {
    end: Option<Timestamp>,
    /// Whether the subscription ends with it.
    is_last: bool,
}

/// Returns why a subscription in this state blocks its workspace, or `None` if it does not. A period that is over but
/// not the last is about to be renewed, so it does not block.
fn refusal(status: SubscriptionStatus, has_plan: bool, period: Period, now: Timestamp) -> Option<String> {
    let over = |grace: i64| period.end.is_some_and(|end| end.plus_seconds(grace) <= now);
    let reason = match status {
        SubscriptionStatus::Inactive => "The workspace has no active plan.",
        _ if !has_plan => "The workspace has no plan.",
        SubscriptionStatus::Trialing if over(0) => "The trial has ended.",
        SubscriptionStatus::Active | SubscriptionStatus::Sponsored if period.is_last && over(0) => {
            "The plan has ended."
        }
        SubscriptionStatus::PastDue if over(GRACE_SECONDS) => "The last payment is overdue.",
        SubscriptionStatus::Canceled if over(0) || period.end.is_none() => "The plan was cancelled.",
        _ => return None,
    };
    Some(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_refuse_when_their_time_is_over() {
        use SubscriptionStatus as S;
        let now = Timestamp::from_millis(1_800_000_000_000);
        let day = |days: i64| Some(now.plus_seconds(days * 86_400));
        for (status, has_plan, end, is_last, refused) in [
            (S::Active, true, day(5), false, false),
            (S::Active, true, day(5), true, false),
            (S::Active, true, day(-30), false, false),
            (S::Active, true, day(0), true, true),
            (S::Active, true, None, false, false),
            (S::Active, false, None, false, true),
            (S::Trialing, true, day(1), false, false),
            (S::Trialing, true, day(0), false, true),
            (S::Sponsored, true, None, false, false),
            (S::Sponsored, true, day(0), true, true),
            (S::PastDue, true, day(-6), false, false),
            (S::PastDue, true, day(-7), false, true),
            (S::Canceled, true, day(1), false, false),
            (S::Canceled, true, day(0), false, true),
            (S::Canceled, true, None, false, true),
            (S::Inactive, true, day(9), false, true),
        ] {
            let refusal = refusal(status, has_plan, Period { end, is_last }, now);
            assert_eq!(refusal.is_some(), refused, "{status:?} {end:?} {is_last}");
        }
    }
}
