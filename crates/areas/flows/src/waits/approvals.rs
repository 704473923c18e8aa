//! Decisions of people under the links of `approval` nodes.
//!
//! Each time that a node asks, its link has an identity of its own: the run and the position of the step. So the link of a
//! decided question decides no later one. A link works once: of two people who decide at the same moment one wins, because what
//! arrives at a wait is written only where nothing has arrived.

use crate::engine::FlowEngine;
use crate::runs::row::RunRow;
use crate::runs::waits::{FlowWaitType, WaitRow, arrive};
use crate::schema::{flow_steps, flow_waits};
use action_links::{Action, Answered, Form, Links};
use bytes::Bytes;
use diesel::prelude::*;
use flow_answers::{ApprovalDetails, FlowDecision, decided_page, question_page};
use maud::Markup;
use model::{Code, Error, FlowRunId, Result, WorkspaceId};
use operation::BoxFuture;
use serde_json::json;
use std::fmt;
use store::{Db, Read, Tx};

/// What a link is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalRef {
    pub(crate) workspace: WorkspaceId,
    pub(crate) run: FlowRunId,
    /// The position of the step.
    pub(crate) position: i64,
}

impl fmt::Display for ApprovalRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.workspace, self.run, self.position)
    }
}

impl ApprovalRef {
    fn parse(identity: &str) -> Option<Self> {
        let (workspace, rest) = identity.split_once('.')?;
        let (run, position) = rest.split_once('.')?;
        Some(Self {
            workspace: workspace.parse().ok()?,
            run: FlowRunId::parse(run)?,
            position: position.parse().ok()?,
        })
    }
}

/// Decides on the approvals of flows.
#[derive(Clone)]
pub(crate) struct FlowApprovals(pub(crate) FlowEngine);

impl Action for FlowApprovals {
    fn links(&self) -> &Links {
        &self.0.0.links
    }

    fn db(&self) -> &Db {
        self.0.db()
    }

    fn nothing(&self) -> Error {
        nothing()
    }

    fn ask(&self, identity: String) -> BoxFuture<Result<Markup>> {
        let engine = self.0.clone();
        Box::pin(async move {
            let of = ApprovalRef::parse(&identity).ok_or_else(nothing)?;
            expect_workspace(&engine, of.workspace).await?;
            let look = move |read: &mut Read| {
                let open = Open::of(read, &of)?;
                let workspace = auth::workspaces::by_id(read, of.workspace)?.name;
                Ok((open, workspace))
            };
            let (open, workspace) = engine.db().read(look).await?;
            Ok(question_page(&workspace, open.run.livemode, &open.details, open.wait.due_at))
        })
    }

    fn answer(&self, identity: String, form: Form, body: Bytes) -> BoxFuture<Result<Answered>> {
        let engine = self.0.clone();
        Box::pin(async move {
            let of = ApprovalRef::parse(&identity).ok_or_else(nothing)?;
            expect_workspace(&engine, of.workspace).await?;
            let deciding = engine.clone();
            let decide = move |tx: &mut Tx| {
                let open = Open::of(tx, &of)?;
                let schema = open.details.form.as_ref();
                let decision = match form {
                    Form::Json => FlowDecision::from_json(&body, schema)?,
                    Form::Page => FlowDecision::from_page(&body, schema)?,
                };
                let data = json!({
                    "object": "flow_approval", "run_id": of.run, "decision": decision.word(),
                    "form": decision.form, "by": decision.by, "note": decision.note, "decided_at": tx.now(),
                });
                if !arrive(tx, &open.wait.run_id, open.wait.token, &data)? {
                    return Err(used());
                }
                deciding.wake_after(tx);
                Ok((data, decision))
            };
            let (data, decision) = engine.db().write(decide).await?;
            Ok(Answered { data, page: decided_page(&decision) })
        })
    }
}

async fn expect_workspace(engine: &FlowEngine, workspace: WorkspaceId) -> Result<()> {
    if engine.0.directory.is_cut(workspace).await? {
        return Err(Error::new(Code::WorkspaceBlocked, "The workspace is blocked."));
    }
    Ok(())
}

/// An approval that can be decided.
struct Open {
    run: RunRow,
    wait: WaitRow,
    details: ApprovalDetails,
}

impl Open {
    /// # Errors
    /// `not_found`, `link_used`, `link_expired`.
    fn of(read: &mut Read, of: &ApprovalRef) -> Result<Self> {
        let run = RunRow::find(read, of.workspace, &of.run)
            .map_err(|error| if error.code() == Code::NotFound { nothing() } else { error })?;
        let wait: Option<WaitRow> = flow_waits::table
            .filter(flow_waits::run_id.eq(&of.run))
            .filter(flow_waits::position.eq(of.position))
            .filter(flow_waits::kind.eq(FlowWaitType::Approval))
            .select(WaitRow::as_select())
            .first(read.connection())
            .optional()?;
        let Some(wait) = wait else { return Err(over(read, of)?) };
        if wait.arrived.is_some() {
            return Err(used());
        }
        if run.status.is_final() || wait.due_at.is_some_and(|due| due <= read.now()) {
            return Err(expired());
        }
        let details = wait.details.parse()?;
        Ok(Self { run, wait, details })
    }
}

/// Why an approval that nobody waits for any more cannot be decided.
fn over(read: &mut Read, of: &ApprovalRef) -> Result<Error> {
    let port: Option<Option<String>> = flow_steps::table
        .find((&of.run, of.position))
        .select(flow_steps::port)
        .first(read.connection())
        .optional()?;
    Ok(match port {
        None => nothing(),
        Some(Some(port)) if matches!(port.as_str(), "approved" | "rejected") => used(),
        Some(_) => expired(),
    })
}

fn nothing() -> Error {
    Error::new(Code::NotFound, "There is no approval at this URL.")
}

fn used() -> Error {
    Error::new(Code::LinkUsed, "This was already decided. The first decision counts.")
}

fn expired() -> Error {
    Error::new(Code::LinkExpired, "The time for this decision is over, or the run has ended.")
}
