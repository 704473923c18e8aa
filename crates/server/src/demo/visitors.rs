//! The fictional workspace that everybody can read with the demo key.

use super::fill;
use crate::operator_error::cause;
use auth::keys::offer_demo;
use auth::workspaces::NewWorkspace;
use billing::plans;
use model::{Result, SubscriptionStatus, WorkspaceId};
use store::{Db, Tx};

/// Makes the demo key usable, with its workspace, or unusable.
pub(crate) async fn offer_key(db: &Db, is_offered: bool) -> anyhow::Result<()> {
    db.write(move |tx| offer_demo(tx, is_offered, make)).await.map_err(cause)
}

fn make(tx: &mut Tx) -> Result<WorkspaceId> {
    plans::seed_catalogue(tx)?;
    let new =
        NewWorkspace { name: "Casa Nordica".to_owned(), slug: "casa-nordica".to_owned(), partner: None };
    let workspace = plans::create_workspace(tx, &new)?.id;
    // Without a monthly quota, which all visitors together would use up.
    plans::set_plan(tx, workspace, "unlimited", SubscriptionStatus::Active, None)?;
    fill(tx, workspace)?;
    Ok(workspace)
}
