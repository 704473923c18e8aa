//! Approvals: tool calls that a person must allow.
//!
//! A tool says whether its calls need a person. Where a model asks for such calls, the others of the same answer are
//! made, then the run waits as `requires_action` and its worker ends: nothing of it lives in memory. The question is
//! answered under a signed link, without a login; then the run goes on where it stopped, in the process that took the
//! answer, or in any other should that die. What nobody answers within a day ends the run as expired.

mod answer;
mod link;
mod page;
mod queries;
mod request;
mod route;

pub(crate) use link::approval_links;
pub(crate) use queries::begin_approved;
pub(crate) use route::Approvals;

use self::link::ApprovalRef;
use crate::engine::RunEngine;
use crate::run::{ApprovalRequest, Run, RunRow, RunStatus, StepRow};
use action_links::{RequiredAction, RequiredCall};
use model::{ContactId, JsonText, Result, RunId, WorkspaceId};
use std::collections::HashMap;
use store::Read;

fn required_call(step: &StepRow) -> RequiredCall {
    let arguments = step.tool_input().map_or_else(|| JsonText::of(&()), |input| input.arguments);
    RequiredCall { step_id: step.id.clone(), tool: step.name.clone(), arguments }
}

impl RunEngine {
    /// Returns the API object of a run for its own caller, with the approval link: a key that can create runs can approve.
    pub(crate) async fn show(&self, row: RunRow) -> Result<Run> {
        if row.status != RunStatus::RequiresAction {
            return row.run();
        }
        let engine = self.clone();
        self.db().read(move |read| engine.shown(read, row.clone(), true)).await
    }

    /// A run as callers see it, with what it asks of people. `may_answer`: the caller may see the link for that.
    pub(crate) fn shown(&self, read: &mut Read, row: RunRow, may_answer: bool) -> Result<Run> {
        let workspace = row.workspace_id;
        let (mut run, asked) = with_request(row)?;
        if let Some(asked) = asked {
            let question = asked.question;
            let steps = queries::steps_requiring_action(read, workspace, &[&run.id])?;
            let calls = steps.iter().map(required_call).collect();
            let link =
                || self.approval_url(&ApprovalRef { workspace, run: run.id.clone(), from: question.from });
            run.required_action = Some(asked.action(calls, may_answer.then(link)));
        }
        Ok(run)
    }
}

/// Runs as lists show them.
pub(crate) fn shown_in_list(read: &mut Read, workspace: WorkspaceId, rows: Vec<RunRow>) -> Result<Vec<Run>> {
    let shown = rows.into_iter().map(with_request).collect::<Result<Vec<_>>>()?;
    let waiting: Vec<&RunId> =
        shown.iter().filter(|(_, question)| question.is_some()).map(|(run, _)| &run.id).collect();
    let steps = if waiting.is_empty() {
        Vec::new()
    } else {
        queries::steps_requiring_action(read, workspace, &waiting)?
    };
    let mut calls: HashMap<RunId, Vec<RequiredCall>> = HashMap::new();
    for step in &steps {
        calls.entry(step.run_id.clone()).or_default().push(required_call(step));
    }
    let runs = shown.into_iter().map(|(mut run, question)| {
        let calls = calls.remove(&run.id).unwrap_or_default();
        run.required_action = question.map(|question| question.action(calls, None));
        run
    });
    Ok(runs.collect())
}

/// A question of a run, and whom the run answers.
struct RunApproval {
    question: ApprovalRequest,
    contact: Option<ContactId>,
}

fn with_request(row: RunRow) -> Result<(Run, Option<RunApproval>)> {
    let asked = if row.status == RunStatus::RequiresAction {
        let options = row.options()?;
        let contact = options.contact;
        options.questions.open.map(|question| RunApproval { question, contact })
    } else {
        None
    };
    Ok((row.run()?, asked))
}

impl RunApproval {
    fn action(self, calls: Vec<RequiredCall>, approval_url: Option<String>) -> RequiredAction {
        let expires_at = self.question.expires_at();
        RequiredAction { kind: "approval", calls, contact_id: self.contact, expires_at, approval_url }
    }
}
