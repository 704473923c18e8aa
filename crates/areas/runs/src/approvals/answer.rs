//! Answers to approval requests: what is decided about each call, and the run that goes on, in one transaction under
//! the run's lock. Of two people who answer at once one wins.

use super::link::ApprovalRef;
use super::queries;
use crate::engine::RunEngine;
use crate::queries::runs;
use crate::run::{Approval, ApprovalRequest, RunRow, RunStatus, StepRow, StepStatus, ToolInput, Verdict};
use action_links::Decision;
use model::{Code, Error, JsonText, Result, RunId, StepId, Timestamp};
use serde::Serialize;
use store::{Read, Tx};

/// A question that can be answered.
pub(crate) struct OpenRequest {
    question: ApprovalRequest,
    /// The calls that it is about.
    pub(crate) calls: Vec<StepRow>,
}

/// An answer that counts.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ApprovalResult {
    object: &'static str,
    run_id: RunId,
    /// `approved`, or `refused` where no call may be made.
    pub(crate) decision: Verdict,
    pub(crate) calls: Vec<AnsweredCall>,
    note: Option<String>,
    decided_at: Timestamp,
}

/// Decision about one call.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AnsweredCall {
    step_id: StepId,
    pub(crate) tool: String,
    pub(crate) decision: Verdict,
}

impl OpenRequest {
    /// Until when.
    pub(crate) fn expires_at(&self) -> Timestamp {
        self.question.expires_at()
    }
}

impl RunEngine {
    /// Takes an answer, and lets the run go on.
    ///
    /// # Errors
    /// `not_found`, `invalid_state` where it was answered before, `approval_expired` where nothing is asked any more,
    /// `validation_error` for calls that it is not about.
    pub(crate) async fn answer(&self, question: ApprovalRef, decision: Decision) -> Result<ApprovalResult> {
        let (row, answered) = self.db().write(move |tx| answer_in(tx, &question, &decision)).await?;
        tracing::debug!(run_id = %row.id, "a run goes on after an answer");
        self.spawn_resume(row);
        Ok(answered)
    }
}

fn answer_in(tx: &mut Tx, question: &ApprovalRef, decision: &Decision) -> Result<(RunRow, ApprovalResult)> {
    let row = runs::locked(tx, question.workspace, &question.run)?;
    let open = open_request(tx, &row, question)?;
    let now = tx.now();
    let asked: Vec<&str> = open.calls.iter().map(|step| step.id.as_str()).collect();
    let verdict = |is_approved| if is_approved { Verdict::Approved } else { Verdict::Refused };
    let verdicts: Vec<Verdict> = decision.approvals(&asked)?.into_iter().map(verdict).collect();
    let is_approved = verdicts.contains(&Verdict::Approved);
    let mut calls = Vec::with_capacity(open.calls.len());
    for (mut step, verdict) in open.calls.into_iter().zip(verdicts) {
        let approval = Approval { decision: verdict, note: decision.note.clone(), decided_at: now };
        let input = step.tool_input().unwrap_or_else(|| ToolInput {
            call_id: String::new(),
            arguments: JsonText::of(&()),
            approval: None,
        });
        step.input = Some(JsonText::of(&ToolInput { approval: Some(approval), ..input }));
        step.status = verdict.into();
        queries::decide_step(tx, &step)?;
        calls.push(AnsweredCall { step_id: step.id, tool: step.name, decision: verdict });
    }
    let mut options = row.options()?;
    options.questions.open = None;
    options.handed_over += 1;
    options.questions.waited_ms += now.millis() - open.question.asked_at.millis();
    let row = queries::go_on_answered(tx, &row, &options)?;
    let answered = ApprovalResult {
        object: "approval",
        run_id: row.id.clone(),
        decision: if is_approved { Verdict::Approved } else { Verdict::Refused },
        calls,
        note: decision.note.clone(),
        decided_at: now,
    };
    Ok((row, answered))
}

/// The question that a link is about, while it can be answered.
///
/// # Errors
/// `invalid_state` where it was answered, `approval_expired` where an answer would come too late.
pub(crate) fn open_request(read: &mut Read, row: &RunRow, wanted: &ApprovalRef) -> Result<OpenRequest> {
    let status = row.status;
    let question = row.options()?.questions.open.filter(|question| question.from == wanted.from);
    if let Some(question) = question.filter(|_| status == RunStatus::RequiresAction) {
        if question.expires_at() <= read.now() {
            return Err(expired());
        }
        let calls = queries::steps_requiring_action(read, row.workspace_id, &[&row.id])?;
        return Ok(OpenRequest { question, calls });
    }
    let first = queries::step_at(read, row.workspace_id, &row.id, wanted.from)?;
    if first.is_some_and(|step| was_answered(&step)) {
        let message = "The approval request was already answered. The first answer counts.";
        return Err(Error::new(Code::InvalidState, message));
    }
    if status == RunStatus::Expired {
        return Err(expired());
    }
    let message = "The run has ended without these calls, so there is nothing to approve.";
    Err(Error::new(Code::ApprovalExpired, message))
}

fn was_answered(step: &StepRow) -> bool {
    !matches!(step.status, StepStatus::RequiresAction | StepStatus::Cancelled)
        || step.tool_input().is_some_and(|input| input.approval.is_some())
}

fn expired() -> Error {
    Error::new(Code::ApprovalExpired, "The approval request has expired. The calls were not executed.")
}
