//! Workspaces as operators manage them: names, partners, subscriptions and blocks.

use crate::partners::{self, checked_name};
use crate::schema::{plans, workspaces};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use model::{Code, Error, PartnerId, Result, SubscriptionStatus, Timestamp, WorkspaceId};
use store::{Read, Tx, each, for_no_key_update, for_no_key_update_skip_locked, lock_row};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The data of a new workspace.
#[derive(Debug, Clone)]
pub struct NewWorkspace {
    /// The name for people, 1 to 80 characters.
    pub name: String,
    /// The name used in URLs: 3 to 40 lower-case letters and digits, at least one of them a letter, with single
    /// hyphens between them.
    pub slug: String,
    /// The partner that it is attributed to.
    pub partner: Option<PartnerId>,
}

/// A workspace as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WorkspaceRecord {
    /// The id of the workspace.
    pub id: WorkspaceId,
    /// The name used in URLs.
    pub slug: String,
    /// The name for people.
    pub name: String,
    /// The partner that it is attributed to.
    pub partner: Option<PartnerId>,
    /// The id of its plan.
    pub plan: Option<String>,
    /// The state of its subscription.
    pub subscription: SubscriptionStatus,
    /// When the period started.
    pub period_start: Option<Timestamp>,
    /// When the period ends.
    pub period_end: Option<Timestamp>,
    /// Whether the subscription ends with this period.
    pub cancel_at_period_end: bool,
    /// Why an operator blocked it.
    pub blocked_reason: Option<String>,
    /// When the object was created.
    pub created_at: Timestamp,
}

/// The subscription to set on a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// The id of the plan.
    pub plan: &'a str,
    /// The state. Not `energy_depleted`, which is derived.
    pub status: SubscriptionStatus,
    /// When the period started.
    pub period_start: Timestamp,
    /// When the period ends.
    pub period_end: Option<Timestamp>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = workspaces)]
struct StoredWorkspace {
    id: WorkspaceId,
    slug: String,
    name: String,
    partner_id: Option<PartnerId>,
    plan_id: Option<String>,
    subscription_status: SubscriptionStatus,
    period_start: Option<Timestamp>,
    period_end: Option<Timestamp>,
    cancel_at_period_end: bool,
    blocked_reason: Option<String>,
    created_at: Timestamp,
}

impl StoredWorkspace {
    fn record(self) -> WorkspaceRecord {
        WorkspaceRecord {
            id: self.id,
            slug: self.slug,
            name: self.name,
            partner: self.partner_id,
            plan: self.plan_id,
            subscription: self.subscription_status,
            period_start: self.period_start,
            period_end: self.period_end,
            cancel_at_period_end: self.cancel_at_period_end,
            blocked_reason: self.blocked_reason,
            created_at: self.created_at,
        }
    }
}

/// Creates a workspace without a plan.
///
/// # Errors
/// `validation_error`; `duplicate_value` if the slug is taken.
pub fn create(tx: &mut Tx, new: &NewWorkspace) -> Result<WorkspaceRecord> {
    let name = checked_name(&new.name)?;
    if !is_slug(&new.slug) {
        let rule = "must be 3 to 40 lower-case letters or digits, at least one a letter, with single hyphens between them";
        return Err(Error::invalid("slug", rule));
    }
    if let Some(partner) = new.partner {
        partners::expect(tx, partner)?;
    }
    let now = tx.now();
    let id: Option<WorkspaceId> = each!(tx.connection(), |connection| {
        diesel::insert_into(workspaces::table)
            .values((
                workspaces::slug.eq(&new.slug),
                workspaces::name.eq(name),
                workspaces::partner_id.eq(new.partner),
                workspaces::subscription_status.eq(SubscriptionStatus::Inactive),
                workspaces::cancel_at_period_end.eq(false),
                workspaces::created_at.eq(now),
                workspaces::updated_at.eq(now),
            ))
            .on_conflict_do_nothing()
            .returning(workspaces::id)
            .get_result(connection)
            .optional()
    })?;
    let Some(id) = id else {
        // The slug is the only unique value, so its holder exists.
        let holder: WorkspaceId = workspaces::table
            .filter(workspaces::slug.eq(&new.slug))
            .select(workspaces::id)
            .first(tx.connection())?;
        return Err(Error::duplicate("slug", "Another workspace has this slug.", holder));
    };
    by_id(tx, id)
}

