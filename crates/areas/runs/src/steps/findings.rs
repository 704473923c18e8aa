//! Findings of guardrails as steps.

use crate::engine::RunEngine;
use crate::execution::Execution;
use crate::guardrails::{self, GuardrailFinding};
use crate::run::{Ending, StepKind, StepStatus};
use model::JsonText;

impl RunEngine {
    /// Adds a finding of guardrails to the steps. The next transaction writes it.
    pub(crate) fn add_finding(&self, execution: &mut Execution, found: &GuardrailFinding) {
        let now = self.db().clock().now();
        let mut step = execution.next_step(now, &*self.db().random(), StepKind::Guardrail);
        step.status = StepStatus::Completed;
        found.stage.as_str().clone_into(&mut step.name);
        step.input = Some(JsonText::of(&found.at));
        step.output = Some(JsonText::of(&found.report));
        step.completed_at = Some(now);
        execution.steps.push(step);
    }

    /// Adds findings of guardrails to the steps. Returns the ending, if one of them ends the run.
    pub(crate) fn add_findings(
        &self,
        execution: &mut Execution,
        found: Vec<GuardrailFinding>,
    ) -> Option<Ending> {
        let mut ending = None;
        for found in found {
            self.add_finding(execution, &found);
            ending =
                ending.or_else(|| guardrails::ending(&found.report, found.stage, &execution.plan.settings));
        }
        ending
    }
}
