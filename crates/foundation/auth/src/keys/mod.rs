//! API keys in the database. People create and change them in the dashboard and at the command line.

mod changes;
mod demo;
mod of_workspace;

pub use changes::{KeyChange, change, rotate};
pub use demo::{DEMO_RATE_LIMIT_RPM, DEMO_SECRET, offer_demo};
pub use of_workspace::{in_workspace, is_of_kinds, names};

use crate::schema::{api_keys, workspaces};
use crate::subscription::load_workspaces;
use crate::{KeySecret, SecretHash, roles};
use diesel::prelude::*;
use model::{
    Actor, ActorType, ApiKey, Code, Env, Error, KeyId, KeyOwner, MemberId, MemberRole, PartnerId, Result,
    Scope, ScopeSet, Timestamp, Workspace, WorkspaceId, text_enum,
};
use std::collections::{BTreeSet, HashMap};
use store::{Read, Tx, for_no_key_update};

/// The data of a new key.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The name for people, 1 to 80 characters.
    pub name: String,
    /// The owner.
    pub owner: KeyOwner,
    /// Live or test; cannot be changed later.
    pub env: Env,
    /// The permissions; at least one.
    pub scopes: Vec<Scope>,
    /// Requests per minute. Applies if it is below the plan's limit.
    pub rate_limit_rpm: Option<i64>,
    /// Requests per month. Applies if it is below the plan's limit.
    pub monthly_quota: Option<i64>,
    /// The monthly budget for Energy, in cents (0 to 10,000,000).
    pub budget_cents: Option<i64>,
    /// Whether reaching the budget refuses further requests.
    pub budget_cutoff: bool,
    /// The client workspace of a partner key's request that names none.
    pub default_workspace: Option<WorkspaceId>,
    /// When the key expires.
    pub expires_at: Option<Timestamp>,
}

impl NewKey {
    /// Returns a workspace's key with these scopes, without limits of its own and without an end.
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

text_enum! {
    /// Who acts through a key.
    pub enum KeyKind {
        /// Whoever has its secret.
        Secret = "secret",
        /// A member of the team, through sessions. Nobody knows a secret of it.
        Member = "member",
        /// An OAuth app, through access tokens. Nobody knows a secret of it.
        Grant = "grant",
        /// Everybody, with the published secret of the demo key.
        Demo = "demo",
    }
}

/// A stored key with the fields that only the gate and the owner's lists need.
#[derive(Debug, Clone)]
pub struct StoredKey {
    /// The part that the rest of the service uses.
    pub key: ApiKey,
    /// Who acts through it.
    pub kind: KeyKind,
    /// The role whose scopes the key has, if it is a member's.
    pub role: Option<MemberRole>,
    /// The member who acts through the key, or who authorized the app that does.
    pub member: Option<MemberId>,
    /// The name for people.
    pub name: String,
    /// Increases when the budget's amount changes. Each version reports its thresholds once.
    pub budget_version: i64,
    /// When the key expires.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When the object was created.
    pub created_at: Timestamp,
}

impl StoredKey {
    /// Returns an error if the key is revoked or expired.
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
    /// Returns who acts through the key, if that is not whoever has its secret: the member. For events, an app is its key.
    pub fn actor(&self) -> Option<Actor> {
        let member = self.member.filter(|_| self.kind == KeyKind::Member)?;
        Some(Actor { kind: ActorType::User, id: member.to_string(), run_id: None })
    }

    /// Returns `active`, `expired` or `revoked`.
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
    kind: KeyKind,
    role: Option<MemberRole>,
    member_id: Option<MemberId>,
}

impl KeyRow {
    fn stored(self) -> Result<StoredKey> {
        let owner = match (self.workspace_id, self.partner_id) {
            (Some(workspace), None) => KeyOwner::Workspace(workspace),
            (None, Some(partner)) => KeyOwner::Partner(partner),
            _ => return Err(Error::internal("a key has no owner, or two")),
        };
        let scopes = match self.role {
            Some(role) => roles::scopes(role),
            None => ScopeSet::parse_stored(&self.scopes),
        };
        let key = ApiKey {
            id: self.id,
            lineage: self.lineage_id,
            owner,
            env: self.env,
            // Checked on every read, so that a partner scope on a workspace key never has an effect.
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
            kind: self.kind,
            role: self.role,
            member: self.member_id,
            name: self.name,
            budget_version: self.budget_version,
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
            created_at: self.created_at,
        })
    }
}

