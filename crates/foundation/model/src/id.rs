//! Identifiers. Rows that people see carry integers, everything else a prefixed, time-ordered string (decision 16).

use crate::{Random, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reads a whole number in the one form in which it is printed: without a plus sign, leading zeros or a fraction. Two
/// spellings of one id would be two addresses of one object.
pub fn whole_number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

macro_rules! integer_id {
    ($(#[$doc:meta])* $name:ident) => {
        integer_id!($(#[$doc])* $name, |_| true);
    };
    ($(#[$doc:meta])* $name:ident, $can_be_named:expr) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, diesel_derive_newtype::DieselNewType,
        )]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();
            fn from_str(text: &str) -> Result<Self, ()> {
                whole_number(text).filter($can_be_named).map(Self).ok_or(())
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::Integer)
                    .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::Int64)))
                    .examples([1])
                    .into()
            }
        }
        impl utoipa::ToSchema for $name {}
    };
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, diesel_derive_newtype::DieselNewType)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// What every id of this kind begins with.
            pub const PREFIX: &'static str = $prefix;

            /// A new id: the time in milliseconds, then 80 random bits, so that ids sort by their birth.
            pub fn new(now: Timestamp, random: &dyn Random) -> Self {
                Self(prefixed(Self::PREFIX, now, random))
            }

            /// Reads an id that a caller sent. `None` where it cannot be an id of this kind.
            pub fn parse(text: &str) -> Option<Self> {
                is_prefixed(text, Self::PREFIX).then(|| Self(text.to_owned()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();
            fn from_str(text: &str) -> Result<Self, ()> {
                Self::parse(text).ok_or(())
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .pattern(Some(concat!("^", $prefix)))
                    .examples([concat!($prefix, "01m7w4n5e0k3p8r2v6x9b1d4f7")])
                    .into()
            }
        }
        impl utoipa::ToSchema for $name {}
    };
}

integer_id! {
    /// A tenant: everything that a business owns hangs on one workspace.
    WorkspaceId
}
integer_id! {
    /// A partner: an organisation that runs client workspaces.
    PartnerId
}
integer_id! {
    /// An AI agent of a workspace.
    AgentId
}
integer_id! {
    /// A tool that an agent may call.
    ToolId
}
integer_id! {
    /// A skill of a workspace.
    SkillId
}
integer_id! {
    /// A function of a workspace: code that agents call.
    FunctionId
}
integer_id! {
    /// A flow of a workspace.
    FlowId
}
integer_id! {
    /// An automation of a workspace.
    AutomationId
}
integer_id! {
    /// A collection: a table of items with fields of its own. Negative ids are those of sets of records that are not
    /// collections, such as a workspace's contacts; no text that a caller sends names one.
    CollectionId, |id| *id > 0
}
integer_id! {
    /// A group that orders collections.
    CollectionGroupId
}
integer_id! {
    /// A field of a collection. Negative ids are those of fields that the service defines for a kind of records; no text
    /// that a caller sends names one.
    FieldId, |id| *id > 0
}
integer_id! {
    /// A choice of a select field.
    OptionId
}
integer_id! {
    /// A saved view of a collection.
    ViewId
}
integer_id! {
    /// An index on fields of a collection.
    IndexId
}
integer_id! {
    /// An item of a collection.
    ItemId
}
integer_id! {
    /// A comment on an item.
    CommentId
}
integer_id! {
    /// A link from an item to another object.
    LinkId
}
integer_id! {
    /// A stored file.
    FileId
}
integer_id! {
    /// A contact: a person whom a business knows. It is a record, so its id is that of an item.
    ContactId
}

impl From<ItemId> for ContactId {
    fn from(id: ItemId) -> Self {
        Self(id.0)
    }
}

/// As events name the contact that they are about.
impl From<ContactId> for Option<i64> {
    fn from(id: ContactId) -> Self {
        Some(id.0)
    }
}
integer_id! {
    /// A note on a contact.
    NoteId
}
integer_id! {
    /// What a contact said about broadcasts.
    ConsentId
}
integer_id! {
    /// A saved segment of contacts.
    SegmentId
}
integer_id! {
    /// A task. It is a record, so its id is that of an item.
    TaskId
}

impl From<ItemId> for TaskId {
    fn from(id: ItemId) -> Self {
        Self(id.0)
    }
}

impl From<TaskId> for ItemId {
    fn from(id: TaskId) -> Self {
        Self(id.0)
    }
}

integer_id! {
    /// A comment on a task.
    TaskCommentId
}

integer_id! {
    /// A member of a workspace's team.
    MemberId
}
integer_id! {
    /// A variable of a workspace.
    VariableId
}
integer_id! {
    /// A reminder.
    ReminderId
}
integer_id! {
    /// A channel: a number on a chat network.
    ChannelId
}
integer_id! {
    /// A conversation with a contact over a channel.
    ConversationId
}
integer_id! {
    /// A message of a conversation.
    MessageId
}
integer_id! {
    /// A file of a message.
    AttachmentId
}
integer_id! {
    /// A message template of a channel.
    MessageTemplateId
}
integer_id! {
    /// A saved answer.
    QuickReplyId
}
integer_id! {
    /// A broadcast.
    BroadcastId
}
integer_id! {
    /// A recipient of a broadcast.
    BroadcastRecipientId
}

