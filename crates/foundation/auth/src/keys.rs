//! API keys in the database. Making and changing them is for people (the command line, later the dashboard): the
//! API has no operation for it.

use crate::schema::{api_keys, workspaces};
use crate::subscription::load_workspaces;
use crate::{KeySecret, SecretHash};
use diesel::prelude::*;
use model::{
    ApiKey, Code, Env, Error, KeyId, KeyOwner, PartnerId, Result, Scope, ScopeSet, Timestamp, Workspace,
    WorkspaceId,
};
use std::collections::{BTreeSet, HashMap};
use store::{Read, Tx};

/// A key to be made.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// What people call it, 1 to 80 characters.
    pub name: String,
    /// Whose it is.
    pub owner: KeyOwner,
    /// Live or test; cannot be changed later.
    pub env: Env,
    /// What it may do; at least one.
    pub scopes: Vec<Scope>,
    /// Requests per minute, below the plan's.
    pub rate_limit_rpm: Option<i64>,
    /// Requests per month, below the plan's.
    pub monthly_quota: Option<i64>,
    /// The most Energy money in a month, in cents (0 to 10,000,000).
    pub budget_cents: Option<i64>,
    /// Whether reaching the budget refuses further requests.
    pub budget_cutoff: bool,
    /// The client that a partner key operates when a request names none.
    pub default_workspace: Option<WorkspaceId>,
    /// When it stops working by itself.
    pub expires_at: Option<Timestamp>,
}

impl NewKey {
    /// A workspace's key that has these scopes, no limits of its own and no end.
    pub fn of_workspace(
        name: impl Into<String>,
        workspace: WorkspaceId,
        env: Env,
        scopes: Vec<Scope>,
    ) -> Self {
        Self {
            name: name.into(),
            owner: KeyOwner::Workspace(workspace),
            env,
            scopes,
            rate_limit_rpm: None,
            monthly_quota: None,
            budget_cents: None,
            budget_cutoff: true,
            default_workspace: None,
            expires_at: None,
        }
    }
}

/// A stored key with what only the gate and the owner's own lists need.
#[derive(Debug, Clone)]
pub struct StoredKey {
    /// What the rest of the service knows of it.
    pub key: ApiKey,
    /// The name for people.
    pub name: String,
    /// Rises when the budget's amount changes, which re-arms its thresholds.
    pub budget_version: i64,
    /// When it stops working by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When the object was created.
    pub created_at: Timestamp,
}

impl StoredKey {
    /// That it still opens anything.
    ///
    /// # Errors
    /// `api_key_revoked`, `api_key_expired`.
    pub fn check_usable(&self, now: Timestamp) -> Result<()> {
        if self.revoked_at.is_some() {
            return Err(Error::new(Code::ApiKeyRevoked, "The API key was revoked."));
        }
        if self.expires_at.is_some_and(|expires| expires <= now) {
            return Err(Error::new(Code::ApiKeyExpired, "The API key has expired."));
        }
        Ok(())
    }
}

impl StoredKey {
    /// `active`, `expired` or `revoked`.
    pub fn status(&self, now: Timestamp) -> &'static str {
        if self.revoked_at.is_some() {
            "revoked"
        } else if self.expires_at.is_some_and(|end| end <= now) {
            "expired"
        } else {
            "active"
        }
    }
}

