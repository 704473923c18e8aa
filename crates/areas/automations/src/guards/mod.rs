//! Guards: what keeps automations from firing each other for ever, and much more often than usual.

use crate::firings::row::FiringReason;
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use model::Result;
use serde_json::Value;
use store::Read;

/// Why a guard does not let an occurrence fire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Halt {
    pub(crate) reason: FiringReason,
    /// What it saw.
    pub(crate) details: Option<Value>,
}

/// Judges an occurrence before its conditions: the chain of causes that led to it.
#[expect(clippy::unnecessary_wraps, reason = "guards read earlier firings")]
pub(crate) fn before(_: &mut Read, _: &Rule, _: &Occurrence) -> Result<Option<Halt>> {
    Ok(None)
}

/// Judges an occurrence that would fire: whether the automation fires much more often than usual.
#[expect(clippy::unnecessary_wraps, reason = "guards read earlier firings")]
pub(crate) fn flood(_: &mut Read, _: &Rule) -> Result<Option<Halt>> {
    Ok(None)
}
