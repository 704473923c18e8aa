//! Subscriptions: the plans that the service comes with, and the periods in which workspaces have them.
//!
//! These are the acts of whoever runs the service: at the command line, and in the dashboard for operators of the
//! installation. The gate sees within ten seconds what changes here.

mod catalogue;
mod periods;

pub use catalogue::seed_catalogue;
pub use periods::{cancel_at_period_end, grant_included, renew, set_plan};

use crate::ledger::open_account;
use auth::workspaces::{self, NewWorkspace, WorkspaceRecord};
use model::Result;
use store::Tx;

/// Makes a workspace without a plan, and its empty Energy account.
///
/// # Errors
/// As [`auth::workspaces::create`].
pub fn create_workspace(tx: &mut Tx, new: &NewWorkspace) -> Result<WorkspaceRecord> {
    let workspace = workspaces::create(tx, new)?;
    open_account(tx, workspace.id)?;
    Ok(workspace)
}
