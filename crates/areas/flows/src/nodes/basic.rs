//! Nodes of the engine itself: delays, answers and flows within flows.

use super::calls::{done, done_at};
use super::{Arrival, NodeCall, NodeFailure, Wait, Work};
use crate::runs::row::FlowTriggerType;
use crate::runs::start::{self, NewRun, Started};
use crate::runs::waits::FlowWaitType;
use flow_graphs::config;
use model::{FlowId, FlowRunId};
use ports::FlowResponse;
use serde_json::{Value, json};

/// How deep flows may be nested.
const MAX_NESTING: i64 = 5;

/// The run waits for a span of time.
pub(super) fn delay(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::Delay = call.config()?;
    let jitter = config.jitter_seconds.max(0);
    let drawn = if jitter == 0 {
        0
    } else {
        let mut bytes = [0_u8; 8];
        call.engine.db().random().fill(&mut bytes);
        i64::try_from(u64::from_le_bytes(bytes) % (jitter.unsigned_abs() + 1)).unwrap_or_default()
    };
    let seconds = config.total_seconds();
    if !(0..=config::Delay::LONGEST).contains(&seconds) {
        return Err(NodeFailure::new("invalid_delay", "A delay takes from 0 seconds to 365 days."));
    }
    let due_at = Some(call.began_at.plus_seconds(seconds.saturating_add(drawn)));
    Ok(Work::Waits(Wait { due_at, ..Wait::new(FlowWaitType::Timer) }))
}

/// The delay is over.
pub(super) fn resumed(call: &NodeCall) -> Work {
    done(json!({ "resumed_at": call.engine.now() }))
}

/// A join waits for its branches, for as long as it has time.
pub(super) fn join(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::Join = call.config()?;
    let due_at = config.timeout_seconds.map(|seconds| call.began_at.plus_seconds(seconds));
    Ok(Work::Waits(Wait { due_at, ..Wait::new(FlowWaitType::Timer) }))
}

/// Answers whoever waits for the run.
pub(super) fn respond(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::Respond = call.config()?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(Work::Answers(FlowResponse {
        status: u16::try_from(config.status).unwrap_or(200),
        headers: config.headers.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        body: config.body.unwrap_or_default(),
    }))
}

/// Starts another flow, and waits for it if that is wanted.
pub(super) async fn sub_flow(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::SubFlow = call.config()?;
    if call.run.nesting >= MAX_NESTING {
        let message = format!("Flows are nested more than {MAX_NESTING} deep.");
        return Err(NodeFailure::new("nested_too_deep", message));
    }
    let mut new = NewRun::of(
        call.run.workspace_id,
        FlowId(config.flow_id),
        call.run.livemode,
        call.caller.request.clone(),
    );
    new.input = Value::Object(config.input);
    new.contact = call.run.contact_id;
    new.trigger = FlowTriggerType::Flow;
    new.trigger_id = Some(call.run.id.to_string());
    new.chain = call.run.leads_to();
    new.once = Some(call.key.clone());
    new.parent = Some((call.run.id.clone(), call.run.root_run_id.clone(), call.run.nesting));
    let engine = call.engine.clone();
    let started = call.engine.db().write(move |tx| start::start(&engine, tx, &new)).await?;
    let (Started::New(id) | Started::Known(id)) = started else {
        return Err(NodeFailure::new("contact_run_active", "The contact has a run of that flow already."));
    };
    if !config.wait {
        return Ok(done(json!({ "run_id": id })));
    }
    Ok(Work::Waits(Wait {
        key: Some(id.to_string()),
        details: json!({ "run_id": id }),
        ..Wait::new(FlowWaitType::FlowRun)
    }))
}

/// The other flow has ended.
pub(super) fn sub_flow_ended(wait: &Value, arrival: &Arrival) -> Result<Work, NodeFailure> {
    let run: Option<FlowRunId> = wait.get("run_id").and_then(Value::as_str).and_then(FlowRunId::parse);
    let Arrival::Came(end) = arrival else {
        return Err(NodeFailure::new("timeout", "The other flow has not ended in time."));
    };
    let status = end.get("status").and_then(Value::as_str).unwrap_or_default();
    if status == "completed" {
        let output = end.get("output").cloned().unwrap_or_default();
        return Ok(done_at("next", json!({ "output": output, "run_id": run })));
    }
    let reason = end.pointer("/error/message").and_then(Value::as_str).unwrap_or("It gave no reason.");
    Err(NodeFailure::new(
        "sub_flow_failed",
        format!("The run {} is {status}. {reason}", run.map_or_else(String::new, |run| run.to_string())),
    ))
}
