//! Findings of guardrails as steps.

use crate::engine::RunEngine;
use crate::execution::Execution;
use crate::guardrails::GuardrailFinding;
use crate::run::{Ending, StepKind, StepStatus};
use model::JsonText;

impl RunEngine {
    /// Adds what guardrails found to a run's steps. It is written with what follows.
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

    /// Adds all that guardrails found to a run's steps. Gives how the run ends, if it does.
    pub(crate) fn add_findings(
        &self,
        execution: &mut Execution,
        found: Vec<GuardrailFinding>,
    ) -> Option<Ending> {
        let mut ending = None;
        for found in found {
            self.add_finding(execution, &found);
            ending = ending.or_else(|| found.report.ending(found.stage, &execution.plan.settings));
        }
        ending
    }
}
