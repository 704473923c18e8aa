//! Keys and workspaces as the gate sees them: read from the database, remembered for at most ten seconds.
//!
//! Ten seconds is the longest that a revoked key or a changed plan can go unnoticed, on every replica and without
//! any message between them; the specification allows sixty.

use crate::keys::{self, StoredKey};
use crate::schema::workspaces;
use crate::subscription::load_workspaces;
use crate::{Cache, SecretHash};
use diesel::prelude::*;
use model::{PartnerId, Result, Workspace, WorkspaceId};
use std::sync::Arc;
use store::{Db, Read};

/// How many contacts a workspace has, counted up to a number and one more.
pub type CountContacts = fn(&mut Read, WorkspaceId, i64) -> Result<i64>;

/// The directory. One per process.
pub struct Directory {
    db: Db,
    count_contacts: Option<CountContacts>,
    keys: Cache<SecretHash, StoredKey>,
    workspaces: Cache<WorkspaceId, Workspace>,
    slugs: Cache<String, WorkspaceId>,
    clients: Cache<PartnerId, Vec<WorkspaceId>>,
}

impl Directory {
    /// A directory of what is in `db`.
    pub fn new(db: Db) -> Self {
        Self {
            db,
            count_contacts: None,
            keys: Cache::new(),
            workspaces: Cache::new(),
            slugs: Cache::new(),
            clients: Cache::new(),
        }
    }

    /// With a count of contacts: a workspace that has more than its plan allows is then cut.
    #[must_use]
    pub fn counting_contacts(self, count: CountContacts) -> Self {
        Self { count_contacts: Some(count), ..self }
    }

    /// The key with this secret, whatever its state.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn key(&self, hash: SecretHash) -> Result<Option<Arc<StoredKey>>> {
        let read = self.db.read(move |read| keys::by_hash(read, hash));
        self.keys.get_or_read(hash, self.db.now(), read).await
    }

    /// Whether the secret was one of a key when it was last looked up, as far as that is remembered.
    pub fn was_key(&self, hash: SecretHash) -> bool {
        self.keys.was_found(&hash)
    }

    /// A workspace with its plan.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn workspace(&self, id: WorkspaceId) -> Result<Option<Arc<Workspace>>> {
        let count = self.count_contacts;
        let read = self.db.read(move |read| {
            let Some(mut workspace) = load_workspaces(read, [id])?.pop() else { return Ok(None) };
            let limit = workspace.plan.contacts_limit.filter(|_| workspace.blocked_reason.is_none());
            if let (Some(limit), Some(count)) = (limit, count)
                && count(read, id, limit)? > limit
            {
                let reason = format!("The workspace has more contacts than the {limit} of its plan.");
                workspace.blocked_reason = Some(reason);
            }
            Ok(Some(workspace))
        });
        self.workspaces.get_or_read(id, self.db.now(), read).await
    }

    /// Whether nobody may operate a workspace: it is blocked, or there is none. For what is asked without a key.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_cut(&self, id: WorkspaceId) -> Result<bool> {
        let workspace = self.workspace(id).await?;
        Ok(workspace.is_none_or(|workspace| workspace.blocked_reason.is_some()))
    }

    /// The workspace with this slug.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn workspace_by_slug(&self, slug: &str) -> Result<Option<WorkspaceId>> {
        let wanted = slug.to_owned();
        let read = self.db.read(move |read| {
            Ok(workspaces::table
                .filter(workspaces::slug.eq(wanted))
                .select(workspaces::id)
                .first(read.connection())
                .optional()?)
        });
        let found = self.slugs.get_or_read(slug.to_owned(), self.db.now(), read).await?;
        Ok(found.map(|id| *id))
    }

    /// The workspaces attributed to a partner, at most the first two: whoever has more must name one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn first_clients(&self, partner: PartnerId) -> Result<Arc<Vec<WorkspaceId>>> {
        let read = self.db.read(move |read| {
            let found: Vec<WorkspaceId> = workspaces::table
                .filter(workspaces::partner_id.eq(partner))
                .order(workspaces::id.asc())
                .select(workspaces::id)
                .limit(2)
                .load(read.connection())?;
            Ok(Some(found))
        });
        Ok(self.clients.get_or_read(partner, self.db.now(), read).await?.unwrap_or_default())
    }

    /// Forgets everything, so that the next request reads anew: for whoever just changed something here.
    pub fn forget(&self) {
        self.keys.clear();
        self.workspaces.clear();
        self.slugs.clear();
        self.clients.clear();
    }
}
