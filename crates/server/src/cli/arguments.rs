//! Arguments that several commands take.

use auth::workspaces;
use clap::Args;
use model::{Result, WorkspaceId};
use store::Read;

/// How rows are printed.
#[derive(Args)]
pub(super) struct Json {
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// The workspace with this id or slug.
pub(super) fn workspace_id(read: &mut Read, text: &str) -> Result<WorkspaceId> {
    Ok(workspaces::find(read, text)?.id)
}