string_id! {
    /// A request, as shown in `X-Request-Id`.
    RequestId, "req_"
}
string_id! {
    /// An API key. It names the key and authenticates nothing.
    KeyId, "key_"
}
string_id! {
    /// A person who signs in.
    AccountId, "acc_"
}
string_id! {
    /// A session of an account. It names the session and authenticates nothing.
    SessionId, "ses_"
}
string_id! {
    /// An OAuth app that a workspace registered.
    AppId, "app_"
}
string_id! {
    /// The tokens that came of one authorization of an OAuth app.
    FamilyId, "fam_"
}
string_id! {
    /// An entry of the audit log.
    AuditId, "aud_"
}
string_id! {
    /// One execution of an agent.
    RunId, "run_"
}
string_id! {
    /// One call of a function.
    InvocationId, "inv_"
}
string_id! {
    /// One execution of a flow.
    FlowRunId, "frun_"
}
string_id! {
    /// One firing of an automation, or one that was held back.
    FiringId, "atf_"
}
string_id! {
    /// One step of a run: a call of the model or of a tool.
    StepId, "step_"
}
string_id! {
    /// Something that happened in a workspace.
    EventId, "evt_"
}
string_id! {
    /// A priced execution: what spent Energy.
    ExecutionId, "exe_"
}
string_id! {
    /// An entry of the Energy ledger.
    LedgerId, "led_"
}
string_id! {
    /// A grant of Energy.
    GrantId, "grant_"
}
string_id! {
    /// Energy set aside for work that is going on.
    HoldId, "hold_"
}
string_id! {
    /// An invoice.
    InvoiceId, "inv_"
}
string_id! {
    /// A saved payment method.
    PaymentMethodId, "pm_"
}
string_id! {
    /// An import of items.
    ImportId, "imp_"
}
string_id! {
    /// An upload of a file in parts.
    UploadId, "upl_"
}
string_id! {
    /// A subscription of an endpoint to events.
    WebhookEndpointId, "we_"
}
string_id! {
    /// The delivery of one event to one endpoint.
    DeliveryId, "whd_"
}
string_id! {
    /// A URL of ours that outside systems post to.
    InboundWebhookId, "wh_"
}
string_id! {
    /// A request that came in at an inbound webhook.
    ReceivedRequestId, "whr_"
}

/// Crockford's base 32 in lower case: no letters that look like digits, and byte order is number order.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// `prefix` and 26 characters: 48 bits of milliseconds and 80 random bits, as in a ULID.
fn prefixed(prefix: &str, now: Timestamp, random: &dyn Random) -> String {
    let mut tail = [0u8; 10];
    random.fill(&mut tail);
    let mut bits = u128::from(now.millis().unsigned_abs() & 0xffff_ffff_ffff);
    for byte in tail {
        bits = bits << 8 | u128::from(byte);
    }
    let mut id = String::with_capacity(prefix.len() + 26);
    id.push_str(prefix);
    for place in (0..26).rev() {
        let digit = usize::try_from(bits >> (place * 5) & 31).unwrap_or_default();
        id.push(char::from(ALPHABET.get(digit).copied().unwrap_or(b'0')));
    }
    id
}

/// The number that a letter of an id stands for, 0 to 31.
pub(crate) fn digit(letter: u8) -> u8 {
    let place = ALPHABET.iter().position(|other| *other == letter);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or_default()
}

fn is_prefixed(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|tail| {
        (1..=64).contains(&tail.len()) && tail.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededRandom;

    #[test]
    fn string_ids_sort_by_time_and_read_back() {
        let random = SeededRandom::new(7);
        let early = RunId::new(Timestamp::from_millis(1_700_000_000_000), &random);
        let late = RunId::new(Timestamp::from_millis(1_700_000_000_001), &random);
        assert!(early < late, "{early} {late}");
        assert_eq!(early.as_str().len(), 30);
        assert_eq!(RunId::parse(early.as_str()), Some(early));
    }

    #[test]
    fn integers_have_one_spelling() {
        for text in ["0", "7", "-7", "9223372036854775807"] {
            assert_eq!(whole_number(text).map(|number| number.to_string()).as_deref(), Some(text));
        }
        for text in ["", "+1", "01", "-0", "1.0", "1e2", " 1", "1 ", "٣", "9223372036854775808"] {
            assert_eq!(whole_number(text), None, "{text}");
            assert_eq!(text.parse::<AgentId>(), Err(()), "{text}");
        }
    }

    #[test]
    fn foreign_ids_are_refused() {
        for text in ["", "run_", "run", "key_01", "run_é", "run_a b", "run_a'"] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }
}
