//! The team: people who work for a business, to whom conversations and tasks can be assigned.

mod dashboard;
mod invitations;
mod members;
mod model;
mod operations;

pub use ::model::MemberRole;
pub use invitations::{Invitation, invite};
pub use members::{
    AvailableMember, Editor, MOST_CAPACITY, TeamDirectory, absences, add, available, find, list,
    record_assignment, remove, set,
};
pub use model::{Availability, AvailabilityStatus, MemberPatch, NewMember, TeamMember};

use ::operation::{Domain, Operations};

/// The area of the team.
pub struct Team;

impl Domain for Team {
    const AREA: &'static str = "Team";
    const ORDER: u16 = 140;
    const DESCRIPTION: &'static str = "The team is the people who work for a business. Conversations and tasks can be assigned to its \
         members.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListTeamMembers),
            Box::new(dashboard::ListInvitations),
            Box::new(dashboard::CreateInvitation),
            Box::new(dashboard::WithdrawInvitation),
            Box::new(dashboard::UpdateTeamMember),
            Box::new(dashboard::RemoveTeamMember),
            Box::new(dashboard::SetOwnAvailability),
        ]
    }
}
