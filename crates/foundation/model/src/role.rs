//! The roles of the members of a team.

use crate::text_enum;

text_enum! {
    /// What a member may do.
    #[derive(Default, Hash, PartialOrd, Ord)]
    pub enum MemberRole {
        /// Everything, including the end of the account.
        Owner = "owner",
        /// Everything but the end of the account.
        Admin = "admin",
        /// Work, and the work of others.
        Manager = "manager",
        /// Work that is assigned to the member.
        #[default]
        Agent = "agent",
        /// Reading.
        Viewer = "viewer",
    }
}
