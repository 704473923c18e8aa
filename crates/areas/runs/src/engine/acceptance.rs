//! Acceptance of a run: what was asked for, and what becomes of it.

use crate::execution::{Execution, FirstStep};
use crate::run::{NewRun, RunOptions};
use ::guardrails::{CompiledGuardrails, Guardrail, GuardrailReport, GuardrailStage};
use auth::idempotency::Claim;
use model::{Caller, Result};
use std::sync::Arc;

/// Request for a run, with its caller.
pub(crate) struct RunRequest {
    pub(crate) caller: Caller,
    pub(crate) new: NewRun,
    pub(crate) claim: Option<Claim>,
    /// Options that the request does not contain.
    pub(crate) base: RunOptions,
}

/// Acceptance of a run, as an entry of a batch.
pub(crate) struct Acceptance {
    pub(crate) request: Arc<RunRequest>,
    pub(crate) inspection: Option<Arc<InputInspection>>,
}

/// Outcome of an attempt to accept a run.
pub(crate) enum Accepted {
    Run(Box<Execution>, Option<FirstStep>),
    /// Its agent has these guardrails: they look at the input before the run is written.
    InspectInput(Vec<Guardrail>),
}

/// Result of the guardrails for an input. Guardrails apply the tenant's patterns to the tenant's text, which can take long, so
/// they run outside the transaction.
pub(crate) struct InputInspection {
    pub(crate) rules: Vec<Guardrail>,
    pub(crate) guardrails: Arc<CompiledGuardrails>,
    pub(crate) input: String,
    pub(crate) report: Option<GuardrailReport>,
}

impl InputInspection {
    pub(crate) fn of(rules: Vec<Guardrail>, mut input: String) -> Result<Self> {
        let guardrails = CompiledGuardrails::new(&rules)?;
        let report = guardrails.inspect(GuardrailStage::Input, &mut input);
        Ok(Self { rules, guardrails: Arc::new(guardrails), input, report })
    }
}
