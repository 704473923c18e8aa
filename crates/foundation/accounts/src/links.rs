//! Links that work once: for the first operator, for invitations, and for new passwords.
//!
//! Opening a link changes nothing, because programs that scan mail open every link. Only the form's `POST` uses a link
//! up, in the transaction that does what the link is for.

use crate::audit::{self, Actor, Entry};
use crate::schema::one_time_links;
use crate::{Email, Secret};
use diesel::prelude::*;
use model::{AccountId, Code, Error, MemberId, Result, Timestamp, WorkspaceId, text_enum};
use serde_json::json;
use store::{Read, Tx};

const MINUTES: i64 = 60;
const DAYS: i64 = 24 * 3_600;
/// For how long a link that is over is kept, so that whoever opens it reads why it does not work.
const KEPT_SECONDS: i64 = 7 * DAYS;
/// The rows that one transaction of the purge job deletes.
const PIECE: i64 = 500;

text_enum! {
    /// What a link is for.
    pub enum Purpose {
        /// Creates an account that manages the installation.
        FirstOperator = "first_operator",
        /// Lets a member of a team sign in.
        Invitation = "invitation",
        /// Sets a new password.
        PasswordReset = "password_reset",
    }
}

impl Purpose {
    /// Returns for how long a link works, in seconds.
    pub const fn lifetime_seconds(self) -> i64 {
        match self {
            Self::FirstOperator | Self::PasswordReset => 30 * MINUTES,
            Self::Invitation => 7 * DAYS,
        }
    }

    /// Returns the path of the page that a link opens.
    pub fn path(self, secret: &Secret) -> String {
        let page = match self {
            Self::FirstOperator => "start",
            Self::Invitation => "invite",
            Self::PasswordReset => "reset",
        };
        format!("/{page}/{}", secret.reveal())
    }
}

/// A member of a team, for whom a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The member.
    pub member: MemberId,
}

/// The data of a new link.
#[derive(Debug, Clone)]
pub enum NewLink {
    /// Creates an account that manages the installation, and that is this member, if there is one.
    FirstOperator(Option<Place>),
    /// Lets a member sign in.
    Invitation(Place, Email),
    /// Sets a new password of an account.
    PasswordReset(AccountId),
}

impl NewLink {
    /// Returns what the link is for.
    pub fn purpose(&self) -> Purpose {
        match self {
            Self::FirstOperator(_) => Purpose::FirstOperator,
            Self::Invitation(..) => Purpose::Invitation,
            Self::PasswordReset(_) => Purpose::PasswordReset,
        }
    }
}

/// A link that works once.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = one_time_links)]
pub struct Link {
    /// What it is for.
    pub purpose: Purpose,
    /// The account whose password it sets.
    pub account_id: Option<AccountId>,
    /// The address of the member who is invited.
    pub email: Option<String>,
    workspace_id: Option<WorkspaceId>,
    member_id: Option<MemberId>,
    /// Who issued it: the id of an account, `command line` or `service`.
    pub created_by: String,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it stops working.
    pub expires_at: Timestamp,
    used_at: Option<Timestamp>,
}

impl Link {
    /// Returns the member whom it is for.
    pub fn place(&self) -> Option<Place> {
        Some(Place { workspace: self.workspace_id?, member: self.member_id? })
    }

    /// # Errors
    /// `link_used`, `link_expired`.
    fn expect_usable(&self, now: Timestamp) -> Result<()> {
        if self.used_at.is_some() {
            return Err(used());
        }
        if self.expires_at <= now {
            return Err(Error::new(Code::LinkExpired, "The time of this link is over. Ask for a new one."));
        }
        Ok(())
    }
}