/// Creates a key and returns it with its secret. The secret is not stored and cannot be shown again.
///
/// # Errors
/// `validation_error` for an invalid name, scope or limit; `workspace_not_found` for an owner that does not exist.
pub fn create(tx: &mut Tx, new: NewKey) -> Result<(StoredKey, KeySecret)> {
    let secret = KeySecret::generate(new.env, &*tx.random());
    let stored = insert(tx, new, secret.hash(), Holder { kind: KeyKind::Secret, role: None, member: None })?;
    Ok((stored, secret))
}

/// Creates the key through which a member acts. It has the scopes of the role.
///
/// # Errors
/// As [`create`].
pub fn create_for_member(
    tx: &mut Tx,
    name: String,
    workspace: WorkspaceId,
    env: Env,
    member: MemberId,
    role: MemberRole,
) -> Result<StoredKey> {
    let new = NewKey::of_workspace(name, workspace, env, roles::scopes(role).iter().collect());
    let unknown = unknown_secret(tx);
    insert(tx, new, unknown, Holder { kind: KeyKind::Member, role: Some(role), member: Some(member) })
}

/// Creates the key through which an OAuth app acts that a member has authorized.
///
/// # Errors
/// As [`create`].
pub fn create_for_grant(tx: &mut Tx, new: NewKey, member: MemberId) -> Result<StoredKey> {
    let unknown = unknown_secret(tx);
    insert(tx, new, unknown, Holder { kind: KeyKind::Grant, role: None, member: Some(member) })
}

/// Adds scopes to the key of a grant, and returns the key. It never loses any.
///
/// # Errors
/// `not_found`, `validation_error` for a scope that the key of a workspace cannot have.
pub fn extend_grant(tx: &mut Tx, id: &KeyId, scopes: ScopeSet) -> Result<StoredKey> {
    let row = api_keys::table.find(id).filter(api_keys::kind.eq(KeyKind::Grant));
    // Locked, so that two extensions at once both count.
    let stored: Option<String> =
        for_no_key_update(row.select(api_keys::scopes)).get_result(tx.connection()).optional()?;
    let stored = stored.ok_or_else(|| Error::not_found("key"))?;
    check_scopes(scopes.iter(), true)?;
    let union: ScopeSet = ScopeSet::parse_stored(&stored).iter().chain(scopes.iter()).collect();
    diesel::update(api_keys::table.find(id))
        .set(api_keys::scopes.eq(union.to_string()))
        .execute(tx.connection())?;
    by_id(tx, id)
}

/// Sets the role of a member's keys.
pub fn set_role(tx: &mut Tx, workspace: WorkspaceId, member: MemberId, role: MemberRole) -> Result<()> {
    diesel::update(api_keys::table)
        .filter(api_keys::workspace_id.eq(workspace))
        .filter(api_keys::member_id.eq(member))
        .filter(api_keys::kind.eq(KeyKind::Member))
        .set(api_keys::role.eq(role))
        .execute(tx.connection())?;
    Ok(())
}

/// Revokes the keys of a member of these kinds, and returns their ids.
pub fn revoke_of_member(
    tx: &mut Tx,
    workspace: WorkspaceId,
    member: MemberId,
    kinds: &[KeyKind],
) -> Result<Vec<KeyId>> {
    let now = tx.now();
    let ids: Vec<KeyId> = api_keys::table
        .filter(api_keys::workspace_id.eq(workspace))
        .filter(api_keys::member_id.eq(member))
        .filter(api_keys::kind.eq_any(kinds))
        .filter(api_keys::revoked_at.is_null())
        .select(api_keys::id)
        .load(tx.connection())?;
    diesel::update(api_keys::table.filter(api_keys::id.eq_any(&ids)))
        .set(api_keys::revoked_at.eq(now))
        .execute(tx.connection())?;
    Ok(ids)
}

/// Returns the digest of a secret that nobody is told. The column is unique, so every key has one.
fn unknown_secret(tx: &Tx) -> SecretHash {
    let mut bytes = [0; 32];
    tx.random().fill(&mut bytes);
    SecretHash(bytes)
}

/// Who acts through a new key.
struct Holder {
    kind: KeyKind,
    role: Option<MemberRole>,
    member: Option<MemberId>,
}

