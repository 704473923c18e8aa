//! Memberships: the members that an account is in workspaces, with the two keys through which it acts.
//!
//! The profile and the role of a member are in the team of the workspace (`business::team`), which calls the functions
//! here in the transaction of its own change. The role is copied to the keys, where the gates read it.

use crate::account::{self, Account};
use crate::audit::{self, Actor, Entry};
use crate::links::{self, Place};
use crate::schema::{accounts, memberships};
use auth::keys::{self, KeyKind};
use diesel::prelude::*;
use model::{AccountId, Code, Env, Error, KeyId, MemberId, MemberRole, Result, Timestamp, WorkspaceId};
use serde_json::json;
use std::collections::HashMap;
use store::{Read, Tx};

/// The greatest length of the name of a key, in characters.
const MOST_KEY_NAME: usize = 80;

/// The member that an account is in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The account.
    pub account: AccountId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The member of its team.
    pub member: MemberId,
    /// The role.
    pub role: MemberRole,
    /// The key through which the member acts on real data.
    pub live_key: KeyId,
    /// The key through which the member tries things.
    pub test_key: KeyId,
    /// When the account joined.
    pub created_at: Timestamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = memberships)]
struct Row {
    account_id: AccountId,
    workspace_id: WorkspaceId,
    member_id: MemberId,
    live_key_id: KeyId,
    test_key_id: KeyId,
    created_at: Timestamp,
}

/// Lets an account be a member of a workspace, with keys that have the scopes of the role.
///
/// # Errors
/// `invalid_state` if the account is a member of the workspace already, or the member has an account.
pub fn join(
    tx: &mut Tx,
    account: &Account,
    place: Place,
    role: MemberRole,
    by: &Actor,
) -> Result<Membership> {
    let Place { workspace, member } = place;
    lock(tx, workspace)?;
    let taken: i64 = memberships::table
        .filter(memberships::workspace_id.eq(workspace))
        .filter(memberships::account_id.eq(&account.id).or(memberships::member_id.eq(member)))
        .count()
        .get_result(tx.connection())?;
    if taken > 0 {
        let message = "The account is a member of this workspace already, or the member has an account.";
        return Err(Error::new(Code::InvalidState, message));
    }
    let name: String = account.name.chars().take(MOST_KEY_NAME).collect();
    let mut key = |env| keys::create_for_member(tx, name.clone(), workspace, env, member, role);
    let (live, test) = (key(Env::Live)?.key.id, key(Env::Test)?.key.id);
    let now = tx.now();
    diesel::insert_into(memberships::table)
        .values((
            memberships::account_id.eq(&account.id),
            memberships::workspace_id.eq(workspace),
            memberships::member_id.eq(member),
            memberships::live_key_id.eq(&live),
            memberships::test_key_id.eq(&test),
            memberships::created_at.eq(now),
        ))
        .execute(tx.connection())?;
    let entry = Entry::new(by.clone(), "member.joined", member.to_string()).workspace(workspace);
    audit::record(tx, entry.details(json!({ "account": account.id, "role": role })))?;
    Ok(Membership {
        account: account.id.clone(),
        workspace,
        member,
        role,
        live_key: live,
        test_key: test,
        created_at: now,
    })
}

/// Returns the memberships of an account, in the order of their workspaces.
pub fn of_account(read: &mut Read, account: &AccountId) -> Result<Vec<Membership>> {
    let rows = memberships::table
        .filter(memberships::account_id.eq(account))
        .order(memberships::workspace_id.asc())
        .select(Row::as_select())
        .load(read.connection())?;
    with_roles(read, rows)
}

/// Returns the membership of an account in a workspace.
///
/// # Errors
/// `workspace_not_found` if there is none, so that a workspace of others looks like one that does not exist.
pub fn in_workspace(read: &mut Read, account: &AccountId, workspace: WorkspaceId) -> Result<Membership> {
    let rows =
        memberships::table.find((account, workspace)).select(Row::as_select()).load(read.connection())?;
    let found = with_roles(read, rows)?.into_iter().next();
    found.ok_or_else(|| Error::new(Code::WorkspaceNotFound, "The workspace does not exist."))
}

/// Returns the membership of a member, if the member has an account.
pub fn of_member(read: &mut Read, place: Place) -> Result<Option<Membership>> {
    let rows = memberships::table
        .filter(memberships::workspace_id.eq(place.workspace))
        .filter(memberships::member_id.eq(place.member))
        .select(Row::as_select())
        .load(read.connection())?;
    Ok(with_roles(read, rows)?.into_iter().next())
}

