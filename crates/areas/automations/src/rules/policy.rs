//! The policy of an automation: how often it may fire, and for whom.

use model::text_enum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

text_enum! {
    /// How often an automation fires for one contact.
    #[derive(Default)]
    pub enum OncePerContact {
        /// As often as its trigger does.
        #[default]
        Never = "never",
        /// Once.
        Once = "once",
        /// Once a day, in the time zone of the business.
        PerDay = "per_day",
    }
}

text_enum! {
    /// What an automation does while a person answers the contact.
    pub enum WhenHumanActive {
        /// It fires.
        Fire = "fire",
        /// It is skipped.
        Skip = "skip",
    }
}

/// Firings with an equal key are one within a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationDedupe, example = json!({ "key": "{{ $trigger.order }}", "window_seconds": 3600 }))]
pub struct Dedupe {
    /// A template. Firings with the same text are duplicates.
    #[schema(min_length = 1, max_length = 2000)]
    pub key: String,
    /// For how long the first of them counts.
    #[schema(minimum = 1, maximum = 86_400)]
    pub window_seconds: i64,
}

/// Of several firings in a row, the last counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationDebounce, example = json!({ "key": null, "seconds": 30, "max_wait_seconds": 300 }))]
pub struct Debounce {
    /// A template. Firings with the same text are one row. The contact if not given.
    #[schema(min_length = 1, max_length = 2000)]
    #[serde(default)]
    pub key: Option<String>,
    /// How long nothing more must happen.
    #[schema(minimum = 1, maximum = 604_800)]
    pub seconds: i64,
    /// The longest wait since the first of them. At most 604,800 seconds if not given.
    #[schema(minimum = 1, maximum = 604_800)]
    #[serde(default)]
    pub max_wait_seconds: Option<i64>,
}

/// At most so many firings within a time. More are skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationThrottle, example = json!({ "limit": 10, "per_seconds": 60, "key": null }))]
pub struct Throttle {
    /// The number of firings.
    #[schema(minimum = 1, maximum = 10_000)]
    pub limit: i64,
    /// The time.
    #[schema(minimum = 1, maximum = 86_400)]
    pub per_seconds: i64,
    /// A template. Firings with the same text share the limit. All share it if not given.
    #[schema(min_length = 1, max_length = 2000)]
    #[serde(default)]
    pub key: Option<String>,
}

/// How often an automation fires, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationPolicy, example = json!({ "once_per_contact": "per_day", "priority": 50 }))]
pub struct Policy {
    /// How often it fires for one contact.
    #[serde(default)]
    pub once_per_contact: OncePerContact,
    /// How long it rests after it has fired, for each contact.
    #[schema(minimum = 1, maximum = 31_536_000)]
    #[serde(default)]
    pub cooldown_seconds: Option<i64>,
    /// Skips firings that mean the same.
    #[serde(default)]
    pub dedupe: Option<Dedupe>,
    /// Waits until nothing more happens.
    #[serde(default)]
    pub debounce: Option<Debounce>,
    /// Limits the rate.
    #[serde(default)]
    pub throttle: Option<Throttle>,
    /// Whether automations with a lower priority, and the agent, do not get a message that this one took. `true` if not given
    /// for `keyword` and `message.received`. It has no meaning for other triggers.
    #[serde(default)]
    pub stop_processing: Option<bool>,
    /// The order among automations that fit the same occurrence: the highest first.
    #[schema(minimum = 0, maximum = 100)]
    #[serde(default = "middle")]
    pub priority: i64,
    /// Whether what the automation caused can fire it.
    #[serde(default)]
    pub allow_self_trigger: bool,
    /// What it does while a person answers the contact. `skip` if not given for triggers by messages and by silence, `fire` for
    /// others.
    #[serde(default)]
    pub when_human_active: Option<WhenHumanActive>,
    /// Whether it is skipped for contacts who want no marketing messages.
    #[serde(default)]
    pub skip_opted_out: bool,
}

fn middle() -> i64 {
    50
}

impl Policy {
    /// Returns whether a firing depends on earlier ones.
    pub(crate) fn remembers(&self) -> bool {
        self.once_per_contact != OncePerContact::Never
            || self.cooldown_seconds.is_some()
            || self.dedupe.is_some()
            || self.debounce.is_some()
            || self.throttle.is_some()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            once_per_contact: OncePerContact::Never,
            cooldown_seconds: None,
            dedupe: None,
            debounce: None,
            throttle: None,
            stop_processing: None,
            priority: middle(),
            allow_self_trigger: false,
            when_human_active: None,
            skip_opted_out: false,
        }
    }
}