/// Issues a link and returns its secret, which is not stored. An earlier link for the same member or account ends.
pub fn issue(tx: &mut Tx, new: &NewLink, by: &Actor) -> Result<Secret> {
    let (place, email, account) = match new {
        NewLink::FirstOperator(place) => (*place, None, None),
        NewLink::Invitation(place, email) => (Some(*place), Some(email.as_str()), None),
        NewLink::PasswordReset(account) => (None, None, Some(account)),
    };
    match new {
        NewLink::FirstOperator(_) => {}
        NewLink::Invitation(place, _) => withdraw_of_member(tx, *place)?,
        NewLink::PasswordReset(account) => withdraw_of_account(tx, account)?,
    }
    let (now, secret, purpose) = (tx.now(), Secret::generate(&*tx.random()), new.purpose());
    diesel::insert_into(one_time_links::table)
        .values((
            one_time_links::secret_hash.eq(secret.digest()),
            one_time_links::purpose.eq(purpose),
            one_time_links::account_id.eq(account),
            one_time_links::email.eq(email),
            one_time_links::workspace_id.eq(place.map(|place| place.workspace)),
            one_time_links::member_id.eq(place.map(|place| place.member)),
            one_time_links::created_by.eq(by.label()),
            one_time_links::created_at.eq(now),
            one_time_links::expires_at.eq(now.plus_seconds(purpose.lifetime_seconds())),
        ))
        .execute(tx.connection())?;
    let target = match (place, account) {
        (Some(place), _) => place.member.to_string(),
        (None, Some(account)) => account.to_string(),
        (None, None) => "installation".to_owned(),
    };
    let entry = Entry::new(by.clone(), "link.issued", target).details(json!({ "purpose": purpose }));
    let entry = match place {
        Some(place) => entry.workspace(place.workspace),
        None => entry,
    };
    audit::record(tx, entry)?;
    Ok(secret)
}

/// Returns a link that works, without using it up.
///
/// # Errors
/// `not_found` for a secret of no link with this purpose, `link_used`, `link_expired`.
pub fn look(read: &mut Read, secret: &Secret, purpose: Purpose) -> Result<Link> {
    let link: Option<Link> = one_time_links::table
        .filter(one_time_links::secret_hash.eq(secret.digest()))
        .filter(one_time_links::purpose.eq(purpose))
        .select(Link::as_select())
        .first(read.connection())
        .optional()?;
    let link = link.ok_or_else(|| Error::new(Code::NotFound, "This link does not exist."))?;
    link.expect_usable(read.now())?;
    Ok(link)
}

/// Uses a link up. Of several transactions that do so at once, one succeeds.
///
/// # Errors
/// As [`look`].
pub fn spend(tx: &mut Tx, secret: &Secret, purpose: Purpose) -> Result<Link> {
    let link = look(tx, secret, purpose)?;
    let now = tx.now();
    let unused = one_time_links::table
        .filter(one_time_links::secret_hash.eq(secret.digest()))
        .filter(one_time_links::used_at.is_null());
    // On PostgreSQL a concurrent transaction may have used it since it was read; the update waits for that one.
    let spent = diesel::update(unused).set(one_time_links::used_at.eq(now)).execute(tx.connection())?;
    if spent == 0 { Err(used()) } else { Ok(link) }
}

fn used() -> Error {
    Error::new(Code::LinkUsed, "This link was used already. Each link works once.")
}

/// Returns the invitations of a workspace that can still be accepted, oldest first.
pub fn invitations(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<Link>> {
    let now = read.now();
    Ok(one_time_links::table
        .filter(one_time_links::workspace_id.eq(workspace))
        .filter(one_time_links::purpose.eq(Purpose::Invitation))
        .filter(one_time_links::used_at.is_null())
        .filter(one_time_links::expires_at.gt(now))
        .order((one_time_links::created_at.asc(), one_time_links::member_id.asc()))
        .select(Link::as_select())
        .load(read.connection())?)
}

/// Ends the links of an account.
pub(crate) fn withdraw_of_account(tx: &mut Tx, account: &AccountId) -> Result<()> {
    let now = tx.now();
    diesel::update(one_time_links::table)
        .filter(one_time_links::account_id.eq(account))
        .filter(one_time_links::used_at.is_null())
        .set(one_time_links::used_at.eq(now))
        .execute(tx.connection())?;
    Ok(())
}

/// Ends the links of a member.
pub fn withdraw_of_member(tx: &mut Tx, place: Place) -> Result<()> {
    let now = tx.now();
    diesel::update(one_time_links::table)
        .filter(one_time_links::workspace_id.eq(place.workspace))
        .filter(one_time_links::member_id.eq(place.member))
        .filter(one_time_links::used_at.is_null())
        .set(one_time_links::used_at.eq(now))
        .execute(tx.connection())?;
    Ok(())
}

/// Deletes links that have been over for a week. Returns their number, which is 0 when none is left.
pub(crate) fn purge(tx: &mut Tx) -> Result<usize> {
    let before = tx.now().plus_seconds(-KEPT_SECONDS);
    let over: Vec<Vec<u8>> = one_time_links::table
        .filter(one_time_links::expires_at.le(before))
        .order(one_time_links::expires_at.asc())
        .limit(PIECE)
        .select(one_time_links::secret_hash)
        .load(tx.connection())?;
    let rows = one_time_links::table.filter(one_time_links::secret_hash.eq_any(over));
    Ok(diesel::delete(rows).execute(tx.connection())?)
}
