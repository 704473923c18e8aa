//! Calls that a person must allow.
//!
//! A tool says whether its calls need a person. Where a model asks for such calls, the others of the same answer are
//! made, then the run waits as `requires_action` and its worker ends: nothing of it lives in memory. The question is
//! answered under a signed link, without a login; then the run goes on where it stopped, in the process that took the
//! answer, or in any other should that die. What nobody answers within a day ends the run as expired.

mod answer;
mod ask;
mod decision;
mod link;
mod page;
mod queries;
mod route;

pub(super) use queries::begin_approved;
pub use route::ApprovalRoute;

use super::engine::RunEngine;
use super::model::{Run, RunRow, RunStatus};
use super::trace::StepRow;
use link::Asked;
use model::{Result, RunId, StepId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use store::Read;
use utoipa::ToSchema;

/// How long a person has for an answer.
const PATIENCE_SECONDS: i64 = 24 * 3600;

/// What a run asks of people, and has asked; stored with its options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Questions {
    /// What is asked now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) open: Option<Question>,
    /// How long all answers took, in milliseconds. That is not the run's time.
    #[serde(default)]
    pub(super) waited_ms: i64,
}

impl Questions {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What is asked of people at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    /// The position of the first call that is asked about, which tells the questions of a run apart.
    from: i64,
    asked_at: Timestamp,
}

impl Question {
    fn expires_at(self) -> Timestamp {
        self.asked_at.plus_seconds(PATIENCE_SECONDS)
    }
}

/// What a person has to do before a run goes on.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RequiredAction {
    /// Always `approval`: the person allows or refuses calls of tools.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The calls, in the order in which the model asks for them.
    pub calls: Vec<RequiredCall>,
    /// Until when. Then the run ends as `expired`.
    pub expires_at: Timestamp,
    /// Where the person answers, without a login: whoever has the link can. Only keys with `runs:execute` see it, and
    /// no list shows it.
    pub approval_url: Option<String>,
}

/// A call that a person must allow.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RequiredCall {
    /// The call's step.
    pub step_id: StepId,
    /// The tool.
    pub tool: String,
    /// What it would be called with.
    #[schema(value_type = Object)]
    pub arguments: Value,
}

impl RequiredCall {
    fn of(step: &StepRow) -> Self {
        let arguments = step.tool_input().map_or(Value::Null, |input| input.arguments);
        Self { step_id: step.id.clone(), tool: step.name.clone(), arguments }
    }
}

impl RunEngine {
    /// A run as its caller sees it: whoever may make a run may answer what it asks.
    pub(super) async fn show(&self, row: RunRow) -> Result<Run> {
        if row.status()? != RunStatus::RequiresAction {
            return row.run();
        }
        let engine = self.clone();
        self.db().read(move |read| engine.shown(read, row.clone(), true)).await
    }

    /// A run as callers see it, with what it asks of people. `may_answer`: the caller may see the link for that.
    pub(super) fn shown(&self, read: &mut Read, row: RunRow, may_answer: bool) -> Result<Run> {
        let workspace = row.workspace_id;
        let (mut run, question) = with_question(row)?;
        if let Some(question) = question {
            let steps = queries::asked_steps(read, workspace, &[&run.id])?;
            let calls = steps.iter().map(RequiredCall::of).collect();
            let link = || self.approval_url(&Asked { workspace, run: run.id.clone(), from: question.from });
            run.required_action = Some(required(question, calls, may_answer.then(link)));
        }
        Ok(run)
    }
}

/// Runs as lists show them.
pub(super) fn shown_in_list(read: &mut Read, workspace: WorkspaceId, rows: Vec<RunRow>) -> Result<Vec<Run>> {
    let shown = rows.into_iter().map(with_question).collect::<Result<Vec<_>>>()?;
    let waiting: Vec<&RunId> =
        shown.iter().filter(|(_, question)| question.is_some()).map(|(run, _)| &run.id).collect();
    let steps =
        if waiting.is_empty() { Vec::new() } else { queries::asked_steps(read, workspace, &waiting)? };
    let mut calls: HashMap<RunId, Vec<RequiredCall>> = HashMap::new();
    for step in &steps {
        calls.entry(step.run_id.clone()).or_default().push(RequiredCall::of(step));
    }
    let runs = shown.into_iter().map(|(mut run, question)| {
        let calls = calls.remove(&run.id).unwrap_or_default();
        run.required_action = question.map(|question| required(question, calls, None));
        run
    });
    Ok(runs.collect())
}

fn with_question(row: RunRow) -> Result<(Run, Option<Question>)> {
    let waits = row.status()? == RunStatus::RequiresAction;
    let question = if waits { row.options()?.questions.open } else { None };
    Ok((row.run()?, question))
}

fn required(question: Question, calls: Vec<RequiredCall>, approval_url: Option<String>) -> RequiredAction {
    RequiredAction { kind: "approval", calls, expires_at: question.expires_at(), approval_url }
}