fn insert(tx: &mut Tx, new: NewKey, secret: SecretHash, holder: Holder) -> Result<StoredKey> {
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
    let id = KeyId::new(tx.now(), &*tx.random());
    let row = KeyRow {
        id: id.clone(),
        secret_hash: secret.0.to_vec(),
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
        kind: holder.kind,
        role: holder.role,
        member_id: holder.member,
    };
    diesel::insert_into(api_keys::table).values(row).execute(tx.connection())?;
    by_id(tx, &id)
}

fn check(new: &NewKey) -> Result<()> {
    check_name(&new.name)?;
    if new.scopes.is_empty() {
        return Err(Error::invalid("scopes", "must name at least one scope"));
    }
    check_scopes(new.scopes.iter().copied(), matches!(new.owner, KeyOwner::Workspace(_)))?;
    for (place, scope) in new.scopes.iter().enumerate() {
        if new.scopes.iter().take(place).any(|earlier| earlier == scope) {
            return Err(Error::invalid(format!("scopes[{place}]"), format_args!("names `{scope}` twice")));
        }
    }
    check_limits(new.rate_limit_rpm, new.monthly_quota, new.budget_cents)
}

fn check_name(name: &str) -> Result<()> {
    if (1..=80).contains(&name.trim().chars().count()) {
        return Ok(());
    }
    Err(Error::invalid("name", "must have 1 to 80 characters"))
}

fn check_limits(rate: Option<i64>, quota: Option<i64>, budget: Option<i64>) -> Result<()> {
    for (param, limit, least, most) in [
        ("rate_limit_rpm", rate, 1, 1_000_000),
        ("monthly_quota", quota, 0, i64::MAX),
        ("budget_cents", budget, 0, 10_000_000),
    ] {
        if limit.is_some_and(|limit| !(least..=most).contains(&limit)) {
            return Err(Error::invalid(param, format_args!("must be between {least} and {most}")));
        }
    }
    Ok(())
}

fn check_scopes(scopes: impl Iterator<Item = Scope>, of_workspace: bool) -> Result<()> {
    for (place, scope) in scopes.enumerate() {
        let param = format!("scopes[{place}]");
        if scope.is_retired() {
            return Err(Error::invalid(param, format_args!("names `{scope}`, which is no longer offered")));
        }
        if of_workspace && scope.is_partner_only() {
            let rule = format_args!("names `{scope}`, which is for partner keys only");
            return Err(Error::invalid(param, rule));
        }
    }
    Ok(())
}

/// Returns the key with this secret, in any state.
pub(crate) fn by_hash(read: &mut Read, hash: SecretHash) -> Result<Option<StoredKey>> {
    let row: Option<KeyRow> = api_keys::table
        .filter(api_keys::secret_hash.eq(hash.0.to_vec()))
        .first(read.connection())
        .optional()?;
    row.map(KeyRow::stored).transpose()
}

/// Returns the key with this id, in any state.
pub fn find(read: &mut Read, id: &KeyId) -> Result<Option<StoredKey>> {
    let row: Option<KeyRow> = api_keys::table.find(id).first(read.connection()).optional()?;
    row.map(KeyRow::stored).transpose()
}

/// Returns the key with this id.
///
/// # Errors
/// `not_found`.
pub fn by_id(read: &mut Read, id: &KeyId) -> Result<StoredKey> {
    find(read, id)?.ok_or_else(|| Error::not_found("key"))
}

/// Returns the scopes that keys have now, each in a workspace. A key is named by its lineage, so the scopes of later
/// rotations count too. The result is empty if all keys of the lineage are revoked or expired, if the partner no
/// longer has the workspace, or if the workspace is blocked. Used by work that goes on after the request that started
/// it.
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
        // By lineage instead of by id, so that rotated keys are found too.
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
        // `operates` is false for a partner key whose partner no longer has the workspace.
        let own = keys.get(lineage).into_iter().flatten().filter(|key| key.operates(workspace));
        own.flat_map(|key| key.scopes.iter()).collect()
    };
    Ok(wanted.into_iter().map(|(lineage, id)| ((lineage.clone(), id), scopes(lineage, id))).collect())
}

/// Returns the scopes that one key has now in a workspace (see [`standing`]).
pub fn standing_scopes(read: &mut Read, lineage: &KeyId, workspace: WorkspaceId) -> Result<ScopeSet> {
    Ok(standing(read, [(lineage, workspace)])?.into_values().next().unwrap_or_default())
}

