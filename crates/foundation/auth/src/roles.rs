//! The roles of members, and what each of them may do. The table here is the only list.

use model::{MemberRole, Scope, ScopeSet};

/// Returns the scopes of a role.
pub fn scopes(role: MemberRole) -> ScopeSet {
    let reads = |scope: &Scope| scope.as_str().ends_with(":read");
    match role {
        MemberRole::Owner | MemberRole::Admin => Scope::of_workspaces().collect(),
        MemberRole::Manager => Scope::of_workspaces().collect(),
        MemberRole::Agent | MemberRole::Viewer => Scope::of_workspaces().filter(reads).collect(),
    }
}
