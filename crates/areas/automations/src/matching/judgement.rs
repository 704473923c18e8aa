//! What an occurrence means for an automation.

use crate::firings::row::{FiringReason, FiringStatus};
use model::{ContactId, Timestamp};
use serde_json::Value;

/// What an occurrence means for an automation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) status: FiringStatus,
    pub(crate) reason: Option<FiringReason>,
    /// What a guard or a template saw.
    pub(crate) details: Option<Value>,
    /// The conditions with their values.
    pub(crate) evaluation: Option<Value>,
    /// The contact: that into which the contact of the occurrence was merged, if it was.
    pub(crate) contact: Option<ContactId>,
    /// The keys of the policy.
    pub(crate) keys: JudgedKeys,
    pub(crate) debounce: Option<Debounced>,
    /// When the day of the business ends, for `once_per_contact: per_day`.
    pub(crate) day_ends_at: Option<Timestamp>,
}

/// The values of the keys of a policy.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct JudgedKeys {
    pub(crate) dedupe: Option<String>,
    pub(crate) throttle: Option<String>,
    pub(crate) debounce: Option<String>,
}

/// When a firing that is debounced starts its target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Debounced {
    pub(crate) key: String,
    /// When the first firing in the row occurred.
    pub(crate) since: Timestamp,
    pub(crate) due_at: Timestamp,
    /// The firing that it takes the place of.
    pub(crate) replaces: Option<model::FiringId>,
}

impl Judgement {
    pub(super) fn fires() -> Self {
        Self {
            status: FiringStatus::Pending,
            reason: None,
            details: None,
            evaluation: None,
            contact: None,
            keys: JudgedKeys::default(),
            debounce: None,
            day_ends_at: None,
        }
    }

    pub(super) fn skip(mut self, reason: FiringReason) -> Self {
        self.status = FiringStatus::Skipped;
        self.reason = Some(reason);
        self
    }

    pub(super) fn because(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}