#[derive(Queryable, Insertable)]
#[diesel(table_name = api_keys)]
struct KeyRow {
    id: KeyId,
    secret_hash: Vec<u8>,
    name: String,
    env: Env,
    scopes: String,
    lineage_id: KeyId,
    workspace_id: Option<WorkspaceId>,
    partner_id: Option<PartnerId>,
    default_workspace_id: Option<WorkspaceId>,
    rate_limit_rpm: Option<i64>,
    monthly_quota: Option<i64>,
    budget_cents: Option<i64>,
    budget_cutoff: bool,
    budget_version: i64,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl KeyRow {
    fn stored(self) -> Result<StoredKey> {
        let owner = match (self.workspace_id, self.partner_id) {
            (Some(workspace), None) => KeyOwner::Workspace(workspace),
            (None, Some(partner)) => KeyOwner::Partner(partner),
            _ => return Err(Error::internal("a key has no owner, or two")),
        };
        let scopes = ScopeSet::parse_stored(&self.scopes);
        let key = ApiKey {
            id: self.id,
            lineage: self.lineage_id,
            owner,
            env: self.env,
            // Rechecked whenever a key is read: a partner scope on a workspace key never counts.
            scopes: match owner {
                KeyOwner::Workspace(_) => scopes.without(Scope::is_partner_only),
                KeyOwner::Partner(_) => scopes,
            },
            rate_limit_rpm: self.rate_limit_rpm,
            monthly_quota: self.monthly_quota,
            budget_cents: self.budget_cents,
            budget_cutoff: self.budget_cutoff,
            default_workspace: self.default_workspace_id,
        };
        Ok(StoredKey {
            key,
            name: self.name,
            budget_version: self.budget_version,
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
            created_at: self.created_at,
        })
    }
}

/// Makes a key and gives it back with its secret, which exists nowhere else from then on.
///
/// # Errors
/// `validation_error` for a name, scope or limit that no key may have; `workspace_not_found` for an owner that
/// does not exist.
pub fn create(tx: &mut Tx, new: NewKey) -> Result<(StoredKey, KeySecret)> {
    check(&new)?;
    let (workspace, partner) = match new.owner {
        KeyOwner::Workspace(id) => (Some(id), None),
        KeyOwner::Partner(id) => (None, Some(id)),
    };
    for id in workspace.iter().chain(&new.default_workspace) {
        let known: Option<WorkspaceId> =
            workspaces::table.find(*id).select(workspaces::id).first(tx.connection()).optional()?;
        known.ok_or_else(|| Error::new(Code::WorkspaceNotFound, "The workspace does not exist."))?;
    }
    let secret = KeySecret::generate(new.env, &*tx.random());
    let id = KeyId::new(tx.now(), &*tx.random());
    let row = KeyRow {
        id: id.clone(),
        secret_hash: secret.hash().0.to_vec(),
        name: new.name,
        env: new.env,
        scopes: new.scopes.into_iter().collect::<ScopeSet>().to_string(),
        lineage_id: id.clone(),
        workspace_id: workspace,
        partner_id: partner,
        default_workspace_id: new.default_workspace,
        rate_limit_rpm: new.rate_limit_rpm,
        monthly_quota: new.monthly_quota,
        budget_cents: new.budget_cents,
        budget_cutoff: new.budget_cutoff,
        budget_version: 1,
        expires_at: new.expires_at,
        revoked_at: None,
        created_at: tx.now(),
    };
    diesel::insert_into(api_keys::table).values(row).execute(tx.connection())?;
    Ok((by_id(tx, &id)?, secret))
}

fn check(new: &NewKey) -> Result<()> {
    if !(1..=80).contains(&new.name.trim().chars().count()) {
        return Err(Error::invalid("name", "must have 1 to 80 characters"));
    }
    if new.scopes.is_empty() {
        return Err(Error::invalid("scopes", "must name at least one scope"));
    }
    for (place, scope) in new.scopes.iter().enumerate() {
        let param = format!("scopes[{place}]");
        if scope.is_retired() {
            return Err(Error::invalid(param, format_args!("names `{scope}`, which is no longer offered")));
        }
        if scope.is_partner_only() && matches!(new.owner, KeyOwner::Workspace(_)) {
            return Err(Error::invalid(
                param,
                format_args!("names `{scope}`, which is for partner keys only"),
            ));
        }
        if new.scopes.iter().take(place).any(|earlier| earlier == scope) {
            return Err(Error::invalid(param, format_args!("names `{scope}` twice")));
        }
    }
    for (param, limit, least, most) in [
        ("rate_limit_rpm", new.rate_limit_rpm, 1, 1_000_000),
        ("monthly_quota", new.monthly_quota, 0, i64::MAX),
        ("budget_cents", new.budget_cents, 0, 10_000_000),
    ] {
        if limit.is_some_and(|limit| !(least..=most).contains(&limit)) {
            return Err(Error::invalid(param, format_args!("must be between {least} and {most}")));
        }
    }
    Ok(())
}

/// The key with this secret, whatever its state.
pub(crate) fn by_hash(read: &mut Read, hash: SecretHash) -> Result<Option<StoredKey>> {
    let row: Option<KeyRow> = api_keys::table
        .filter(api_keys::secret_hash.eq(hash.0.to_vec()))
        .first(read.connection())
        .optional()?;
    row.map(KeyRow::stored).transpose()
}

/// The key with this id.
///
/// # Errors
/// `not_found`.
pub fn by_id(read: &mut Read, id: &KeyId) -> Result<StoredKey> {
    let row: Option<KeyRow> = api_keys::table.find(id).first(read.connection()).optional()?;
    row.ok_or_else(|| Error::not_found("key"))?.stored()
}

/// What keys may still do, each in a workspace. A key stands for its lineage: for whatever it was rotated to, too. It may
/// do nothing once all of its lineage is revoked or expired, when its partner has lost the workspace, and while the
/// workspace is blocked. For work that goes on after the request that asked for it.
///
/// # Errors
/// When the database fails.
pub fn standing<'a>(
    read: &mut Read,
    wanted: impl IntoIterator<Item = (&'a KeyId, WorkspaceId)>,
) -> Result<HashMap<(KeyId, WorkspaceId), ScopeSet>> {
    let wanted: BTreeSet<(&KeyId, WorkspaceId)> = wanted.into_iter().collect();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let lineages: BTreeSet<&KeyId> = wanted.iter().map(|(lineage, _)| *lineage).collect();
    let ids: BTreeSet<WorkspaceId> = wanted.iter().map(|(_, workspace)| *workspace).collect();
    let now = read.now();
    let rows: Vec<KeyRow> = api_keys::table
        .filter(api_keys::lineage_id.eq_any(lineages))
        .filter(api_keys::revoked_at.is_null())
        .filter(api_keys::expires_at.is_null().or(api_keys::expires_at.gt(now)))
        .load(read.connection())?;
    let mut keys: HashMap<KeyId, Vec<ApiKey>> = HashMap::new();
    for row in rows {
        let key = row.stored()?.key;
        keys.entry(key.lineage.clone()).or_default().push(key);
    }
    let workspaces = load_workspaces(read, ids)?;
    let open = workspaces.into_iter().filter(|workspace| workspace.blocked_reason.is_none());
    let open: HashMap<WorkspaceId, Workspace> = open.map(|workspace| (workspace.id, workspace)).collect();
    let scopes = |lineage: &KeyId, workspace: WorkspaceId| -> ScopeSet {
        let Some(workspace) = open.get(&workspace) else { return ScopeSet::default() };
        let own = keys.get(lineage).into_iter().flatten().filter(|key| key.operates(workspace));
        own.flat_map(|key| key.scopes.iter()).collect()
    };
    Ok(wanted.into_iter().map(|(lineage, id)| ((lineage.clone(), id), scopes(lineage, id))).collect())
}

/// What one key may still do in a workspace, as [`standing`] says.
///
/// # Errors
/// When the database fails.
pub fn standing_scopes(read: &mut Read, lineage: &KeyId, workspace: WorkspaceId) -> Result<ScopeSet> {
    Ok(standing(read, [(lineage, workspace)])?.into_values().next().unwrap_or_default())
}

/// The keys of a workspace (`None`: all keys of the installation), oldest first.
///
/// # Errors
/// When the database fails.
pub fn list(read: &mut Read, workspace: Option<WorkspaceId>) -> Result<Vec<StoredKey>> {
    let mut query = api_keys::table.order(api_keys::id.asc()).into_boxed();
    if let Some(workspace) = workspace {
        query = query.filter(api_keys::workspace_id.eq(workspace));
    }
    let rows: Vec<KeyRow> = query.load(read.connection())?;
    rows.into_iter().map(KeyRow::stored).collect()
}

/// Revokes a key for good. Revoking twice changes nothing.
///
/// # Errors
/// `not_found`.
pub fn revoke(tx: &mut Tx, id: &KeyId) -> Result<StoredKey> {
    let now = tx.now();
    diesel::update(api_keys::table.find(id).filter(api_keys::revoked_at.is_null()))
        .set(api_keys::revoked_at.eq(now))
        .execute(tx.connection())?;
    by_id(tx, id)
}

/// Sets or removes a key's monthly budget. With another amount the version rises, which re-arms the thresholds.
///
/// # Errors
/// `not_found`, or `validation_error` for a budget outside 0 to 10,000,000 cents.
pub fn set_budget(tx: &mut Tx, id: &KeyId, cents: Option<i64>, cutoff: bool) -> Result<StoredKey> {
    if cents.is_some_and(|cents| !(0..=10_000_000).contains(&cents)) {
        return Err(Error::invalid("budget_cents", "must be between 0 and 10000000"));
    }
    // This locks the row, so what is read after it is what the amount is compared with on PostgreSQL too.
    diesel::update(api_keys::table.find(id))
        .set(api_keys::budget_cutoff.eq(cutoff))
        .execute(tx.connection())?;
    let stored = by_id(tx, id)?;
    if stored.key.budget_cents == cents {
        return Ok(stored);
    }
    diesel::update(api_keys::table.find(id))
        .set((api_keys::budget_cents.eq(cents), api_keys::budget_version.eq(api_keys::budget_version + 1)))
        .execute(tx.connection())?;
    by_id(tx, id)
}

/// A key's monthly budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// What it may spend, in cents.
    pub cents: i64,
    /// Whether reaching it refuses the key's requests.
    pub cutoff: bool,
    /// Rises with every other amount.
    pub version: i64,
}

