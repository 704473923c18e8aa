//! Collections, as other groups name them.

use model::{CollectionId, Result, WorkspaceId};
use std::sync::Arc;
use store::Read;

/// The collections of workspaces. The group that keeps them implements it.
pub trait Collections: Send + Sync {
    /// The name of a collection of the workspace that can be used; `None` where there is none.
    ///
    /// # Errors
    /// When the database fails.
    fn name(&self, read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<Option<String>>;
}

/// The collections of workspaces. A service that operations ask for.
#[derive(Clone)]
pub struct CollectionDirectory(Arc<dyn Collections>);

impl CollectionDirectory {
    /// A directory of these collections.
    pub fn new(collections: impl Collections + 'static) -> Self {
        Self(Arc::new(collections))
    }

    /// The name of a collection of the workspace that can be used; `None` where there is none.
    ///
    /// # Errors
    /// When the database fails.
    pub fn name(&self, read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<Option<String>> {
        self.0.name(read, workspace, id)
    }
}
