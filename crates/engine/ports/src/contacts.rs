//! The people whom a business knows, for the groups that talk to them.

use super::collections::RecordField;
use fields::Data;
use model::{
    Cause, ContactId, ItemId, MemberId, Result, RunId, SegmentId, Timestamp, WorkspaceId, text_enum,
    whole_number,
};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use store::{Read, Tx};

/// How a path names a contact: `1042`, `phone:+5511987654321`, `email:ana@example.com` or `external:shop-4711`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactRef {
    text: String,
    /// What it names the contact by.
    pub by: ContactKey,
}

/// What names a contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContactKey {
    /// Its id, or that of one that was merged into it.
    Id(ItemId),
    /// The value of an identity, such as `$phone`.
    Field(&'static str, String),
    /// Its external id.
    ExternalId(String),
    /// What can be the name of none.
    Nothing,
}

impl FromStr for ContactRef {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let by = match text.split_once(':') {
            None => whole_number(text).map_or(ContactKey::Nothing, |id| ContactKey::Id(ItemId(id))),
            Some(("phone", phone)) => ContactKey::Field("$phone", phone.to_owned()),
            Some(("email", email)) => ContactKey::Field("$email", email.to_owned()),
            Some(("external", id)) => ContactKey::ExternalId(id.to_owned()),
            Some(_) => ContactKey::Nothing,
        };
        Ok(Self { text: text.to_owned(), by })
    }
}

impl From<ContactId> for ContactRef {
    fn from(id: ContactId) -> Self {
        Self { text: id.to_string(), by: ContactKey::Id(ItemId(id.0)) }
    }
}

impl fmt::Display for ContactRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl utoipa::PartialSchema for ContactRef {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some(
                "The id of the contact, or `phone:`, `email:` or `external:` followed by its telephone number, e-mail \
                 address or external id.",
            ))
            .examples(["1"])
            .into()
    }
}
impl utoipa::ToSchema for ContactRef {}

/// A live contact, as other groups see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ContactCard {
    /// The id.
    pub id: ContactId,
    /// The values by key: system fields with `$`, such as `$name`, `$phone` and `$chat_user_id`, and custom fields.
    pub data: Data,
    /// Where the dashboard shows the contact. `None` as long as there is no dashboard.
    pub app_url: Option<String>,
    /// Whether nothing is sent to the contact and no agent answers it.
    pub is_blocked: bool,
    /// Whether the contact wants no marketing messages.
    pub is_opted_out: bool,
    /// Whether the agent answers the contact.
    pub autopilot: bool,
    /// How often the autopilot was switched. The agent's work that began in an earlier epoch has no effect.
    pub epoch: i64,
    /// The run in which an agent switched the autopilot last, if an agent did.
    pub switched_by: Option<RunId>,
    /// The member of the team to whom the conversation is assigned.
    pub assignee: Option<MemberId>,
}

impl ContactCard {
    /// A text value, where the contact has one that is not empty.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.data.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
}

/// A person who wrote, as a chat network knows them. At least one of `user_id` and `phone` is present.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatIdentity {
    /// The network's id of the person.
    pub user_id: Option<String>,
    /// With `+` and country code.
    pub phone: Option<String>,
    /// Without `@`.
    pub username: Option<String>,
    /// The name that the person gave itself.
    pub name: Option<String>,
}

text_enum! {
    /// Why a conversation was handed over.
    pub enum HandoffReason {
        /// A request to the API.
        Api = "api",
        /// A person decided so.
        Operator = "operator",
        /// The agent decided so.
        AgentTool = "agent_tool",
        /// A flow decided so.
        Flow = "flow",
        /// The business answered from its own device.
        Device = "device",
        /// The time of a pause was over.
        PauseEnded = "pause_ended",
    }
}

/// Which contacts are meant: all that fit every condition that is set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Audience {
    /// A segment.
    pub segment: Option<SegmentId>,
    /// Conditions that compare exact text, as the parameter `filters` of the contact list has them.
    pub exact: Option<Vec<Value>>,
    /// Conditions over system and custom fields: JSON as `filter_tree` has it.
    pub filter: Option<Value>,
    /// These contacts.
    pub ids: Option<Vec<ContactId>>,
}

/// The contacts of all workspaces. The group that keeps them implements it.
pub trait ContactBook: Send + Sync {
    /// The live contact that a path names, or into which that was merged.
    ///
    /// # Errors
    /// `not_found`.
    fn find(&self, read: &mut Read, workspace: WorkspaceId, contact: &ContactRef) -> Result<ContactCard>;

    /// All ids of the contact that an id names: first its own, or that of the contact into which it was merged, then those of
    /// contacts that were merged into it. An id that names no contact is returned alone.
    ///
    /// # Errors
    /// When the database fails.
    fn ids_of(&self, read: &mut Read, workspace: WorkspaceId, id: ContactId) -> Result<Vec<ContactId>>;

    /// The contacts into which those of some contacts were merged that were, by the ids of the merged ones.
    ///
    /// # Errors
    /// When the database fails.
    fn survivors(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        ids: &[ContactId],
    ) -> Result<HashMap<ContactId, ContactId>>;

    /// Those of the workspace's live contacts that have one of these ids, in no order. Ids of merged contacts are those of
    /// none.
    ///
    /// # Errors
    /// When the database fails.
    fn cards(&self, read: &mut Read, workspace: WorkspaceId, ids: &[ContactId]) -> Result<Vec<ContactCard>>;