/// A key's budget as it is now: a caller's copy is as old as the caller's run. `None` without one.
///
/// # Errors
/// When the database fails.
pub fn budget(read: &mut Read, key: &KeyId) -> Result<Option<Budget>> {
    let row: Option<(Option<i64>, bool, i64)> = api_keys::table
        .find(key)
        .select((api_keys::budget_cents, api_keys::budget_cutoff, api_keys::budget_version))
        .get_result(read.connection())
        .optional()?;
    Ok(row.and_then(|(cents, cutoff, version)| cents.map(|cents| Budget { cents, cutoff, version })))
}

/// The budgets of those of these keys that have one, as they are now.
///
/// # Errors
/// When the database fails.
pub fn budgets(read: &mut Read, keys: &[&KeyId]) -> Result<HashMap<KeyId, Budget>> {
    let rows: Vec<(KeyId, Option<i64>, bool, i64)> = api_keys::table
        .filter(api_keys::id.eq_any(keys))
        .filter(api_keys::budget_cents.is_not_null())
        .select((api_keys::id, api_keys::budget_cents, api_keys::budget_cutoff, api_keys::budget_version))
        .load(read.connection())?;
    let budget = |(key, cents, cutoff, version): (KeyId, Option<i64>, bool, i64)| {
        Some((key, Budget { cents: cents?, cutoff, version }))
    };
    Ok(rows.into_iter().filter_map(budget).collect())
}

