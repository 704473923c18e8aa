//! How runs start.

use super::queries;
use super::row::{FlowRunMode, FlowRunStatus, FlowTriggerType, RunContent, RunRow};
use crate::draft::model::{FlowRow, FlowStatus};
use crate::draft::settings::{FlowOnLimit, FlowPerContact};
use crate::engine::FlowEngine;
use crate::engine::claim::is_live;
use crate::engine::content::Content;
use crate::schema::flow_runs;
use diesel::prelude::*;
use flow_graphs::Graph;
use model::{
    AutomationId, Caller, Chain, Code, ContactId, Error, EventId, FlowId, FlowRunId, JsonText, KeyId,
    RequestId, Result, WorkspaceId,
};
use operation::Resource;
use serde_json::{Value, json};
use std::sync::Arc;
use store::Tx;

/// The furthest place in a chain of causes at which something starts a run of a flow.
const MAX_DEPTH: u32 = 5;

/// A run that is to start.
#[derive(Debug, Clone)]
pub(crate) struct NewRun {
    pub(crate) workspace: WorkspaceId,
    pub(crate) flow: FlowId,
    pub(crate) livemode: bool,
    pub(crate) input: Value,
    pub(crate) payload: Value,
    pub(crate) contact: Option<ContactId>,
    pub(crate) trigger: FlowTriggerType,
    pub(crate) trigger_id: Option<String>,
    pub(crate) automation: Option<AutomationId>,
    pub(crate) event: Option<EventId>,
    pub(crate) request: RequestId,
    pub(crate) chain: Option<Chain>,
    pub(crate) once: Option<String>,
    /// The run around it, the outermost run, and how many flows are around that run.
    pub(crate) parent: Option<(FlowRunId, FlowRunId, i64)>,
    /// The draft, for a test run, with the key of whoever tests.
    pub(crate) test: Option<TestRun>,
    pub(crate) retry_of: Option<FlowRunId>,
}

/// What a test run is given besides its input.
#[derive(Debug, Clone)]
pub(crate) struct TestRun {
    pub(crate) key: KeyId,
    pub(crate) lineage: KeyId,
    /// Whether the draft is executed, and not the published version.
    pub(crate) is_of_draft: bool,
    pub(crate) replies: Vec<String>,
}

impl NewRun {
    /// A run of the published version without an input.
    pub(crate) fn of(workspace: WorkspaceId, flow: FlowId, livemode: bool, request: RequestId) -> Self {
        Self {
            workspace,
            flow,
            livemode,
            input: json!({}),
            payload: Value::Null,
            contact: None,
            trigger: FlowTriggerType::Api,
            trigger_id: None,
            automation: None,
            event: None,
            request,
            chain: None,
            once: None,
            parent: None,
            test: None,
            retry_of: None,
        }
    }

    /// A run that a request starts.
    pub(crate) fn of_request(caller: &Caller, flow: FlowId) -> Self {
        Self {
            chain: caller.chain.clone(),
            ..Self::of(caller.workspace_id(), flow, caller.livemode(), caller.request.clone())
        }
    }
}

/// What became of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Started {
    /// A new run.
    New(FlowRunId),
    /// The run that an earlier attempt has made.
    Known(FlowRunId),
    /// The contact has a run of the flow already, which allows one.
    Active(FlowRunId),
}

impl Started {
    /// The run, for a request that asked for one.
    ///
    /// # Errors
    /// `invalid_state` if the contact has a run already.
    pub(crate) fn run(self) -> Result<FlowRunId> {
        match self {
            Self::New(id) | Self::Known(id) => Ok(id),
            Self::Active(id) => {
                let message = "The contact has a run of this flow that has not ended.";
                let details = json!({ "reason": "contact_run_active", "run_id": id });
                Err(Error::new(Code::InvalidState, message).with("details", details))
            }
        }
    }
}

/// Starts a run. It is executed in this process, if that has room, or by whoever claims it.
///
/// # Errors
/// `not_found`, `invalid_state` (not published, inactive, too deep in a chain of causes), `validation_error` for the input.
pub(crate) fn start(engine: &FlowEngine, tx: &mut Tx, new: &NewRun) -> Result<Started> {
    if let Some(once) = &new.once
        && let Some(id) = queries::by_once_key(tx, new.flow, once)?
    {
        return Ok(Started::Known(id));
    }
    if new.chain.as_ref().is_some_and(|chain| chain.depth > MAX_DEPTH) {
        let message = "The flow was started by what it led to itself, over several steps.";
        return Err(refusal("loop_detected", message));
    }
    let flow = FlowRow::find(tx, new.workspace, &new.flow)?;
    let (version, content) = executed(engine, tx, new, &flow)?;
    if let Some(mismatch) = content.input_mismatch(&new.input) {
        return Err(Error::invalid("input", format_args!("must fit the input schema: {mismatch}")));
    }
    if let Some(active) = make_room(engine, tx, new, &content)? {
        return Ok(Started::Active(active));
    }
    let is_full = queries::count_held(tx, new.flow)? >= content.settings.concurrency.limit;
    let permit = if is_full { None } else { engine.reserve() };
    let row = row(tx, new, &flow, version, &content, permit.is_some())?;
    diesel::insert_into(flow_runs::table).values(&row).execute(tx.connection())?;
    let (engine, id) = (engine.clone(), row.id.clone());
    tx.after_commit(move || match permit {
        Some(permit) => engine.spawn(row, permit),
        None => engine.wake(),
    });
    Ok(Started::New(id))
}