/// Changes the name of a workspace.
///
/// # Errors
/// `validation_error`, `workspace_not_found`.
pub fn rename(tx: &mut Tx, workspace: WorkspaceId, name: &str) -> Result<WorkspaceRecord> {
    let (name, now) = (checked_name(name)?, tx.now());
    let changed = diesel::update(workspaces::table.find(workspace))
        .set((workspaces::name.eq(name), workspaces::updated_at.eq(now)))
        .execute(tx.connection())?;
    if changed == 0 { Err(unknown()) } else { by_id(tx, workspace) }
}

/// Returns whether the people of a workspace have put the list of first steps away.
///
/// # Errors
/// `workspace_not_found`.
pub fn first_steps_hidden(read: &mut Read, workspace: WorkspaceId) -> Result<bool> {
    let query = workspaces::table.find(workspace).select(workspaces::first_steps_hidden);
    query.first(read.connection()).optional()?.ok_or_else(unknown)
}

/// Puts the list of first steps away, or shows it again.
pub fn hide_first_steps(tx: &mut Tx, workspace: WorkspaceId, hidden: bool) -> Result<()> {
    diesel::update(workspaces::table.find(workspace))
        .set(workspaces::first_steps_hidden.eq(hidden))
        .execute(tx.connection())?;
    Ok(())
}

/// Returns a slug made from a name: `Acme & Sons` gives `acme-sons`, and `Panadería Sol` gives `panaderia-sol`. It is not
/// valid for every name.
pub fn slug_of(name: &str) -> String {
    let words: String = name
        .to_lowercase()
        .nfd()
        .filter(|letter| !is_combining_mark(*letter))
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { ' ' })
        .collect();
    words.split_whitespace().collect::<Vec<_>>().join("-").chars().take(40).collect()
}

/// Returns whether `text` is a valid slug: `^[a-z0-9](-?[a-z0-9]){2,39}$`, and not only digits.
pub fn is_slug(text: &str) -> bool {
    let letters = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    // A slug of digits could be mistaken for an id.
    let has_letter = text.bytes().any(|byte| byte.is_ascii_lowercase());
    has_letter
        && text.split('-').all(letters)
        && (3..=40).contains(&text.bytes().filter(|byte| *byte != b'-').count())
}

/// Returns the workspace with this id.
///
/// # Errors
/// `workspace_not_found`.
pub fn by_id(read: &mut Read, id: WorkspaceId) -> Result<WorkspaceRecord> {
    let row: Option<StoredWorkspace> = workspaces::table
        .find(id)
        .select(StoredWorkspace::as_select())
        .first(read.connection())
        .optional()?;
    Ok(row.ok_or_else(unknown)?.record())
}

/// Locks a workspace until the transaction ends. On PostgreSQL it uses `FOR NO KEY UPDATE`, which does not block
/// inserts that refer to the workspace by a foreign key. A grant, for example, has locked the account that the holder
/// of this lock may need next; a stronger lock could deadlock with it.
///
/// # Errors
/// `workspace_not_found`.
pub fn lock(tx: &mut Tx, id: WorkspaceId) -> Result<WorkspaceRecord> {
    let query = workspaces::table.find(id);
    let row: Option<StoredWorkspace> = for_no_key_update(query.select(StoredWorkspace::as_select()))
        .get_result(tx.connection())
        .optional()?;
    Ok(row.ok_or_else(unknown)?.record())
}

fn unknown() -> Error {
    Error::new(Code::WorkspaceNotFound, "The workspace does not exist.")
}

/// Returns the workspace with this id or slug. A number is tried as an id first.
///
/// # Errors
/// `workspace_not_found`.
pub fn find(read: &mut Read, id_or_slug: &str) -> Result<WorkspaceRecord> {
    if let Ok(id) = id_or_slug.parse()
        && let Ok(record) = by_id(read, id)
    {
        return Ok(record);
    }
    let row: Option<StoredWorkspace> = workspaces::table
        .filter(workspaces::slug.eq(id_or_slug))
        .select(StoredWorkspace::as_select())
        .first(read.connection())
        .optional()?;
    Ok(row.ok_or_else(unknown)?.record())
}

