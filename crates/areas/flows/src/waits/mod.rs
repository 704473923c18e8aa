//! Who wakes runs: replies of contacts, events, and decisions of people.

pub(crate) mod approvals;
pub(crate) mod energy;
pub(crate) mod events;
pub(crate) mod references;
pub(crate) mod replies;

pub(crate) use events::cancels;

use crate::engine::FlowEngine;
use crate::runs::row::RunRow;
use crate::runs::waits::{FlowWaitType, WaitRow, arrive};
use crate::schema::flow_runs;
use ::events::EventConsumer;
use action_links::LinkRoute;
use diesel::prelude::*;
use model::{FlowRunId, Result, RunId};
use operation::Parts;
use ports::{ContactReferences, MessageTaker};
use serde_json::json;
use std::sync::Arc;
use store::Tx;

/// Adds what wakes runs to the parts of the group.
pub(crate) fn add(parts: Parts, engine: &FlowEngine) -> Parts {
    parts
        .jobs([energy::job(engine)])
        .raw_route(LinkRoute::new(approvals::FlowApprovals(engine.clone())))
        .one_of::<Arc<dyn MessageTaker>>(Arc::new(replies::Replies(engine.clone())))
        .one_of::<Arc<dyn EventConsumer>>(Arc::new(events::FlowEvents(engine.clone())))
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(references::FlowReferences(engine.clone())))
}

/// Looks for what a wait awaits among what has happened already: between the moment from which it counts and the moment at which
/// others could find the wait.
pub(crate) async fn look_back(engine: &FlowEngine, row: &RunRow, wait: WaitRow) -> Result<()> {
    if wait.kind == FlowWaitType::Event {
        return events::look_back(engine, wait).await;
    }
    let (of, workspace) = (engine.clone(), row.workspace_id);
    let look = move |tx: &mut Tx| {
        let key = wait.key.as_deref();
        let arrived = match wait.kind {
            FlowWaitType::FlowRun => match key.and_then(FlowRunId::parse) {
                Some(id) => {
                    let other = RunRow::find(tx, workspace, &id)?;
                    other.status.is_final().then(|| other.end())
                }
                None => None,
            },
            FlowWaitType::AgentRun => match key.and_then(RunId::parse) {
                Some(id) => {
                    of.0.agents.result(tx, workspace, &id)?.map(|ended| json!({ "status": ended.status }))
                }
                None => None,
            },
            FlowWaitType::Handback => match wait.contact_id {
                Some(contact) => {
                    let card = of.0.people.find(tx, workspace, &contact.into())?;
                    card.autopilot.then(|| json!({}))
                }
                None => None,
            },
            _ => None,
        };
        if let Some(arrived) = arrived {
            arrive(tx, &wait.run_id, wait.token, &arrived)?;
        }
        Ok(())
    };
    engine.db().write(look).await
}

/// Lets a run look at its waits again.
fn wake(tx: &mut Tx, run: &FlowRunId) -> Result<()> {
    let now = tx.now();
    diesel::update(flow_runs::table.find(run).filter(flow_runs::ended_at.is_null()))
        .set(flow_runs::wake_at.eq(now))
        .execute(tx.connection())?;
    Ok(())
}