    /// Whether contacts of the workspace have a field with this key, such as `$name` or one of its own.
    ///
    /// # Errors
    /// When the database fails.
    fn has_field(&self, read: &mut Read, workspace: WorkspaceId, key: &str) -> Result<bool> {
        Ok(self.fields(read, workspace)?.iter().any(|field| field.key == key))
    }

    /// The fields that contacts of the workspace have, system fields first, without those that callers never see.
    ///
    /// # Errors
    /// When the database fails.
    fn fields(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<RecordField>>;

    /// Those of some contacts that are live. Nobody changes, merges or deletes them until the transaction ends. They are locked
    /// in the order of their ids; as many as one statement can name.
    ///
    /// # Errors
    /// When the database fails.
    fn lock(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        ids: &BTreeSet<ContactId>,
    ) -> Result<Vec<ContactCard>>;

    /// Holds contacts, so that nobody changes, merges or deletes them until the transaction ends. Those that others are
    /// changing at this moment are not waited for: it gives them, and they are not held.
    ///
    /// # Errors
    /// When the database fails.
    fn hold(&self, tx: &mut Tx, workspace: WorkspaceId, ids: &[ContactId]) -> Result<HashSet<ContactId>>;

    /// A telephone number in international form. One without `+` is of the country of the business.
    ///
    /// # Errors
    /// `validation_error` about `phone`.
    fn phone(&self, read: &mut Read, workspace: WorkspaceId, text: &str) -> Result<String>;

    /// The contact whom a chat network knows so: found by user id, then by the variants of its telephone number, then by
    /// user name; created where there is none. What the contact lacks of the identity is added to it. It is locked.
    ///
    /// # Errors
    /// When the database fails.
    fn receive(&self, tx: &mut Tx, workspace: WorkspaceId, from: &ChatIdentity) -> Result<ContactCard>;

    /// The contacts whom a chat network knows so, of those that have all that it says of them; locked in the order of their
    /// ids. `None` for whoever is to be [received](Self::receive) in a transaction of its own, such as a new contact: and
    /// then for all behind that are the same contact. As many as one statement can name.
    ///
    /// # Errors
    /// When the database fails.
    fn receive_known(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        from: &[ChatIdentity],
    ) -> Result<Vec<Option<ContactCard>>>;

    /// Notes that locked contacts wrote, which ends what only waited for that.
    ///
    /// # Errors
    /// When the database fails.
    fn wrote(&self, tx: &mut Tx, workspace: WorkspaceId, contacts: &[ContactId]) -> Result<()>;

    /// Gives the contact that had the old identity the new one. Nothing where no contact has the old one. Where another
    /// contact has the new identity already, that one keeps it.
    ///
    /// # Errors
    /// When the database fails.
    fn relink(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        old: &ChatIdentity,
        new: &ChatIdentity,
    ) -> Result<Option<ContactId>>;

    /// Records what a contact said about marketing messages over a network. A setting that is known already, and a statement
    /// that is older than the contact's latest, change nothing. Gives whether it was recorded.
    ///
    /// # Errors
    /// `not_found`.
    fn record_consent(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        contact: ContactId,
        said: &ConsentStatement,
    ) -> Result<bool>;

    /// Switches the autopilot of a contact, with the event `conversation.handoff` if that changes it. `until`: when it is
    /// switched on again.
    ///
    /// # Errors
    /// `not_found`.
    fn hand_over(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        cause: &Cause,
        contact: ContactId,
        switch: &HandOver,
    ) -> Result<()>;

    /// Checks that an audience can be read.
    ///
    /// # Errors
    /// `validation_error` with a `param` below `param`, such as `audience.segment_id`.
    fn check_audience(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        audience: &Audience,
        param: &str,
    ) -> Result<()>;

    /// The next live contacts of an audience in the order of their ids, at most `most`; fewer only at the end.
    ///
    /// # Errors
    /// When the database fails.
    fn audience(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        audience: &Audience,
        after: Option<ContactId>,
        most: i64,
    ) -> Result<Vec<ContactCard>>;
}

/// What a contact said about marketing messages over a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentStatement {
    /// Whether the contact wants marketing messages.
    pub wants_messages: bool,
    /// When, by the network's clock, which counts seconds. `None` is now.
    pub at: Option<Timestamp>,
    /// What of several statements of the same second counts.
    pub ties: ConsentTies,
    /// What proves it.
    pub proof: String,
}

/// Which of two contrary statements of the same second counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentTies {
    /// The one that arrived later: messages, of which each arrives once.
    ToLater,
    /// The one that wants no messages: a setting on the network, of which it is not known in which order it was changed.
    ToOptOut,
}

/// What the autopilot of a contact becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOver {
    /// Whether the agent answers.
    pub enabled: bool,
    /// When the agent answers again. Only without `enabled`.
    pub until: Option<Timestamp>,
    /// Why.
    pub reason: HandoffReason,
    /// A note for the person who takes over.
    pub summary: Option<String>,
}

/// The contacts of all workspaces. A service that operations ask for.
#[derive(Clone)]
pub struct People(pub Arc<dyn ContactBook>);

impl std::ops::Deref for People {
    type Target = dyn ContactBook;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for People {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("People")
    }
}
