//! Collections, as other groups name them.

use fields::{Field, FieldType};
use model::{CollectionId, Result, WorkspaceId};
use std::ops::Deref;
use std::sync::Arc;
use store::Read;

/// A field of items or contacts, as other groups see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordField {
    /// The key.
    pub key: String,
    /// The type.
    pub kind: FieldType,
    /// The collection that a relation refers to.
    pub target: Option<CollectionId>,
}

impl From<&Field> for RecordField {
    fn from(field: &Field) -> Self {
        let target = field.options.target_collection_id;
        Self { key: field.key.clone(), kind: field.kind, target }
    }
}

/// The collections of workspaces. The group that keeps them implements it.
pub trait Collections: Send + Sync {
    /// The name of a collection of the workspace that can be used; `None` where there is none.
    ///
    /// # Errors
    /// When the database fails.
    fn name(&self, read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<Option<String>>;

    /// The fields of a collection, archived ones included; none where there is no such collection.
    ///
    /// # Errors
    /// When the database fails.
    fn fields(&self, read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<Vec<RecordField>>;
}

/// The collections of workspaces. A service that operations ask for.
#[derive(Clone)]
pub struct CollectionDirectory(Arc<dyn Collections>);

impl CollectionDirectory {
    /// A directory of these collections.
    pub fn new(collections: impl Collections + 'static) -> Self {
        Self(Arc::new(collections))
    }
}

impl Deref for CollectionDirectory {
    type Target = dyn Collections;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
