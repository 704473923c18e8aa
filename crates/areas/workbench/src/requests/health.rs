//! What will stop requests soon: quotas and budgets that are nearly used up, and a workspace that is blocked.

use auth::keys::{self, StoredKey};
use billing::ledger::spent_cents;
use model::{Caller, Result, stricter, text_enum};
use operation::{Json, operation};
use serde::Serialize;
use std::collections::HashMap;
use store::Read;
use utoipa::ToSchema;

/// From which share on somebody should know, in percent.
const WARN_PERCENT: i64 = 80;

text_enum! {
    /// How a check of the workspace or of the installation ended.
    #[derive(PartialOrd, Ord)]
    pub enum HealthState {
        /// Nothing is to be done.
        Ok = "ok",
        /// It works, and needs attention soon.
        Warn = "warn",
        /// Requests are refused, the service would not start again, or a part of it does not work.
        Fail = "fail",
    }
}

text_enum! {
    /// What a check of the workspace's health is about.
    pub enum HealthSubject {
        /// Whether the workspace is active.
        Workspace = "workspace",
        /// The requests of a key in this month.
        Quota = "quota",
        /// The Energy budget of a key in this month.
        Budget = "budget",
    }
}

/// A check of the workspace's health.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "subject": "budget", "state": "warn", "target": "key_01m7w4n5e0k3p8r2v6x9b1d4f7", "name": "Shop", "percent": 84,
    "used": 4200, "limit": 5000, "message": "The key has used 84 percent of its budget of this month.",
}))]
pub struct HealthCheck {
    /// What it is about.
    pub subject: HealthSubject,
    /// How it ended.
    pub state: HealthState,
    /// The id of the object.
    pub target: Option<String>,
    /// The name of the object.
    pub name: Option<String>,
    /// How much is used: requests, or cents.
    pub used: Option<i64>,
    /// How much can be used.
    pub limit: Option<i64>,
    /// The share that is used, in whole percent.
    pub percent: Option<i64>,
    /// What it found.
    pub message: String,
}

/// The health of the workspace's use of the API.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "state": "warn" }))]
pub struct WorkspaceHealth {
    /// Always `workspace_health`.
    pub object: &'static str,
    /// The worst of all checks.
    pub state: HealthState,
    /// The checks, the worst first.
    pub checks: Vec<HealthCheck>,
}

/// The health of the workspace's use of the API
///
/// Checks whether the workspace is active, and how much of their quotas and budgets its keys have used this month.
#[operation(get "/dashboard/health", session = "logs:read")]
pub fn get_workspace_health(read: &mut Read, caller: &Caller) -> Result<Json<WorkspaceHealth>> {
    let now = read.now();
    let mut checks = vec![of_workspace(caller)];
    let used = auth::requests_by_lineage(read, caller.workspace_id(), now.month_start().day(), now.day())?;
    let used: HashMap<String, i64> = used.into_iter().collect();
    for stored in keys::list(read, Some(caller.workspace_id()))? {
        if stored.status(now) != "active" {
            continue;
        }
        checks.extend(of_quota(caller, &stored, &used));
        checks.extend(of_budget(read, &stored)?);
    }
    checks.sort_by_key(|check| std::cmp::Reverse((check.state, check.percent)));
    let state = checks.first().map_or(HealthState::Ok, |check| check.state);
    Ok(Json(WorkspaceHealth { object: "workspace_health", state, checks }))
}

fn of_workspace(caller: &Caller) -> HealthCheck {
    let blocked = caller.workspace.blocked_reason.clone();
    HealthCheck {
        subject: HealthSubject::Workspace,
        state: if blocked.is_some() { HealthState::Fail } else { HealthState::Ok },
        target: Some(caller.workspace_id().to_string()),
        name: None,
        used: None,
        limit: None,
        percent: None,
        message: blocked.unwrap_or_else(|| "The workspace is active.".to_owned()),
    }
}

fn of_quota(caller: &Caller, stored: &StoredKey, used: &HashMap<String, i64>) -> Option<HealthCheck> {
    let limit = stricter(stored.key.monthly_quota, caller.workspace.plan.monthly_quota)?;
    let used = used.get(stored.key.lineage.as_str()).copied().unwrap_or_default();
    Some(share(HealthSubject::Quota, stored, used, limit, true))
}

fn of_budget(read: &mut Read, stored: &StoredKey) -> Result<Option<HealthCheck>> {
    let Some(limit) = stored.key.budget_cents else { return Ok(None) };
    let spent = spent_cents(read, &stored.key.lineage)?;
    Ok(Some(share(HealthSubject::Budget, stored, spent, limit, stored.key.budget_cutoff)))
}

fn share(subject: HealthSubject, stored: &StoredKey, used: i64, limit: i64, refuses: bool) -> HealthCheck {
    let percent = if limit == 0 { 100 } else { used.saturating_mul(100) / limit };
    let state = match percent {
        100.. if refuses => HealthState::Fail,
        WARN_PERCENT.. => HealthState::Warn,
        _ => HealthState::Ok,
    };
    let what = match subject {
        HealthSubject::Quota => "requests",
        HealthSubject::Budget | HealthSubject::Workspace => "budget",
    };
    let env = stored.key.env.as_str();
    HealthCheck {
        subject,
        state,
        target: Some(stored.key.id.to_string()),
        name: Some(stored.name.clone()),
        used: Some(used),
        limit: Some(limit),
        percent: Some(percent),
        message: format!("The {env} key has used {percent} percent of its {what} of this month."),
    }
}
