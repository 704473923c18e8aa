//! The roles of members, and what each of them may do. The table here is the only list; `docs/roles.txt` is printed
//! from it.

use model::{Code, Error, MemberRole, Result, Scope, ScopeSet, text_enum};

text_enum! {
    /// What a member may do that no scope covers, because no operation of the API does it.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Permission {
        /// End the workspace.
        EndWorkspace = "end_workspace",
        /// Make members owners, and take that from them.
        MakeOwners = "make_owners",
        /// Invite and remove members, and set roles below owner.
        ManageTeam = "manage_team",
        /// Create and revoke API keys.
        ManageKeys = "manage_keys",
        /// Set the budgets of keys.
        SetBudgets = "set_budgets",
        /// Authorize OAuth apps, and end what apps of others in the workspace may do.
        AuthorizeApps = "authorize_apps",
        /// Create OAuth apps of the workspace, and change their secrets.
        ManageApps = "manage_apps",
        /// Change the plan and the ways to pay, and buy Energy.
        ManageBilling = "manage_billing",
        /// Connect channels and change their credentials.
        ConnectChannels = "connect_channels",
        /// Change the profile of the business.
        ManageBusiness = "manage_business",
        /// Read the audit log.
        ReadAuditLog = "read_audit_log",
    }
}

/// The changes that belong to the work of an agent: inbox, contacts, tasks, files, quick replies.
const WORK_OF_AGENTS: [Scope; 7] = [
    Scope::ContactsWrite,
    Scope::ConversationsWrite,
    Scope::HandoffManage,
    Scope::ChannelsSend,
    Scope::TasksWrite,
    Scope::RemindersWrite,
    Scope::FilesWrite,
];

/// What an agent reads for it. The log of events is not part of it, because it holds the data of all areas.
const READ_BY_AGENTS: [Scope; 7] = [
    Scope::ContactsRead,
    Scope::ConversationsRead,
    Scope::ChannelsRead,
    Scope::TasksRead,
    Scope::RemindersRead,
    Scope::FilesRead,
    Scope::RunsRead,
];

/// What a manager changes beyond that: the work of all, and the data that it is about.
const WORK_OF_MANAGERS: [Scope; 5] = [
    Scope::RunsExecute,
    Scope::AutomationsExecute,
    Scope::CollectionsWrite,
    Scope::ItemsWrite,
    Scope::McpUse,
];

/// Returns the scopes of a role. A role has all scopes of the roles below it, except that an agent changes what a viewer
/// only reads, and a viewer reads what an agent's work does not need.
pub fn scopes(role: MemberRole) -> ScopeSet {
    let all_reads = || Scope::of_workspaces().filter(|scope| scope.as_str().ends_with(":read"));
    match role {
        MemberRole::Owner | MemberRole::Admin => Scope::of_workspaces().collect(),
        MemberRole::Manager => all_reads().chain(WORK_OF_AGENTS).chain(WORK_OF_MANAGERS).collect(),
        MemberRole::Agent => READ_BY_AGENTS.into_iter().chain(WORK_OF_AGENTS).collect(),
        MemberRole::Viewer => all_reads().collect(),
    }
}

/// Returns whether a role has a permission.
pub fn permits(role: MemberRole, permission: Permission) -> bool {
    match role {
        MemberRole::Owner => true,
        MemberRole::Admin => !matches!(permission, Permission::EndWorkspace | Permission::MakeOwners),
        MemberRole::Manager | MemberRole::Agent | MemberRole::Viewer => false,
    }
}

/// Returns an error unless the role has the permission.
///
/// # Errors
/// `missing_scope` with the permission as `param`.
pub fn expect(role: MemberRole, permission: Permission) -> Result<()> {
    if permits(role, permission) {
        return Ok(());
    }
    let message = format!("The role `{}` does not include `{}`.", role.as_str(), permission.as_str());
    Err(Error::new(Code::MissingScope, message).param(permission.as_str()))
}

/// Returns whether a member may give somebody a role, or take it from somebody who has it: with `manage_team`, and for
/// owners with `make_owners`.
pub fn may_set(own: MemberRole, other: MemberRole) -> bool {
    let needed = match other {
        MemberRole::Owner => Permission::MakeOwners,
        _ => Permission::ManageTeam,
    };
    permits(own, needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(larger: MemberRole, smaller: MemberRole) -> bool {
        let (larger, smaller) = (scopes(larger), scopes(smaller));
        smaller.iter().all(|scope| larger.contains(scope))
    }

    #[test]
    fn a_higher_role_has_what_lower_ones_have() {
        use MemberRole::{Admin, Agent, Manager, Owner, Viewer};
        for (higher, lower) in [(Owner, Admin), (Admin, Manager), (Manager, Agent), (Manager, Viewer)] {
            assert!(contains(higher, lower), "{higher:?} {lower:?}");
            for permission in Permission::ALL {
                assert!(
                    permits(higher, permission) || !permits(lower, permission),
                    "{higher:?} {permission:?}"
                );
            }
        }
    }

    #[test]
    fn no_role_has_scopes_of_partners_or_retired_ones() {
        for role in MemberRole::ALL {
            for scope in scopes(role).iter() {
                assert!(!scope.is_partner_only() && !scope.is_retired(), "{role:?} {scope}");
            }
        }
    }

    #[test]
    fn viewers_change_nothing_and_secrets_are_for_admins() {
        assert!(scopes(MemberRole::Viewer).iter().all(|scope| scope.as_str().ends_with(":read")));
        for role in [MemberRole::Manager, MemberRole::Agent, MemberRole::Viewer] {
            for scope in [
                Scope::WebhooksManage,
                Scope::VariablesWrite,
                Scope::AgentsWrite,
                Scope::ChannelsManage,
                Scope::IntegrationsManage,
            ] {
                assert!(!scopes(role).contains(scope), "{role:?} {scope}");
            }
        }
    }

    #[test]
    fn nobody_makes_a_role_above_the_own() {
        assert!(may_set(MemberRole::Owner, MemberRole::Owner));
        assert!(!may_set(MemberRole::Admin, MemberRole::Owner));
        assert!(may_set(MemberRole::Admin, MemberRole::Admin));
        for role in MemberRole::ALL {
            assert!(!may_set(MemberRole::Manager, role));
        }
    }
}
