//! The installation, for its operators: what it consists of, its workspaces and its accounts. Operators see no content of
//! tenants.

mod accounts;
mod checks;
mod model;
mod overview;
mod tenants;

pub use checks::{InstallationCheck, InstallationChecks};

/// Returns the operations on the installation.
pub(crate) fn operations() -> operation::Operations {
    vec![
        Box::new(overview::GetInstallation),
        Box::new(checks::CheckInstallation),
        Box::new(tenants::ListWorkspaces),
        Box::new(tenants::CreateWorkspace),
        Box::new(tenants::BlockWorkspace),
        Box::new(tenants::UnblockWorkspace),
        Box::new(tenants::SetWorkspacePlan),
        Box::new(tenants::GrantWorkspaceEnergy),
        Box::new(accounts::ListAccounts),
    ]
}