/// Returns at most `most` workspaces after `after`, oldest first.
pub fn page(read: &mut Read, after: WorkspaceId, most: i64) -> Result<Vec<WorkspaceRecord>> {
    let rows: Vec<StoredWorkspace> = workspaces::table
        .filter(workspaces::id.gt(after))
        .order(workspaces::id.asc())
        .limit(most)
        .select(StoredWorkspace::as_select())
        .load(read.connection())?;
    Ok(rows.into_iter().map(StoredWorkspace::record).collect())
}

/// Returns all workspaces, oldest first.
pub fn list(read: &mut Read) -> Result<Vec<WorkspaceRecord>> {
    let rows: Vec<StoredWorkspace> = workspaces::table
        .order(workspaces::id.asc())
        .select(StoredWorkspace::as_select())
        .load(read.connection())?;
    Ok(rows.into_iter().map(StoredWorkspace::record).collect())
}

/// Blocks a workspace. Its requests are then refused with `reason`.
///
/// # Errors
/// `validation_error` for a reason that is blank or longer than 200 characters, `workspace_not_found`.
pub fn block(tx: &mut Tx, workspace: WorkspaceId, reason: &str) -> Result<WorkspaceRecord> {
    let reason = reason.trim();
    if !(1..=200).contains(&reason.chars().count()) {
        return Err(Error::invalid("reason", "must have 1 to 200 characters"));
    }
    set_reason(tx, workspace, Some(reason))
}

/// Unblocks a workspace.
///
/// # Errors
/// `workspace_not_found`.
pub fn unblock(tx: &mut Tx, workspace: WorkspaceId) -> Result<WorkspaceRecord> {
    set_reason(tx, workspace, None)
}

fn set_reason(tx: &mut Tx, workspace: WorkspaceId, reason: Option<&str>) -> Result<WorkspaceRecord> {
    let now = tx.now();
    let changed = diesel::update(workspaces::table.find(workspace))
        .set((workspaces::blocked_reason.eq(reason), workspaces::updated_at.eq(now)))
        .execute(tx.connection())?;
    if changed == 0 { Err(unknown()) } else { by_id(tx, workspace) }
}

/// Attributes a workspace to a partner, whose keys may then operate it, or to none. Keys notice within ten seconds.
///
/// # Errors
/// `validation_error` for a partner that does not exist, `workspace_not_found`.
pub fn attribute(tx: &mut Tx, workspace: WorkspaceId, partner: Option<PartnerId>) -> Result<WorkspaceRecord> {
    if let Some(partner) = partner {
        partners::expect(tx, partner)?;
    }
    let changed = diesel::update(workspaces::table.find(workspace))
        .set((workspaces::partner_id.eq(partner), workspaces::updated_at.eq(tx.now())))
        .execute(tx.connection())?;
    if changed == 0 { Err(unknown()) } else { by_id(tx, workspace) }
}

