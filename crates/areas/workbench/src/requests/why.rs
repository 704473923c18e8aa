//! Why a request ended as it did: the checks in their order, up to the one that answered.

use super::events::{self, RequestEvent};
use super::model::{KeyNames, LoggedRequest};
use super::rows::{self, LoggedRow, Wanted};
use auth::keys::{self, StoredKey};
use billing::ledger::spent_cents;
use model::{Caller, Code, Result, Scope, stricter, text_enum};
use operation::Gate;
use operation::request_hours::StatusClass;
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

text_enum! {
    /// How a check ended.
    pub enum RequestCheckState {
        /// The request passed it.
        Passed = "passed",
        /// It refused the request.
        Refused = "refused",
        /// The request did not get there.
        NotReached = "not_reached",
    }
}

text_enum! {
    /// What mends a refused request.
    pub enum RequestMend {
        /// Nothing needs to be mended.
        Nothing = "nothing",
        /// Send a key that is valid.
        UseAnotherKey = "use_another_key",
        /// Create a key that has the scope.
        CreateKey = "create_key",
        /// Raise the limit or the budget of the key.
        ChangeKey = "change_key",
        /// Change the plan of the workspace.
        ChangePlan = "change_plan",
        /// Buy Energy.
        BuyEnergy = "buy_energy",
        /// Send fewer requests, or wait.
        Wait = "wait",
        /// Change the address, the parameters or the body.
        ChangeRequest = "change_request",
        /// Sign in again.
        SignIn = "sign_in",
        /// Send the request again: the fault was the service's.
        SendAgain = "send_again",
    }
}

/// A check of a request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "gate": "scope", "state": "refused", "question": "Does the key have the operation's scope?" }))]
pub struct RequestCheck {
    /// The name of the check.
    pub gate: &'static str,
    /// How it ended.
    pub state: RequestCheckState,
    /// What it asks.
    pub question: &'static str,
}

/// What the check that refused a request looks at, as it is now.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(example = json!({ "needs": "contacts:write", "has": ["contacts:read"] }))]
pub struct RequestFacts {
    /// The scope or permission that the operation needs.
    pub needs: Option<String>,
    /// The scopes of the key that are about the same.
    pub has: Vec<String>,
    /// The limit that was reached: requests, or cents for a budget.
    pub limit: Option<i64>,
    /// How much of it is used now, if that is counted.
    pub used: Option<i64>,
}

/// Why a request ended as it did.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "mend": "create_key" }))]
pub struct RequestReason {
    /// Always `request_reason`.
    pub object: &'static str,
    /// The request.
    pub request: LoggedRequest,
    /// All checks, in their order.
    pub checks: Vec<RequestCheck>,
    /// What the check that refused the request looks at, as it is now.
    pub facts: RequestFacts,
    /// What mends it.
    pub mend: RequestMend,
    /// The last success of the same operation, if the log still has one.
    pub last_success: Option<LoggedRequest>,
    /// The events that the request has led to within ten seconds of its answer: the first 100.
    pub events: Vec<RequestEvent>,
}

/// Explains a request.
pub(super) fn reason(
    read: &mut Read,
    caller: &Caller,
    row: LoggedRow,
    names: &KeyNames,
) -> Result<RequestReason> {
    let refused = row.gate.as_deref().and_then(Gate::parse);
    let key = match &row.key_id {
        Some(id) => keys::find(read, id)?,
        None => None,
    };
    let facts = match (refused, &key) {
        (Some(gate), Some(key)) => facts(read, caller, gate, &row, key)?,
        _ => RequestFacts::default(),
    };
    let last_success = match (&row.operation, refused) {
        (Some(operation), Some(_)) => {
            let wanted = Wanted {
                operation: Some(operation.clone()),
                class: Some(StatusClass::Success),
                ..Wanted::default()
            };
            rows::search(read, caller.workspace_id(), &wanted, 1)?.rows.pop()
        }
        _ => None,
    };
    let events = events::of_request(read, caller.workspace_id(), &row)?;
    Ok(RequestReason {
        object: "request_reason",
        events,
        checks: checks(refused, row.replayed),
        mend: mend(refused, row.code.as_deref(), row.status),
        request: LoggedRequest::of(row, names),
        facts,
        last_success: last_success.map(|row| LoggedRequest::of(row, names)),
    })
}

