//! Changes of the numbers and user ids of people, which networks call back with at least once and in any order.
//!
//! Each change is noted, so that one that is repeated changes nothing. A change is superseded if the person has come to what
//! it replaces by a later one: of "A to B" at one o'clock and "B to A" at two, the first does nothing when it comes last. A
//! later change that came first is made up for: after "A to B" follows "B to C".

use super::context::{UpdateContext, identity};
use crate::schema::identity_changes as table;
use chatnet::{IdentityChange, Party};
use diesel::prelude::*;
use model::{Result, Timestamp, WorkspaceId, text_enum};
use store::{Read, Tx, each};

/// The most changes that are made up for.
const MAX_FOLLOWING: usize = 20;

text_enum! {
    /// What a person changed.
    pub enum IdentityKind {
        /// The telephone number.
        Phone = "phone",
        /// The network's id of the person.
        UserId = "user_id",
    }
}

impl IdentityKind {
    fn of(self, party: &mut Party) -> &mut Option<String> {
        match self {
            Self::Phone => &mut party.phone,
            Self::UserId => &mut party.user_id,
        }
    }

    /// A person of whom only this is known.
    fn party(self, value: &str) -> Party {
        let mut party = Party::default();
        *self.of(&mut party) = Some(value.to_owned());
        party
    }
}

/// Gives the contact that had the old identity the new one, unless that is known already or superseded.
pub(super) fn changed(tx: &mut Tx, of: &UpdateContext<'_>, change: &IdentityChange) -> Result<()> {
    let workspace = of.channel.workspace_id;
    let (mut old, mut new) = (change.old.clone(), change.new.clone());
    let at = change.at.unwrap_or_else(|| tx.now());
    let mut ends = Vec::new();
    for kind in [IdentityKind::Phone, IdentityKind::UserId] {
        let (Some(from), Some(to)) = (kind.of(&mut old).clone(), kind.of(&mut new).clone()) else { continue };
        if from == to {
            continue;
        }
        if note(tx, workspace, kind, (&from, &to), at)? {
            ends.push((kind, to));
        } else {
            (*kind.of(&mut old), *kind.of(&mut new)) = (None, None);
        }
    }
    let is_someone = |party: &Party| party.user_id.is_some() || party.phone.is_some();
    if !is_someone(&old) || !is_someone(&new) {
        return Ok(());
    }
    if of.areas.people.relink(tx, workspace, &identity(&old), &identity(&new))?.is_none() {
        return Ok(());
    }
    ends.into_iter().try_for_each(|(kind, end)| follow(tx, of, kind, end, at))
}

/// Notes a change. Gives whether it is new and not superseded.
fn note(
    tx: &mut Tx,
    workspace: WorkspaceId,
    kind: IdentityKind,
    (old, new): (&str, &str),
    at: Timestamp,
) -> Result<bool> {
    let row = (
        table::workspace_id.eq(workspace),
        table::kind.eq(kind),
        table::old_value.eq(old),
        table::new_value.eq(new),
        table::changed_at.eq(at),
        table::created_at.eq(tx.now()),
    );
    let noted = each!(tx.connection(), |connection| diesel::insert_into(table::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    if noted == 0 {
        return Ok(false);
    }
    let second = at.min(tx.now()).seconds();
    let came_to: Vec<(Timestamp, Timestamp)> = table::table
        .filter(table::workspace_id.eq(workspace))
        .filter(table::kind.eq(kind))
        .filter(table::new_value.eq(old))
        .select((table::changed_at, table::created_at))
        .load(tx.connection())?;
    Ok(came_to.into_iter().all(|(changed, came)| changed.min(came).seconds() <= second))
}

/// Makes the later changes of a value that came before the one which led to it.
fn follow(
    tx: &mut Tx,
    of: &UpdateContext<'_>,
    kind: IdentityKind,
    mut value: String,
    mut at: Timestamp,
) -> Result<()> {
    let workspace = of.channel.workspace_id;
    for _ in 0..MAX_FOLLOWING {
        let Some((next, then)) = following(tx, workspace, kind, &value, at)? else { break };
        let (old, new) = (kind.party(&value), kind.party(&next));
        of.areas.people.relink(tx, workspace, &identity(&old), &identity(&new))?;
        (value, at) = (next, then);
    }
    Ok(())
}

/// The first change of a value after a moment: to what, and when.
fn following(
    read: &mut Read,
    workspace: WorkspaceId,
    kind: IdentityKind,
    value: &str,
    after: Timestamp,
) -> Result<Option<(String, Timestamp)>> {
    let next = table::table
        .filter(table::workspace_id.eq(workspace))
        .filter(table::kind.eq(kind))
        .filter(table::old_value.eq(value))
        .filter(table::changed_at.gt(after))
        .order((table::changed_at, table::id))
        .select((table::new_value, table::changed_at));
    Ok(next.first(read.connection()).optional()?)
}