/// Returns the memberships of a workspace, in the order of their members.
pub fn of_workspace(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<Membership>> {
    let rows = memberships::table
        .filter(memberships::workspace_id.eq(workspace))
        .order(memberships::member_id.asc())
        .select(Row::as_select())
        .load(read.connection())?;
    with_roles(read, rows)
}

/// Copies the new role of a member to its keys. A role with fewer rights ends what apps may do that the member has
/// authorized. Returns the ids of the keys of these apps. The member need not have an account.
///
/// # Errors
/// `invalid_state` if the workspace would have no owner with an account any more.
pub fn set_role(tx: &mut Tx, place: Place, role: MemberRole, by: &Actor) -> Result<Vec<KeyId>> {
    lock(tx, place.workspace)?;
    let Some(membership) = of_member(tx, place)? else { return Ok(Vec::new()) };
    if membership.role == role {
        return Ok(Vec::new());
    }
    if membership.role == MemberRole::Owner {
        refuse_last_owner(tx, place)?;
    }
    keys::set_role(tx, place.workspace, place.member, role)?;
    let ended = if role > membership.role {
        keys::revoke_of_member(tx, place.workspace, place.member, &[KeyKind::Grant])?
    } else {
        Vec::new()
    };
    let entry =
        Entry::new(by.clone(), "member.role_set", place.member.to_string()).workspace(place.workspace);
    let details = json!({ "before": membership.role, "after": role, "ended_apps": ended.len() });
    audit::record(tx, entry.details(details))?;
    Ok(ended)
}

/// Ends the access of a member who leaves the team: its keys, what apps may do that it has authorized, and its
/// invitation. The account stays. Returns the ids of the keys of these apps. The member need not have an account.
///
/// # Errors
/// `invalid_state` if the workspace would have no owner with an account any more.
pub fn leave(tx: &mut Tx, place: Place, by: &Actor) -> Result<Vec<KeyId>> {
    lock(tx, place.workspace)?;
    links::withdraw_of_member(tx, place)?;
    let Some(membership) = of_member(tx, place)? else { return Ok(Vec::new()) };
    if membership.role == MemberRole::Owner {
        refuse_last_owner(tx, place)?;
    }
    let ended = keys::revoke_of_member(tx, place.workspace, place.member, &[KeyKind::Grant])?;
    keys::revoke_of_member(tx, place.workspace, place.member, &[KeyKind::Member])?;
    diesel::delete(memberships::table.find((&membership.account, place.workspace)))
        .execute(tx.connection())?;
    let entry = Entry::new(by.clone(), "member.left", place.member.to_string()).workspace(place.workspace);
    let details =
        json!({ "account": membership.account, "role": membership.role, "ended_apps": ended.len() });
    audit::record(tx, entry.details(details))?;
    Ok(ended)
}

/// # Errors
/// `invalid_state` if no other owner of the workspace has an account that can sign in.
fn refuse_last_owner(read: &mut Read, place: Place) -> Result<()> {
    let others: Vec<Row> = memberships::table
        .inner_join(accounts::table.on(accounts::id.eq(memberships::account_id)))
        .filter(memberships::workspace_id.eq(place.workspace))
        .filter(memberships::member_id.ne(place.member))
        .filter(accounts::disabled_at.is_null())
        .select(Row::as_select())
        .load(read.connection())?;
    let others = with_roles(read, others)?;
    if others.iter().any(|other| other.role == MemberRole::Owner) {
        return Ok(());
    }
    let message =
        "The member is the last owner of the workspace who can sign in. Make another member an owner first.";
    Err(Error::new(Code::InvalidState, message))
}

fn with_roles(read: &mut Read, rows: Vec<Row>) -> Result<Vec<Membership>> {
    let ids: Vec<&KeyId> = rows.iter().map(|row| &row.live_key_id).collect();
    let roles: HashMap<KeyId, MemberRole> = keys::roles(read, &ids)?;
    rows.into_iter()
        .map(|row| {
            let role = roles.get(&row.live_key_id).copied();
            Ok(Membership {
                role: role.ok_or_else(|| Error::internal("the key of a member has no role"))?,
                account: row.account_id,
                workspace: row.workspace_id,
                member: row.member_id,
                live_key: row.live_key_id,
                test_key: row.test_key_id,
                created_at: row.created_at,
            })
        })
        .collect()
}

/// Locks the memberships of a workspace. Two owners who remove each other at once must not both succeed.
fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    tx.lock(&format!("memberships {workspace}"))
}

/// Uses an invitation up for an account that has proved who it is. `role_of` reads the role that the member has now.
///
/// # Errors
/// Those of [`links::look`], [`join`] and `role_of`.
pub fn accept(
    tx: &mut Tx,
    code: &crate::Secret,
    account: &AccountId,
    by: &Actor,
    role_of: impl FnOnce(&mut Tx, Place) -> Result<MemberRole>,
) -> Result<Membership> {
    let link = links::spend(tx, code, links::Purpose::Invitation)?;
    let place = link.place().ok_or_else(|| Error::internal("an invitation names no member"))?;
    // Before the role is read: a member who is removed meanwhile is then either found here or not at all.
    lock(tx, place.workspace)?;
    let role = role_of(tx, place)?;
    let account = account::find(tx, account)?;
    join(tx, &account, place, role, by)
}