/// The workspace's keys that have a budget and are neither revoked nor expired, oldest first.
///
/// # Errors
/// When the database fails.
pub fn with_budget(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<StoredKey>> {
    let now = read.now();
    let rows: Vec<KeyRow> = api_keys::table
        .filter(api_keys::workspace_id.eq(workspace))
        .filter(api_keys::budget_cents.is_not_null())
        .filter(api_keys::revoked_at.is_null())
        .filter(api_keys::expires_at.is_null().or(api_keys::expires_at.gt(now)))
        .order(api_keys::id.asc())
        .load(read.connection())?;
    rows.into_iter().map(KeyRow::stored).collect()
}

/// The lineages of keys, by the keys' ids. A key that does not exist has none.
///
/// # Errors
/// When the database fails.
pub fn lineages(read: &mut Read, keys: &[&str]) -> Result<HashMap<String, String>> {
    let mut lineages = HashMap::new();
    // In pieces, because both databases bound the number of values in a statement.
    for keys in keys.chunks(500) {
        let found: Vec<(String, String)> = api_keys::table
            .filter(api_keys::id.eq_any(keys))
            .select((api_keys::id, api_keys::lineage_id))
            .load(read.connection())?;
        lineages.extend(found);
    }
    Ok(lineages)
}

/// The lineages of all keys that an owner ever had, in ascending order.
///
/// # Errors
/// When the database fails.
pub fn lineages_of(read: &mut Read, owner: KeyOwner) -> Result<Vec<KeyId>> {
    let query = api_keys::table.select(api_keys::lineage_id).distinct().order(api_keys::lineage_id.asc());
    Ok(match owner {
        KeyOwner::Workspace(id) => query.filter(api_keys::workspace_id.eq(id)).load(read.connection())?,
        KeyOwner::Partner(id) => query.filter(api_keys::partner_id.eq(id)).load(read.connection())?,
    })
}
