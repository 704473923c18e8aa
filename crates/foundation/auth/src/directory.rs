//! API keys and workspaces for the authentication gate, cached for at most ten seconds.
//!
//! A revoked key or a changed plan takes effect on every replica within ten seconds, without any message between
//! replicas.

use crate::keys::{self, StoredKey};
use crate::schema::workspaces;
use crate::subscription::load_workspaces;
use crate::{Cache, SecretHash};
use diesel::prelude::*;
use model::{KeyId, PartnerId, Result, Workspace, WorkspaceId};
use std::sync::Arc;
use store::{Db, Read};

/// Counts the contacts of a workspace. Stops at the given limit plus one.
pub type CountContacts = fn(&mut Read, WorkspaceId, i64) -> Result<i64>;

/// A cached directory of keys and workspaces. Each process has one.
pub struct Directory {
    db: Db,
    count_contacts: Option<CountContacts>,
    keys: Cache<SecretHash, StoredKey>,
    /// Keys without a secret that anybody knows, and those of open streams.
    keys_by_id: Cache<KeyId, StoredKey>,
    workspaces: Cache<WorkspaceId, Workspace>,
    slugs: Cache<String, WorkspaceId>,
    clients: Cache<PartnerId, Vec<WorkspaceId>>,
}

impl Directory {
    /// Creates a directory that reads from `db`.
    pub fn new(db: Db) -> Self {
        Self {
            db,
            count_contacts: None,
            keys: Cache::new(),
            keys_by_id: Cache::new(),
            workspaces: Cache::new(),
            slugs: Cache::new(),
            clients: Cache::new(),
        }
    }

    /// Sets the function that counts contacts. A workspace with more contacts than its plan allows is then blocked.
    #[must_use]
    pub fn counting_contacts(self, count: CountContacts) -> Self {
        Self { count_contacts: Some(count), ..self }
    }

    /// Returns the key with this secret, in any state (also revoked or expired).
    pub async fn key(&self, hash: SecretHash) -> Result<Option<Arc<StoredKey>>> {
        let read = self.db.read(move |read| keys::by_hash(read, hash));
        self.keys.get_or_read(hash, self.db.now(), read).await
    }

    /// Returns the key with this id, in any state.
    pub async fn key_by_id(&self, id: &KeyId) -> Result<Option<Arc<StoredKey>>> {
        let wanted = id.clone();
        let read = self.db.read(move |read| keys::find(read, &wanted));
        self.keys_by_id.get_or_read(id.clone(), self.db.now(), read).await
    }

    /// Returns `true` if the cache knows that a key with this secret exists or existed. Does not query the database.
    pub fn was_key(&self, hash: SecretHash) -> bool {
        self.keys.was_found(&hash)
    }

    /// Returns a workspace with its plan.
    pub async fn workspace(&self, id: WorkspaceId) -> Result<Option<Arc<Workspace>>> {
        let count = self.count_contacts;
        let read = self.db.read(move |read| {
            let Some(mut workspace) = load_workspaces(read, [id])?.pop() else { return Ok(None) };
            // A workspace that is blocked anyway needs no count.
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

    /// Returns `true` if the workspace is blocked or does not exist. For requests without an API key, such as
    /// webhooks.
    pub async fn is_cut(&self, id: WorkspaceId) -> Result<bool> {
        let workspace = self.workspace(id).await?;
        Ok(workspace.is_none_or(|workspace| workspace.blocked_reason.is_some()))
    }

    /// Returns the id of the workspace with this slug.
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

    /// Returns the first two workspaces attributed to a partner. Two are enough to tell whether a request must name
    /// one.
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

    /// Clears the caches. Called after a change in this process, so that the next request sees it.
    pub fn forget(&self) {
        self.keys.clear();
        self.keys_by_id.clear();
        self.workspaces.clear();
        self.slugs.clear();
        self.clients.clear();
    }
}