/// Returns all checks. Those behind the one that refused were not reached; a stored answer ends at its own check.
fn checks(refused: Option<Gate>, replayed: bool) -> Vec<RequestCheck> {
    let mut state = RequestCheckState::Passed;
    let mut all = Vec::new();
    for gate in Gate::ALL {
        if refused == Some(gate) {
            state = RequestCheckState::Refused;
        }
        all.push(RequestCheck { gate: gate.as_str(), state, question: question(gate) });
        let is_last = state == RequestCheckState::Refused || (replayed && gate == Gate::Idempotency);
        if is_last {
            state = RequestCheckState::NotReached;
        }
    }
    all
}

fn question(gate: Gate) -> &'static str {
    match gate {
        Gate::Size => "Are the headers and the body small enough?",
        Gate::Credential => "Is the key or token valid, and of the kind that the operation takes?",
        Gate::Rate => "Is the key below its requests per minute?",
        Gate::Route => "Is there an operation with this path and method?",
        Gate::Workspace => "Does the key have access to the workspace?",
        Gate::Plan => "Is the workspace active?",
        Gate::Scope => "Does the key have the operation's scope?",
        Gate::TestMode => "Is the operation available to test keys?",
        Gate::RecentSignIn => {
            "Has the member signed in within the last ten minutes, if the operation needs that?"
        }
        Gate::Idempotency => "Is there a stored response for the `Idempotency-Key`?",
        Gate::Quota => "Is the key below its requests per month?",
        Gate::Budget => "Is the key below its budget?",
        Gate::Body => "Are the parameters and the body valid?",
        Gate::Operation => "Do the objects exist, and do their states allow it?",
    }
}

/// Returns what a check looks at. The log keeps what the caller was told; these are the numbers of now.
fn facts(
    read: &mut Read,
    caller: &Caller,
    gate: Gate,
    row: &LoggedRow,
    key: &StoredKey,
) -> Result<RequestFacts> {
    let mut facts = RequestFacts::default();
    let plan = &caller.workspace.plan;
    match gate {
        Gate::Scope => {
            let area = row.param.as_deref().and_then(|param| param.split(':').next()).unwrap_or_default();
            let is_near = |scope: &Scope| scope.as_str().split(':').next() == Some(area);
            facts.has =
                key.key.scopes.iter().filter(is_near).map(|scope| scope.as_str().to_owned()).collect();
            facts.needs.clone_from(&row.param);
        }
        Gate::Rate => facts.limit = stricter(key.key.rate_limit_rpm, plan.rate_limit_rpm),
        Gate::Quota => {
            let (now, workspace) = (read.now(), caller.workspace_id());
            let days = (now.month_start().day(), now.day());
            let used = auth::requests_by_lineage(read, workspace, days.0, days.1)?;
            let own = used.into_iter().find(|(lineage, _)| lineage == key.key.lineage.as_str());
            facts.limit = stricter(key.key.monthly_quota, plan.monthly_quota);
            facts.used = Some(own.map_or(0, |(_, requests)| requests));
        }
        Gate::Budget => {
            facts.limit = key.key.budget_cents;
            facts.used = Some(spent_cents(read, &key.key.lineage)?);
        }
        _ => {}
    }
    Ok(facts)
}

fn mend(refused: Option<Gate>, code: Option<&str>, status: i64) -> RequestMend {
    let Some(gate) = refused else { return RequestMend::Nothing };
    let is = |other: Code| code == Some(other.as_str());
    if is(Code::EnergyDepleted) {
        return RequestMend::BuyEnergy;
    }
    if status >= 500 {
        return RequestMend::SendAgain;
    }
    match gate {
        Gate::Credential if is(Code::RateLimited) => RequestMend::Wait,
        Gate::Credential | Gate::TestMode | Gate::Workspace => RequestMend::UseAnotherKey,
        Gate::Rate => RequestMend::Wait,
        Gate::Plan => RequestMend::ChangePlan,
        Gate::Scope => RequestMend::CreateKey,
        Gate::RecentSignIn => RequestMend::SignIn,
        Gate::Quota | Gate::Budget => RequestMend::ChangeKey,
        Gate::Size | Gate::Route | Gate::Idempotency | Gate::Body | Gate::Operation => {
            RequestMend::ChangeRequest
        }
    }
}
