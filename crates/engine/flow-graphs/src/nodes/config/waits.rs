//! Settings of nodes that wait.

use super::messages::a_day;
use model::string_enum;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Settings of `delay`: the run waits for a span of time.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowDelay, example = json!({ "days": 3 }))]
pub struct Delay {
    /// Days.
    #[schema(minimum = 0, maximum = 365)]
    #[serde(default)]
    pub days: i64,
    /// Hours.
    #[schema(minimum = 0, maximum = 8760)]
    #[serde(default)]
    pub hours: i64,
    /// Minutes.
    #[schema(minimum = 0, maximum = 525_600)]
    #[serde(default)]
    pub minutes: i64,
    /// Seconds.
    #[schema(minimum = 0, maximum = 31_536_000)]
    #[serde(default)]
    pub seconds: i64,
    /// By up to how many seconds more the run waits, at random.
    #[schema(minimum = 0, maximum = 86_400)]
    #[serde(default)]
    pub jitter_seconds: i64,
}

impl Delay {
    /// The longest wait, in seconds.
    pub const LONGEST: i64 = 365 * 86_400;

    /// Returns the span in seconds, without the jitter.
    pub fn total_seconds(&self) -> i64 {
        let minutes = self.minutes.saturating_add(self.hours.saturating_mul(60));
        let minutes = minutes.saturating_add(self.days.saturating_mul(1440));
        self.seconds.saturating_add(minutes.saturating_mul(60))
    }
}

string_enum! {
    /// Whose time zone a time is in.
    #[derive(Default)]
    pub enum FlowZone {
        /// That of the business.
        #[default]
        Workspace = "workspace",
        /// That of the contact, or of the business if it is not known.
        Contact = "contact",
    }
}

/// Settings of `wait_until`: the run waits for a moment.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowWaitUntil, example = json!({ "time": "{{ $contact.renewal | date_add: -3, 'days' }}", "timezone": "contact" }))]
pub struct WaitUntil {
    /// The date or time. A date alone begins at 9:00. `null` with `business_hours` is the next opening.
    #[serde(default)]
    pub time: Option<String>,
    /// Whether the run continues at the next time at which the business is open, not before `time`.
    #[serde(default)]
    pub business_hours: bool,
    /// The time zone of a time without one.
    #[serde(default)]
    pub timezone: FlowZone,
}

/// Settings of `wait_for_event`: the run waits for an event of the workspace.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowWaitForEvent, example = json!({ "type": "item.updated", "match": { "item_id": "{{ $trigger.item.id }}" } }))]
pub struct WaitForEvent {
    /// The type of the event, such as `item.updated`.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 100)]
    pub kind: String,
    /// What the event's data must equal, by its path. Not given, it is the event of the run's contact. One equality is needed,
    /// because waits are found by it.
    #[schema(value_type = Option<Object>)]
    #[serde(default, rename = "match")]
    pub matches: Option<Map<String, Value>>,
    /// A condition that narrows it down: it reads the event as `$trigger`.
    #[serde(default)]
    pub filter: Option<Value>,
    /// How long the run waits, in seconds. Then it continues at `timeout`.
    #[schema(minimum = 1, maximum = 31_536_000)]
    #[serde(default = "a_day")]
    pub timeout_seconds: i64,
}

/// Settings of `approval`: a person decides.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowApproval, example = json!({ "text": "Refund {{ $flow.amount }} €?" }))]
pub struct Approval {
    /// What is to be decided.
    #[schema(min_length = 1, max_length = 4000)]
    pub text: String,
    /// The members of the team who get a message with the link. Empty sends none: the link is in the step.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub approver_ids: Vec<i64>,
    /// A JSON Schema of a form that the person fills in.
    #[serde(default)]
    pub form: Option<Value>,
    /// How long the run waits, in seconds. Then it continues at `timeout`.
    #[schema(minimum = 1, maximum = 31_536_000)]
    #[serde(default = "a_day")]
    pub timeout_seconds: i64,
}