/// Puts a workspace on a plan that renews at the end of its period.
///
/// # Errors
/// `workspace_not_found`.
pub fn set_subscription(tx: &mut Tx, id: WorkspaceId, new: &Subscription<'_>) -> Result<WorkspaceRecord> {
    let now = tx.now();
    diesel::update(workspaces::table.find(id))
        .set((
            workspaces::plan_id.eq(new.plan),
            workspaces::subscription_status.eq(new.status),
            workspaces::period_start.eq(new.period_start),
            workspaces::period_end.eq(new.period_end),
            workspaces::cancel_at_period_end.eq(false),
            workspaces::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    by_id(tx, id)
}

/// Marks the current period of a workspace's plan as the last.
///
/// # Errors
/// `workspace_not_found`.
pub fn end_with_period(tx: &mut Tx, id: WorkspaceId) -> Result<WorkspaceRecord> {
    let now = tx.now();
    diesel::update(workspaces::table.find(id))
        .set((workspaces::cancel_at_period_end.eq(true), workspaces::updated_at.eq(now)))
        .execute(tx.connection())?;
    by_id(tx, id)
}

/// Cancels a workspace's plan.
pub fn cancel(tx: &mut Tx, id: WorkspaceId) -> Result<()> {
    let now = tx.now();
    diesel::update(workspaces::table.find(id))
        .set((
            workspaces::subscription_status.eq(SubscriptionStatus::Canceled),
            workspaces::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Begins a new period of a workspace's current plan.
pub fn begin_period(tx: &mut Tx, id: WorkspaceId, start: Timestamp, end: Timestamp) -> Result<()> {
    let now = tx.now();
    diesel::update(workspaces::table.find(id))
        .set((
            workspaces::period_start.eq(start),
            workspaces::period_end.eq(end),
            workspaces::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Returns at most `most` workspaces whose period is over, locked and in ascending order of their ids. Some of them
/// renew, for others it was the last period. Workspaces that are locked by another transaction are skipped.
pub fn due_for_renewal(tx: &mut Tx, most: i64) -> Result<Vec<WorkspaceRecord>> {
    use workspaces as w;
    let now = tx.now();
    // Written as in the partial index, because PostgreSQL and SQLite use that index only for the same condition.
    let query = w::table
        .filter(w::period_end.le(now))
        .filter(sql::<Bool>("subscription_status IN ('active', 'sponsored') AND plan_id IS NOT NULL"))
        .order((w::period_end.asc(), w::id.asc()))
        .limit(most);
    let due: Vec<StoredWorkspace> =
        for_no_key_update_skip_locked(query.select(StoredWorkspace::as_select())).load(tx.connection())?;
    let mut due: Vec<_> = due.into_iter().map(StoredWorkspace::record).collect();
    due.sort_by_key(|workspace| workspace.id);
    Ok(due)
}

/// Serializes changes to a workspace until the transaction ends, for callers that count its objects before they add
/// one. Rows that refer to it can still be written.
pub fn serialize(tx: &mut Tx, id: WorkspaceId) -> Result<()> {
    lock_row!(tx, workspaces::table.find(id).select(workspaces::id), for_no_key_update);
    Ok(())
}

/// Returns the price of 1,000 Energy in a workspace's plan, in millionths of a dollar. 0 without a plan.
pub fn energy_price(read: &mut Read, id: WorkspaceId) -> Result<i64> {
    let price: Option<i64> = workspaces::table
        .inner_join(plans::table.on(workspaces::plan_id.eq(plans::id.nullable())))
        .filter(workspaces::id.eq(id))
        .select(plans::usd_micros_per_1000_energy)
        .first(read.connection())
        .optional()?;
    Ok(price.unwrap_or(0))
}

/// Returns the ids of at most `most` workspaces after `after`, in ascending order. Used by jobs that visit every
/// workspace.
pub fn ids_after(read: &mut Read, after: WorkspaceId, most: i64) -> Result<Vec<WorkspaceId>> {
    Ok(workspaces::table
        .filter(workspaces::id.gt(after))
        .order(workspaces::id.asc())
        .select(workspaces::id)
        .limit(most)
        .load(read.connection())?)
}

#[cfg(test)]
mod tests {
    use super::{is_slug, slug_of};

    #[test]
    fn a_name_gives_a_slug() {
        for (name, slug) in [
            ("Acme & Sons", "acme-sons"),
            ("Panadería Sol", "panaderia-sol"),
            ("CAFÉ Ñandú 2", "cafe-nandu-2"),
            ("  ¡Olé!  ", "ole"),
            ("店", ""),
        ] {
            assert_eq!(slug_of(name), slug);
        }
    }

    #[test]
    fn slugs_are_letters_digits_and_single_hyphens() {
        let longest = "a".repeat(40);
        for good in ["abc", "a-b-c", "0a9", "acme-corp-2", &longest] {
            assert!(is_slug(good), "{good}");
        }
        for bad in [
            "",
            "ab",
            "a-b",
            "-abc",
            "abc-",
            "a--bc",
            "Abc",
            "ab_c",
            "äbc",
            "12345",
            "1-2-3",
            &"a".repeat(41),
        ] {
            assert!(!is_slug(bad), "{bad}");
        }
    }
}