/// Returns the keys of a workspace that have a secret, oldest first. `None` returns those of the whole installation. Keys of
/// members and apps belong to the lists of members and apps.
pub fn list(read: &mut Read, workspace: Option<WorkspaceId>) -> Result<Vec<StoredKey>> {
    let secret = api_keys::kind.eq(KeyKind::Secret);
    let mut query = api_keys::table.filter(secret).order(api_keys::id.asc()).into_boxed();
    if let Some(workspace) = workspace {
        query = query.filter(api_keys::workspace_id.eq(workspace));
    }
    let rows: Vec<KeyRow> = query.load(read.connection())?;
    rows.into_iter().map(KeyRow::stored).collect()
}

/// Revokes a key permanently. Revoking it again changes nothing.
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

/// Sets or removes a key's monthly budget. A different amount increases the version, so that its thresholds are
/// reported again.
///
/// # Errors
/// `not_found`, or `validation_error` for a budget outside 0 to 10,000,000 cents.
pub fn set_budget(tx: &mut Tx, id: &KeyId, cents: Option<i64>, cutoff: bool) -> Result<StoredKey> {
    if cents.is_some_and(|cents| !(0..=10_000_000).contains(&cents)) {
        return Err(Error::invalid("budget_cents", "must be between 0 and 10000000"));
    }
    // This update locks the row. On PostgreSQL a read before it could return an amount that a concurrent call
    // replaces.
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

/// The monthly budget of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The amount, in cents.
    pub cents: i64,
    /// Whether reaching it refuses the key's requests.
    pub cutoff: bool,
    /// Increases when the amount changes.
    pub version: i64,
}

/// Returns a key's current budget, or `None` if it has none. A caller's `ApiKey` may be as old as its run.
pub fn budget(read: &mut Read, key: &KeyId) -> Result<Option<Budget>> {
    let row: Option<(Option<i64>, bool, i64)> = api_keys::table
        .find(key)
        .select((api_keys::budget_cents, api_keys::budget_cutoff, api_keys::budget_version))
        .get_result(read.connection())
        .optional()?;
    Ok(row.and_then(|(cents, cutoff, version)| cents.map(|cents| Budget { cents, cutoff, version })))
}

/// Returns the current budgets of these keys. Keys without one are left out.
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

/// Returns the workspace's keys that have a budget and are neither revoked nor expired, oldest first.
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

/// Returns the lineages of keys, by key id. Keys that do not exist are left out.
pub fn lineages(read: &mut Read, keys: &[&str]) -> Result<HashMap<String, String>> {
    let mut lineages = HashMap::new();
    // Both databases limit the number of values in a statement.
    for keys in keys.chunks(500) {
        let found: Vec<(String, String)> = api_keys::table
            .filter(api_keys::id.eq_any(keys))
            .select((api_keys::id, api_keys::lineage_id))
            .load(read.connection())?;
        lineages.extend(found);
    }
    Ok(lineages)
}

/// Returns the lineages of all keys that an owner has ever had, in ascending order.
pub fn lineages_of(read: &mut Read, owner: KeyOwner) -> Result<Vec<KeyId>> {
    let query = api_keys::table.select(api_keys::lineage_id).distinct().order(api_keys::lineage_id.asc());
    Ok(match owner {
        KeyOwner::Workspace(id) => query.filter(api_keys::workspace_id.eq(id)).load(read.connection())?,
        KeyOwner::Partner(id) => query.filter(api_keys::partner_id.eq(id)).load(read.connection())?,
    })
}

/// Returns the roles of members' keys, by key id. Keys that do not exist or have no role are left out.
pub fn roles(read: &mut Read, ids: &[&KeyId]) -> Result<HashMap<KeyId, MemberRole>> {
    let mut roles = HashMap::new();
    // Both databases limit the number of values in a statement.
    for ids in ids.chunks(500) {
        let found: Vec<(KeyId, MemberRole)> = api_keys::table
            .filter(api_keys::id.eq_any(ids))
            .filter(api_keys::role.is_not_null())
            .select((api_keys::id, api_keys::role.assume_not_null()))
            .load(read.connection())?;
        roles.extend(found);
    }
    Ok(roles)
}