/// The version that a start executes; `None` for the draft of a test.
fn executed(
    engine: &FlowEngine,
    tx: &mut Tx,
    new: &NewRun,
    flow: &FlowRow,
) -> Result<(Option<i64>, Arc<Content>)> {
    if new.test.as_ref().is_some_and(|test| test.is_of_draft) {
        let graph: Graph = flow.graph.parse()?;
        return Ok((None, Arc::new(Content::new(graph, flow.settings.parse()?, None)?)));
    }
    let Some(version) = flow.published_version else {
        return Err(refusal("not_published", "The flow was never published."));
    };
    if flow.status != FlowStatus::Active {
        return Err(refusal("inactive", "The flow is not active."));
    }
    Ok((Some(version), engine.version(tx, new.workspace, flow.id, version)?))
}

/// Applies the limits of the flow. Returns the run that keeps this one from starting.
fn make_room(engine: &FlowEngine, tx: &mut Tx, new: &NewRun, content: &Content) -> Result<Option<FlowRunId>> {
    if new.test.is_some() {
        return Ok(None);
    }
    let settings = &content.settings;
    if let Some(contact) = new.contact.filter(|_| settings.per_contact != FlowPerContact::Many) {
        let open = queries::open_of(tx, new.flow, Some(contact))?;
        if settings.per_contact == FlowPerContact::One
            && let Some(active) = open.first()
        {
            return Ok(Some(active.id.clone()));
        }
        for run in open {
            engine.end_now(tx, run, FlowRunStatus::Cancelled)?;
        }
    }
    let limit = settings.concurrency.limit;
    match settings.concurrency.on_limit {
        FlowOnLimit::Queue => {}
        FlowOnLimit::Skip | FlowOnLimit::CancelOldest => {
            let count = queries::count_open(tx, new.flow, limit)?;
            if i64::try_from(count).unwrap_or(i64::MAX) >= limit {
                if settings.concurrency.on_limit == FlowOnLimit::Skip {
                    return Err(refusal("concurrency_limit", "The flow has as many runs as it allows."));
                }
                if let Some(oldest) = queries::open_of(tx, new.flow, None)?.into_iter().next() {
                    engine.end_now(tx, oldest, FlowRunStatus::Cancelled)?;
                }
            }
        }
    }
    Ok(None)
}

fn row(
    tx: &mut Tx,
    new: &NewRun,
    flow: &FlowRow,
    version: Option<i64>,
    content: &Content,
    is_leased: bool,
) -> Result<RunRow> {
    let now = tx.now();
    let id = FlowRunId::new(now, &*tx.random());
    let (key_id, lineage_id) = match (&new.test, &content.publisher) {
        (Some(test), _) => (test.key.clone(), test.lineage.clone()),
        (None, Some(publisher)) => (publisher.key.clone(), publisher.lineage.clone()),
        (None, None) => return Err(Error::internal("a run that is no test has no publisher")),
    };
    let replies = new.test.as_ref().map(|test| test.replies.clone()).unwrap_or_default();
    let draft = version.is_none().then(|| content.graph.clone());
    let stored = RunContent {
        input: new.input.clone(),
        payload: new.payload.clone(),
        trigger: new.trigger,
        trigger_id: new.trigger_id.clone(),
        event_id: new.event.as_ref().map(ToString::to_string),
        request_id: new.request.clone(),
        draft,
        replies,
        retry_of: new.retry_of.clone(),
    };
    let (parent, root, nesting) = match &new.parent {
        Some((parent, root, nesting)) => (Some(parent.clone()), root.clone(), nesting + 1),
        None => (None, id.clone(), 0),
    };
    let chain = new.chain.clone().unwrap_or_else(|| Chain::starting(EventId::new(now, &*tx.random())));
    Ok(RunRow {
        id,
        workspace_id: new.workspace,
        flow_id: flow.id,
        version,
        livemode: is_live(content.publisher.as_ref(), new.livemode),
        mode: if new.test.is_some() { FlowRunMode::Test } else { FlowRunMode::Live },
        status: FlowRunStatus::Queued,
        pause_reason: None,
        contact_id: new.contact,
        automation_id: new.automation,
        key_id,
        lineage_id,
        content: JsonText::of(&stored),
        state: None,
        output: None,
        error: None,
        response: None,
        chain: Some(JsonText::of(&chain)),
        parent_run_id: parent,
        root_run_id: root,
        nesting,
        once_key: new.once.clone(),
        attempt: 1,
        step_count: 0,
        energy: 0,
        epoch: i64::from(is_leased),
        wake_at: Some(now),
        lease_until: is_leased.then(|| now.plus_seconds(queries::LEASE_SECONDS)),
        expires_at: now.plus_seconds(content.settings.run_timeout_days.saturating_mul(86_400)),
        created_at: now,
        started_at: None,
        ended_at: None,
    })
}

/// The error for a flow that cannot be started now.
pub(crate) fn refusal(reason: &str, message: &str) -> Error {
    Error::new(Code::InvalidState, message).with("details", json!({ "reason": reason }))
}
