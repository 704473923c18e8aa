//! The roles of members, and what each of them may do. The table here is the only list; `docs/roles.txt` is printed
//! from it.

use model::{Code, Error, MemberRole, MemberSession, Result, Scope, ScopeSet, text_enum};

text_enum! {
    /// What a member may do that no scope covers. Operations of the dashboard state one (`session = "…"`).
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Permission {
        /// Read and change the own account.
        Account = "account",
        /// Create, change, rotate and revoke API keys, and set their budgets.
        ManageKeys = "keys:manage",
        /// Read the log of requests.
        ReadLogs = "logs:read",
        /// Invite and remove members, and set roles below owner.
        ManageTeam = "team:manage",
        /// Change the profile of the business.
        ManageBusiness = "business:manage",
        /// Connect channels and change their credentials.
        ConnectChannels = "channels:connect",
        /// Close, reopen and snooze conversations.
        CloseConversations = "conversations:close",
        /// Read the audit log.
        ReadAuditLog = "audit:read",
        /// Change the name of the workspace, and follow its first steps.
        ManageWorkspace = "workspace:manage",
        /// Manage the installation. No role has it: it belongs to accounts of operators.
        ManageInstallation = "installation:manage",
        /// End the workspace.
        EndWorkspace = "workspace:end",
        /// Make members owners, and take that from them.
        MakeOwners = "owners:make",
        /// Authorize OAuth apps, and end what apps of others in the workspace may do.
        AuthorizeApps = "apps:authorize",
        /// Create OAuth apps of the workspace, and change their secrets.
        ManageApps = "apps:manage",
        /// Change the plan and the ways to pay, and buy Energy.
        ManageBilling = "billing:manage",
    }
}

impl Permission {
    /// Reads a permission at compile time; a word that is not in the list does not compile.
    #[must_use]
    pub const fn literal(text: &str) -> Self {
        let mut rest: &[Self] = &Self::ALL;
        while let [first, others @ ..] = rest {
            if same(first.as_str(), text) {
                return *first;
            }
            rest = others;
        }
        #[expect(clippy::panic, reason = "it runs at compile time, where it is an error of the compiler")]
        {
            panic!("no such permission")
        }
    }
}

const fn same(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    while let ([x, rest_of_one @ ..], [y, rest_of_other @ ..]) = (one, other) {
        if *x != *y {
            return false;
        }
        (one, other) = (rest_of_one, rest_of_other);
    }
    one.is_empty() && other.is_empty()
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
    use Permission::{Account, CloseConversations, EndWorkspace, MakeOwners, ManageInstallation};
    match (permission, role) {
        (ManageInstallation, _) => false,
        (Account, _) | (_, MemberRole::Owner) => true,
        (EndWorkspace | MakeOwners, _) => false,
        (_, MemberRole::Admin) => true,
        (CloseConversations, MemberRole::Manager | MemberRole::Agent) => true,
        (_, MemberRole::Manager | MemberRole::Agent | MemberRole::Viewer) => false,
    }
}

/// Returns an error unless a member who has signed in has the permission, by the role or as an operator.
///
/// # Errors
/// `missing_scope` with the permission as `param`.
pub fn expect(member: &MemberSession, permission: Permission) -> Result<()> {
    let message = match permission {
        Permission::ManageInstallation if member.is_operator => return Ok(()),
        Permission::ManageInstallation => {
            "This is for the operators of the installation. `svc operator link` makes one.".to_owned()
        }
        other if permits(member.role, other) => return Ok(()),
        other => format!("The role `{}` does not include `{}`.", member.role.as_str(), other.as_str()),
    };
    Err(Error::new(Code::MissingScope, message).param(permission.as_str()))
}

/// Returns whether a member may give somebody a role, or take it from somebody who has it: with `team:manage`, and for
/// owners with `owners:make`.
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
    fn no_role_manages_the_installation() {
        for role in MemberRole::ALL {
            assert!(!permits(role, Permission::ManageInstallation), "{role:?}");
            assert!(permits(role, Permission::Account), "{role:?}");
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
