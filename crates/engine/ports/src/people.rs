//! The team of a workspace, the work that its members have, and what the profile of its business says.

use chrono_tz::Tz;
use model::{Error, MemberId, Result, Timestamp, WorkspaceId};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::Arc;
use store::Read;

/// A member of a workspace's team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The id.
    pub id: MemberId,
    /// The name.
    pub name: String,
    /// The email address.
    pub email: String,
}

/// The members of all teams, for whoever assigns work to them or refers to them.
pub trait Members: Debug + Send + Sync {
    /// Those of the workspace's members that have one of these ids, in no order.
    ///
    /// # Errors
    /// When the database fails.
    fn among(&self, read: &mut Read, workspace: WorkspaceId, ids: &[MemberId]) -> Result<Vec<Member>>;
}

/// The members of all teams. A service that operations ask for.
#[derive(Debug, Clone)]
pub struct TeamMembers(Arc<dyn Members>);

impl TeamMembers {
    /// The members that `members` knows.
    pub fn new(members: Arc<dyn Members>) -> Self {
        Self(members)
    }

    /// Makes sure that an id which a request names is that of a member of the workspace's team.
    ///
    /// # Errors
    /// `validation_error` about `param`.
    pub fn expect(&self, read: &mut Read, workspace: WorkspaceId, id: MemberId, param: &str) -> Result<()> {
        if self.0.among(read, workspace, &[id])?.is_empty() {
            return Err(Error::invalid(param, "must be the id of a member of the team"));
        }
        Ok(())
    }
}

/// What can be assigned to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkType {
    /// Conversations with contacts.
    Conversations,
    /// Tasks.
    Tasks,
}

/// Work that is assigned to members and not done. Each group that assigns work implements it.
pub trait OpenWork: Send + Sync {
    /// What is assigned.
    fn work_type(&self) -> WorkType;

    /// How much of it each member of the workspace has. Members that have none may be left out.
    ///
    /// # Errors
    /// When the database fails.
    fn by_member(&self, read: &mut Read, workspace: WorkspaceId) -> Result<HashMap<MemberId, i64>>;
}

/// The open work of all groups. A service that operations ask for.
#[derive(Clone, Default)]
pub struct OpenWorkDirectory(Vec<Arc<dyn OpenWork>>);

impl OpenWorkDirectory {
    /// A directory of this work.
    pub fn new(work: impl IntoIterator<Item = Arc<dyn OpenWork>>) -> Self {
        Self(work.into_iter().collect())
    }

    /// How much open work of a type each member of the workspace has; none where no group assigns such work.
    ///
    /// # Errors
    /// When the database fails.
    pub fn by_member(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        work_type: WorkType,
    ) -> Result<HashMap<MemberId, i64>> {
        let mut all: HashMap<MemberId, i64> = HashMap::new();
        for work in self.0.iter().filter(|work| work.work_type() == work_type) {
            for (member, count) in work.by_member(read, workspace)? {
                *all.entry(member).or_default() += count;
            }
        }
        Ok(all)
    }
}

pub use calendar::Opening;

/// The texts of a business's profile by which others refer to it.
pub const BUSINESS_FACTS: [&str; 11] = [
    "name",
    "legal_name",
    "description",
    "time_zone",
    "currency",
    "locale",
    "country",
    "address",
    "email",
    "phone",
    "website",
];

/// The countries, time zones and opening hours of businesses, for whoever reads numbers and plans work by them, and what
/// they say of themselves.
pub trait BusinessCalendar: Debug + Send + Sync {
    /// The country of the workspace's business, as an ISO 3166 code, if it has set one.
    ///
    /// # Errors
    /// When the database fails.
    fn country(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Option<String>>;

    /// The time zone of the workspace's business; UTC where it has set none.
    ///
    /// # Errors
    /// When the database fails.
    fn time_zone(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Tz>;

    /// Whether the workspace's business is open at a moment; `None` where it has set no opening hours.
    ///
    /// # Errors
    /// When the database fails.
    fn opening(&self, read: &mut Read, workspace: WorkspaceId, at: Timestamp) -> Result<Option<Opening>>;

    /// The [`BUSINESS_FACTS`] that the workspace's business has, by their names.
    ///
    /// # Errors
    /// When the database fails.
    fn facts(&self, read: &mut Read, workspace: WorkspaceId) -> Result<BTreeMap<&'static str, String>>;
}

/// For how many days a business keeps what it and its contacts wrote. `None` is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptDays {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Messages.
    pub messages: Option<i64>,
    /// Files that contacts sent.
    pub files: Option<i64>,
}

/// How long businesses keep what was written, for whoever deletes it.
pub trait BusinessRetention: Send + Sync {
    /// The first workspace behind `after` whose business does not keep everything for ever.
    ///
    /// # Errors
    /// When the database fails.
    fn next(&self, read: &mut Read, after: WorkspaceId) -> Result<Option<KeptDays>>;
}
