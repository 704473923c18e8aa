//! Members of a team: the API object and the stored row.

use crate::schema::team_members;
use diesel::prelude::*;
use model::{JsonText, MemberId, MemberRole, Patch, Result, Timestamp, text_enum};
use serde::Serialize;
use utoipa::ToSchema;

text_enum! {
    /// Whether a member takes work.
    #[derive(Default)]
    pub enum AvailabilityStatus {
        /// The member takes work.
        #[default]
        Online = "online",
        /// The member takes no new work for a while.
        Away = "away",
        /// The member does not work now.
        Offline = "offline",
    }
}

/// Whether a member takes work, and from when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "status": "away", "until": "2026-11-21T14:00:00.000Z" }))]
pub struct Availability {
    /// Whether the member takes work.
    pub status: AvailabilityStatus,
    /// When the member is `online` again. `null` if that is not known, or the member is `online`.
    pub until: Option<Timestamp>,
}

impl Availability {
    /// Returns the availability at `now`: a member whose absence is over is online.
    fn at(self, now: Timestamp) -> Self {
        if self.until.is_some_and(|until| until <= now) { Self::default() } else { self }
    }

    /// Returns whether the member takes no work at `now`.
    pub(super) fn is_absent(self, now: Timestamp) -> bool {
        self.at(now).status != AvailabilityStatus::Online
    }
}

/// A member of the team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Marta Ruiz", "email": "marta@example.com", "role": "manager", "avatar_url": "https://example.com/marta.jpg",
    "capacity": 20, "open_conversations": 4, "open_tasks": 7, "languages": ["es", "en"],
}))]
pub struct TeamMember {
    /// The id of the member.
    pub id: MemberId,
    /// Always `team_member`.
    pub object: &'static str,
    /// The name.
    pub name: String,
    /// The email address, unique in the workspace regardless of case.
    pub email: String,
    /// What the member may do.
    pub role: MemberRole,
    /// The address of a picture.
    pub avatar_url: Option<String>,
    /// Whether the member takes work.
    pub availability: Availability,
    /// The most conversations that are assigned to the member at a time. `null` means any number.
    pub capacity: Option<i64>,
    /// The number of open conversations that are assigned to the member.
    pub open_conversations: i64,
    /// The number of open tasks that are assigned to the member.
    pub open_tasks: i64,
    /// The languages that the member speaks, as BCP 47 tags such as `es` or `pt-BR`.
    pub languages: Vec<String>,
    /// When the member joined the team.
    pub joined_at: Timestamp,
}

/// The data of a new member.
#[derive(Debug, Clone, Default)]
pub struct NewMember {
    /// The name, 1 to 120 characters.
    pub name: String,
    /// The email address.
    pub email: String,
    /// The role.
    pub role: MemberRole,
    /// The URL of a picture.
    pub avatar_url: Option<String>,
    /// The availability.
    pub availability: Availability,
    /// The maximum number of conversations at a time.
    pub capacity: Option<i64>,
    /// The languages that the member speaks.
    pub languages: Vec<String>,
}

/// A change of a member. `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct MemberPatch {
    /// The name.
    pub name: Option<String>,
    /// The email address.
    pub email: Option<String>,
    /// The role.
    pub role: Option<MemberRole>,
    /// The URL of a picture.
    pub avatar_url: Patch<String>,
    /// The availability.
    pub availability: Option<Availability>,
    /// The maximum number of conversations at a time.
    pub capacity: Patch<i64>,
    /// The languages that the member speaks.
    pub languages: Option<Vec<String>>,
}

/// A member as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = team_members)]
pub(super) struct MemberRow {
    pub(super) id: MemberId,
    name: String,
    email: String,
    role: MemberRole,
    avatar_url: Option<String>,
    availability: AvailabilityStatus,
    available_at: Option<Timestamp>,
    capacity: Option<i64>,
    languages: JsonText,
    joined_at: Timestamp,
}

impl MemberRow {
    /// Returns the API object, without the counts of open work.
    pub(super) fn member(self, now: Timestamp) -> Result<TeamMember> {
        let availability = Availability { status: self.availability, until: self.available_at };
        Ok(TeamMember {
            id: self.id,
            object: "team_member",
            name: self.name,
            email: self.email,
            role: self.role,
            avatar_url: self.avatar_url,
            availability: availability.at(now),
            capacity: self.capacity,
            open_conversations: 0,
            open_tasks: 0,
            languages: self.languages.parse()?,
            joined_at: self.joined_at,
        })
    }
}
