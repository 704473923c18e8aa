//! Acceptance of a run: what was asked for, and what becomes of it.

use crate::execution::{Start, Work};
use crate::guardrails::{GuardReport, Guards};
use crate::run::{NewRun, RunOptions};
use agents::guardrails::{Guardrail, GuardrailStage};
use auth::idempotency::Claim;
use model::{Caller, Result};
use std::sync::Arc;

/// A run that was asked for.
pub(crate) struct Asked {
    pub(crate) caller: Caller,
    pub(crate) new: NewRun,
    pub(crate) claim: Option<Claim>,
    /// What of its options the request does not say.
    pub(crate) base: RunOptions,
}

/// The acceptance of a run.
pub(crate) struct Acceptance {
    pub(crate) asked: Arc<Asked>,
    pub(crate) looked: Option<Arc<Looked>>,
}

/// What became of an attempt to accept a run.
pub(crate) enum Accepted {
    Run(Box<Work>, Option<Start>),
    /// Its agent has these guardrails: they look at the input before the run is written.
    LookFirst(Vec<Guardrail>),
}

/// What guardrails made of an input. They are the tenant's patterns on the tenant's text and may take long, so they look
/// outside of the transaction that others wait for.
pub(crate) struct Looked {
    pub(crate) rules: Vec<Guardrail>,
    pub(crate) guards: Arc<Guards>,
    pub(crate) input: String,
    pub(crate) report: Option<GuardReport>,
}

impl Looked {
    pub(crate) fn at(rules: Vec<Guardrail>, mut input: String) -> Result<Self> {
        let guards = Guards::new(&rules)?;
        let report = guards.look_at(GuardrailStage::Input, &mut input);
        Ok(Self { rules, guards: Arc::new(guards), input, report })
    }
}
