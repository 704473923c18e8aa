//! What policies remember of earlier firings: once per contact, cooldown, dedupe and throttle.

use super::judgement::{Debounced, Judgement};
use crate::firings::once;
use crate::firings::row::{self, FiringReason};
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use crate::rules::policy::{Debounce, OncePerContact};
use crate::schema::automation_marks as table;
use diesel::prelude::*;
use model::{AutomationId, ContactId, Result, Timestamp, WorkspaceId};
use store::{Read, Tx, each};

/// The longest wait of a firing that is debounced, in seconds.
const LONGEST_WAIT: i64 = 604_800;
/// The most characters of a key.
const LONGEST_KEY: usize = 300;

/// A row of `automation_marks`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = table, treat_none_as_null = true)]
pub(crate) struct MarkRow {
    pub(crate) automation_id: AutomationId,
    pub(crate) key: String,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) contact_id: Option<ContactId>,
    pub(crate) fired_at: Timestamp,
    pub(crate) count: i64,
    pub(crate) expires_at: Option<Timestamp>,
}

/// The key of a mark of a contact: `cooldown:7`.
fn of_contact(word: &str, contact: Option<ContactId>) -> String {
    contact.map_or_else(|| format!("{word}:"), |contact| format!("{word}:{contact}"))
}

fn of_text(word: &str, text: &str) -> String {
    if text.chars().count() <= LONGEST_KEY {
        return format!("{word}:{text}");
    }
    // Long texts that differ must have different keys.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let beginning: String = text.chars().take(LONGEST_KEY).collect();
    format!("{word}:{beginning}:{}:{hash:x}", text.len())
}

fn find(read: &mut Read, automation: AutomationId, key: &str) -> Result<Option<MarkRow>> {
    let now = read.now();
    let mark: Option<MarkRow> = table::table
        .find((automation, key))
        .select(MarkRow::as_select())
        .get_result(read.connection())
        .optional()?;
    Ok(mark.filter(|mark| mark.expires_at.is_none_or(|until| until > now)))
}

/// Why the policy does not let an occurrence fire.
///
/// # Errors
/// When the database fails.
pub(crate) fn refusal(read: &mut Read, rule: &Rule, judgement: &Judgement) -> Result<Option<FiringReason>> {
    let (id, policy, contact) = (rule.row.id, &rule.policy, judgement.contact);
    if policy.once_per_contact != OncePerContact::Never
        && let Some(contact) = contact
        && find(read, id, &once::key(contact))?.is_some()
    {
        return Ok(Some(FiringReason::OncePerContact));
    }
    if policy.cooldown_seconds.is_some() && find(read, id, &of_contact("cooldown", contact))?.is_some() {
        return Ok(Some(FiringReason::Cooldown));
    }
    if let Some(key) = &judgement.keys.dedupe
        && find(read, id, &of_text("dedupe", key))?.is_some()
    {
        return Ok(Some(FiringReason::Duplicate));
    }
    if let Some(throttle) = &policy.throttle {
        let key = of_text("throttle", judgement.keys.throttle.as_deref().unwrap_or_default());
        if find(read, id, &key)?.is_some_and(|mark| mark.count >= throttle.limit) {
            return Ok(Some(FiringReason::Throttled));
        }
    }
    Ok(None)
}

/// Returns when a debounced occurrence fires.
///
/// # Errors
/// When the database fails.
pub(crate) fn debounced(read: &mut Read, rule: &Rule, debounce: &Debounce, key: String) -> Result<Debounced> {
    let now = read.now();
    let key = of_text("debounce", &key);
    let before = row::debounced(read, rule.row.id, &key)?;
    let since = before.as_ref().map_or(now, |(_, since)| *since);
    let last = since.plus_seconds(debounce.max_wait_seconds.unwrap_or(LONGEST_WAIT));
    let due_at = now.plus_seconds(debounce.seconds).min(last).max(now);
    Ok(Debounced { key, since, due_at, replaces: before.map(|(id, _)| id) })
}

