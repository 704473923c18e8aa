//! Findings of guardrails as steps.

use crate::engine::RunEngine;
use crate::execution::Work;
use crate::guardrails::GuardFinding;
use crate::run::{Ending, StepKind, StepStatus};
use model::JsonText;

impl RunEngine {
    /// Adds what guardrails found to a run's steps. It is written with what follows.
    pub(crate) fn note(&self, work: &mut Work, found: &GuardFinding) {
        let now = self.db().clock().now();
        let mut step = work.next_step(now, &*self.db().random(), StepKind::Guardrail);
        step.status = StepStatus::Completed;
        found.stage.as_str().clone_into(&mut step.name);
        step.input = Some(JsonText::of(&found.at));
        step.output = Some(JsonText::of(&found.report));
        step.completed_at = Some(now);
        work.steps.push(step);
    }

    /// Adds all that guardrails found to a run's steps. Gives how the run ends, if it does.
    pub(crate) fn note_all(&self, work: &mut Work, found: Vec<GuardFinding>) -> Option<Ending> {
        let mut ending = None;
        for found in found {
            self.note(work, &found);
            ending = ending.or_else(|| found.report.ending(found.stage, &work.plan.settings));
        }
        ending
    }
}
