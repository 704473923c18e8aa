//! With what expressions are evaluated: the values that they read, the time, and limits.

use crate::values::failure::Failure;
use crate::values::value::Value;
use chrono_tz::Tz;
use model::Timestamp;

/// The values that expressions read.
pub trait Scope {
    /// The value of a root: of `contact` for `$contact`.
    ///
    /// # Errors
    /// When it has no value for a reason that should be told.
    fn root(&self, name: &str) -> Result<Value<'_>, Failure>;

    /// The value of a member of a root: of `$name` for `$contact.$name`. A scope that need not have all members ready
    /// implements it.
    ///
    /// # Errors
    /// As [`Self::root`].
    fn member(&self, root: &str, name: &str) -> Result<Value<'_>, Failure> {
        Ok(self.root(root)?.member(name))
    }
}

/// An object has its members as roots.
impl Scope for serde_json::Map<String, serde_json::Value> {
    fn root(&self, name: &str) -> Result<Value<'_>, Failure> {
        Ok(Value::of_option(self.get(name)))
    }
}

/// How much an evaluation may do. Time is no limit: a result must not depend on how busy the machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Parts that are evaluated, elements that are looked at, and every 64 bytes of text.
    pub steps: usize,
    /// The bytes of a text.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 100_000, bytes: 64 * 1024 }
    }
}

/// With what an expression is evaluated.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The values that it reads.
    pub scope: &'a dyn Scope,
    /// The moment that `now()` gives, so that a repetition gives the same.
    pub now: Timestamp,
    /// The time zone of `now()`, and of times that are written without an offset.
    pub zone: Tz,
    /// Whether a reference to what is missing is a failure.
    pub strict: bool,
    /// How much it may do.
    pub limits: Limits,
}

impl<'a> Context<'a> {
    /// An evaluation at this moment, in UTC, where what is missing is no value.
    pub fn new(scope: &'a dyn Scope, now: Timestamp) -> Self {
        Self { scope, now, zone: Tz::UTC, strict: false, limits: Limits::default() }
    }

    /// The same in another time zone.
    #[must_use]
    pub fn zone(self, zone: Tz) -> Self {
        Self { zone, ..self }
    }

    /// The same, where a reference to what is missing is a failure.
    #[must_use]
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }
}
