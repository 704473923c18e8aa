//! The agent of a run as a caller.

use super::chain_of;
use crate::execution::Execution;
use model::{Actor, ActorType, Caller, Result, ScopeSet, Trace};

/// The agent of a run as the caller of what the run calls, one step further in the chain of causes.
pub(crate) fn agent_caller(execution: &Execution, trace: &Trace, scopes: ScopeSet) -> Result<Caller> {
    let actor = Actor {
        kind: ActorType::Agent,
        id: execution.row.agent_id.to_string(),
        run_id: Some(execution.row.id.clone()),
    };
    let mut caller = execution.plan.caller.acting(actor, scopes);
    caller.trace = Some(trace.clone());
    caller.chain = chain_of(&execution.row)?.map(|chain| chain.next());
    Ok(caller)
}