/// Notes a firing.
///
/// # Errors
/// When the database fails.
pub(crate) fn note(tx: &mut Tx, rule: &Rule, occurrence: &Occurrence, judgement: &Judgement) -> Result<()> {
    let (now, policy, contact) = (tx.now(), &rule.policy, judgement.contact.or(occurrence.contact));
    if let Some(replaced) = judgement.debounce.as_ref().and_then(|debounce| debounce.replaces.as_ref()) {
        row::replace_debounced(tx, replaced)?;
        return Ok(());
    }
    let mark = |key: String, contact: Option<ContactId>, expires_at: Option<Timestamp>| MarkRow {
        automation_id: rule.row.id,
        key,
        workspace_id: rule.row.workspace_id,
        contact_id: contact,
        fired_at: now,
        count: 1,
        expires_at,
    };
    if policy.once_per_contact != OncePerContact::Never
        && let Some(of) = contact
    {
        let is_daily = policy.once_per_contact == OncePerContact::PerDay;
        let until = judgement.day_ends_at.filter(|_| is_daily);
        store(tx, &mark(once::key(of), contact, until))?;
    }
    if let Some(seconds) = policy.cooldown_seconds {
        let until = now.plus_seconds(seconds);
        store(tx, &mark(of_contact("cooldown", contact), contact, Some(until)))?;
    }
    if let (Some(dedupe), Some(key)) = (&policy.dedupe, &judgement.keys.dedupe) {
        store(tx, &mark(of_text("dedupe", key), None, Some(now.plus_seconds(dedupe.window_seconds))))?;
    }
    if let Some(throttle) = &policy.throttle {
        let key = of_text("throttle", judgement.keys.throttle.as_deref().unwrap_or_default());
        let next = match find(tx, rule.row.id, &key)? {
            Some(mark) => MarkRow { count: mark.count + 1, ..mark },
            None => mark(key, None, Some(now.plus_seconds(throttle.per_seconds))),
        };
        store(tx, &next)?;
    }
    Ok(())
}

fn store(tx: &mut Tx, mark: &MarkRow) -> Result<()> {
    each!(tx.connection(), |connection| diesel::insert_into(table::table)
        .values(mark)
        .on_conflict((table::automation_id, table::key))
        .do_update()
        .set(mark)
        .execute(connection))?;
    Ok(())
}

/// Deletes what is remembered for an automation.
///
/// # Errors
/// When the database fails.
pub(crate) fn forget(tx: &mut Tx, automation: AutomationId) -> Result<()> {
    diesel::delete(table::table.filter(table::automation_id.eq(automation))).execute(tx.connection())?;
    Ok(())
}

/// Deletes marks that count no longer: at most `most`. Returns their number.
///
/// # Errors
/// When the database fails.
pub(crate) fn purge(tx: &mut Tx, most: i64) -> Result<usize> {
    let now = tx.now();
    let expired: Vec<(AutomationId, String)> = table::table
        .filter(table::expires_at.le(now))
        .limit(most)
        .select((table::automation_id, table::key))
        .load(tx.connection())?;
    for (automation, key) in &expired {
        let mark = table::table.find((automation, key)).filter(table::expires_at.le(now));
        diesel::delete(mark).execute(tx.connection())?;
    }
    Ok(expired.len())
}

/// Makes the marks of a contact those of another. Where both have one, that of the other stays.
///
/// # Errors
/// When the database fails.
pub(crate) fn move_contact(
    tx: &mut Tx,
    workspace: WorkspaceId,
    from: ContactId,
    to: ContactId,
) -> Result<()> {
    let of = |contact: ContactId| {
        table::table.filter(table::workspace_id.eq(workspace)).filter(table::contact_id.eq(contact))
    };
    let marks: Vec<MarkRow> = of(from).select(MarkRow::as_select()).load(tx.connection())?;
    diesel::delete(of(from)).execute(tx.connection())?;
    for mark in marks {
        let word = mark.key.split(':').next().unwrap_or_default().to_owned();
        let moved = MarkRow { key: of_contact(&word, Some(to)), contact_id: Some(to), ..mark };
        each!(tx.connection(), |connection| diesel::insert_into(table::table)
            .values(&moved)
            .on_conflict_do_nothing()
            .execute(connection))?;
    }
    Ok(())
}

/// Deletes the marks of a contact.
///
/// # Errors
/// When the database fails.
pub(crate) fn forget_contact(tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
    let marks = table::table.filter(table::workspace_id.eq(workspace)).filter(table::contact_id.eq(contact));
    diesel::delete(marks).execute(tx.connection())?;
    Ok(())
}
