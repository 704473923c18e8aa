//! Acceptance of a run: what was asked for, and what becomes of it.

use super::guard::{GuardReport, Guards};
use super::model::{NewRun, RunOptions};
use super::work::{Start, Work};
use agents::guardrails::{Guardrail, GuardrailStage};
use auth::idempotency::Claim;
use model::{Caller, Result};
use std::sync::Arc;

/// A run that was asked for.
pub(super) struct Asked {
    pub(super) caller: Caller,
    pub(super) new: NewRun,
    pub(super) claim: Option<Claim>,
    /// What of its options the request does not say.
    pub(super) base: RunOptions,
}

/// The acceptance of a run.
pub(super) struct Acceptance {
    pub(super) asked: Arc<Asked>,
    pub(super) looked: Option<Arc<Looked>>,
}

/// What became of an attempt to accept a run.
pub(super) enum Accepted {
    Run(Box<Work>, Option<Start>),
    /// Its agent has these guardrails: they look at the input before the run is written.
    LookFirst(Vec<Guardrail>),
}

/// What guardrails made of an input. They are the tenant's patterns on the tenant's text and may take long, so they look
/// outside of the transaction that others wait for.
pub(super) struct Looked {
    pub(super) rules: Vec<Guardrail>,
    pub(super) guards: Arc<Guards>,
    pub(super) input: String,
    pub(super) report: Option<GuardReport>,
}

impl Looked {
    pub(super) fn at(rules: Vec<Guardrail>, mut input: String) -> Result<Self> {
        let guards = Guards::new(&rules)?;
        let report = guards.look_at(GuardrailStage::Input, &mut input);
        Ok(Self { rules, guards: Arc::new(guards), input, report })
    }
}
