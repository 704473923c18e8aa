//! Agents and functions as targets.

use crate::firings::row::FiringRow;
use crate::rules::row::AutomationRow;
use model::{
    AgentId, Answering, ApiKey, Caller, Chain, Env, FunctionId, JsonText, KeyOwner, Principal, RequestId,
    ScopeSet, Workspace,
};
use ports::{FunctionCall, FunctionCaller, StartOptions, StartRun, StartedBy};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use store::Db;

/// The longest wait for the end of a call of a function.
const PATIENCE: Duration = Duration::from_secs(45);

/// A start that needs no transaction.
pub(super) struct Prepared {
    pub(super) automation: AutomationRow,
    pub(super) firing: FiringRow,
    pub(super) input: Value,
    pub(super) answering: Option<Answering>,
}

fn once(firing: &FiringRow) -> String {
    format!("firing:{}", firing.id)
}

/// The run of an agent that a firing starts.
pub(super) fn agent_run(prepared: Prepared) -> StartRun {
    let Prepared { automation, firing, input, answering } = prepared;
    let text = match input.get("text") {
        Some(Value::String(text)) => text.clone(),
        _ => input.to_string(),
    };
    StartRun {
        workspace: firing.workspace_id,
        key: automation.key_id.clone(),
        agent: Some(AgentId(automation.target_id)),
        input: text,
        trigger: StartedBy::Automation(automation.id),
        answering,
        question: None,
        conversation: None,
        supersedes: false,
        chain: Chain::stored(firing.chain.as_ref()),
        options: StartOptions::default(),
        once: once(&firing),
    }
}

/// The call of a function that a firing makes.
pub(super) fn function_call(db: &Db, prepared: Prepared, workspace: Arc<Workspace>) -> FunctionCall {
    let Prepared { automation, firing, input, .. } = prepared;
    let key = ApiKey {
        id: automation.key_id.clone(),
        lineage: automation.lineage_id.clone(),
        owner: KeyOwner::Workspace(firing.workspace_id),
        env: if firing.livemode { automation.env } else { Env::Test },
        // A call has the scopes of the function's publisher.
        scopes: ScopeSet::default(),
        rate_limit_rpm: None,
        monthly_quota: None,
        budget_cents: None,
        budget_cutoff: false,
        default_workspace: None,
    };
    FunctionCall {
        caller: Caller {
            request: RequestId::new(db.now(), &*db.random()),
            key: Arc::new(key),
            principal: Principal::Key,
            workspace,
            idempotency_key: None,
            trace: None,
            actor: None,
            answering: None,
            chain: Chain::stored(firing.chain.as_ref()),
        },
        function: FunctionId(automation.target_id),
        version: None,
        input: JsonText::of(&input),
        hidden: Vec::new(),
        by: FunctionCaller::Automation(automation.id),
        contact: firing.contact_id,
        once: once(&firing),
        patience: PATIENCE,
    }
}
