//! The types of triggers: one table for matching, the contract, the checks and the documents.

pub(crate) mod compiled;
pub(crate) mod config;
pub(crate) mod fits;
pub(crate) mod keywords;
pub(crate) mod timers;

use model::text_enum;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// A schema with its name, and the schemas that it refers to.
pub(crate) type NamedSchema = (String, RefOr<Schema>, Vec<(String, RefOr<Schema>)>);

/// Where occurrences of a trigger come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Events of these types.
    Events(&'static [&'static str]),
    /// Messages, when the contact pauses.
    Messages,
    /// The clock.
    Timer,
    /// Requests.
    Requests,
}

/// A row of the table of types.
pub(crate) struct Entry {
    pub(crate) about: &'static str,
    pub(crate) source: Source,
    pub(crate) schema: fn() -> NamedSchema,
    /// Data as an occurrence has it.
    pub(crate) sample: fn() -> Value,
}

fn schema<T: ToSchema>() -> NamedSchema {
    let mut used = Vec::new();
    T::schemas(&mut used);
    (T::name().into_owned(), T::schema(), used)
}

macro_rules! trigger_types {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident = $word:literal { $config:ty, $source:expr, $sample:expr }
    )+) => {
        text_enum! {
            /// What fires an automation.
            #[derive(Hash)]
            #[schema(as = AutomationTriggerType)]
            pub enum TriggerType {
                $($(#[doc = $doc])+ $variant = $word),+
            }
        }

        impl TriggerType {
            /// Its row in the table of types.
            pub(crate) fn entry(self) -> Entry {
                match self {
                    $(Self::$variant => Entry {
                        about: concat!($($doc),+),
                        source: $source,
                        schema: schema::<$config>,
                        sample: || $sample,
                    }),+
                }
            }
        }
    };
}

use Source::{Events, Messages, Requests, Timer};
use serde_json::json;

trigger_types! {
    /// A contact wrote one of these words.
    Keyword = "keyword" { config::Keyword, Messages, config::message_sample() }
    /// A contact wrote a message.
    MessageReceived = "message.received" { config::MessageReceived, Messages, config::message_sample() }
    /// A contact was created.
    ContactCreated = "contact.created" { config::Nothing, Events(&["contact.created"]), config::contact_sample() }
    /// A contact was changed.
    ContactUpdated = "contact.updated" { config::Fields, Events(&["contact.updated"]), config::contact_sample() }
    /// A contact got a tag.
    TagAdded = "tag.added" { config::Tags, Events(&["contact.created", "contact.updated"]), config::tag_sample() }
    /// A contact lost a tag.
    TagRemoved = "tag.removed" { config::Tags, Events(&["contact.updated"]), config::tag_sample() }
    /// An inbound webhook received a verified request.
    WebhookReceived = "webhook.received" { config::Webhook, Events(&["webhook.received"]), config::webhook_sample() }
    /// An item was created.
    ItemCreated = "item.created" { config::Items, Events(&["item.created"]), config::item_sample() }
    /// An item was changed.
    ItemUpdated = "item.updated" { config::ItemFields, Events(&["item.updated"]), config::item_sample() }
    /// An item was moved to the trash.
    ItemDeleted = "item.deleted" { config::Items, Events(&["item.trashed", "item.deleted"]), config::item_sample() }
    /// A task was completed.
    TaskCompleted = "task.completed" { config::Nothing, Events(&["task.completed"]), config::task_sample() }
    /// A conversation was handed over to people, or back to the agent.
    Handoff = "handoff" { config::Handoff, Events(&["conversation.handoff"]), config::handoff_sample() }
    /// A run of an agent was completed.
    RunCompleted = "run.completed" { config::Run, Events(&["run.completed"]), config::run_sample() }
    /// An event of your own was published.
    Custom = "custom" { config::Custom, Events(&[]), json!({ "order": "4711" }) }
    /// A request fires it.
    Manual = "manual" { config::Manual, Requests, json!({ "order": "4711" }) }
    /// A time of a schedule has come.
    Schedule = "schedule" { timers::Schedule, Timer, timers::schedule_sample() }
    /// A date of a contact or item has come.
    DateField = "date_field" { timers::DateField, Timer, timers::date_field_sample() }
    /// A contact has not answered our last message.
    NoReply = "no_reply" { timers::NoReply, Timer, timers::silence_sample() }
    /// A task is due.
    TaskDue = "task.due" { timers::TaskDue, Timer, timers::task_due_sample() }
    /// Nobody has written in a conversation.
    ConversationIdle = "conversation.idle" { timers::ConversationIdle, Timer, timers::silence_sample() }
}
