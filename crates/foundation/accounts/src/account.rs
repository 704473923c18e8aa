//! Accounts: the people who sign in.

use crate::audit::{self, Actor, Entry};
use crate::schema::accounts;
use crate::{Email, PasswordHash, links, sessions};
use diesel::prelude::*;
use model::{AccountId, Code, Error, Result, Timestamp};
use serde_json::json;
use store::{OneRow, Read, Tx};

/// The greatest length of a name, in characters.
const MOST_NAME: usize = 120;

/// A person who signs in.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = accounts)]
pub struct Account {
    /// The id.
    pub id: AccountId,
    /// The e-mail address as it was typed.
    pub email: String,
    /// The name, 1 to 120 characters.
    pub name: String,
    /// The hash of the password. An account without one cannot sign in.
    pub(crate) password_hash: Option<String>,
    /// When the password was last set.
    pub password_changed_at: Option<Timestamp>,
    /// Whether the account manages the installation.
    pub operator: bool,
    /// When the account was disabled.
    pub disabled_at: Option<Timestamp>,
    /// When the object was created.
    pub created_at: Timestamp,
    /// The language in which the dashboard speaks to the person, such as `en` or `pt-BR`.
    pub locale: String,
}

impl Account {
    /// Returns whether the account has a password.
    pub fn has_password(&self) -> bool {
        self.password_hash.is_some()
    }
}

/// The data of a new account.
#[derive(Debug, Clone)]
pub struct NewAccount {
    /// The e-mail address.
    pub email: Email,
    /// The name, 1 to 120 characters.
    pub name: String,
    /// The hash of the password.
    pub password_hash: PasswordHash,
    /// Whether the account manages the installation.
    pub operator: bool,
}

/// Creates an account.
///
/// # Errors
/// `validation_error` for the name; `duplicate_value` if there is an account with this address.
pub fn create(tx: &mut Tx, new: &NewAccount, by: &Actor) -> Result<Account> {
    let name = checked_name(&new.name)?;
    // Two transactions that create the same address would both find none, and the later one would fail with a 500.
    tx.lock(&format!("account {}", new.email.key()))?;
    if by_email(tx, &new.email)?.is_some() {
        let message = "There is an account with this e-mail address. Sign in with it.";
        return Err(Error::new(Code::DuplicateValue, message).param("email"));
    }
    let now = tx.now();
    let id = AccountId::new(now, &*tx.random());
    diesel::insert_into(accounts::table)
        .values((
            accounts::id.eq(&id),
            accounts::email.eq(new.email.as_str()),
            accounts::email_key.eq(new.email.key()),
            accounts::name.eq(name),
            accounts::password_hash.eq(new.password_hash.as_str()),
            accounts::password_changed_at.eq(now),
            accounts::operator.eq(new.operator),
            accounts::created_at.eq(now),
            accounts::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    let entry = Entry::new(by.clone(), "account.created", id.as_str());
    audit::record(tx, entry.details(json!({ "email": new.email.as_str(), "operator": new.operator })))?;
    find(tx, &id)
}

/// Returns an account, also a disabled one.
///
/// # Errors
/// `not_found`.
pub fn find(read: &mut Read, id: &AccountId) -> Result<Account> {
    let query = accounts::table.find(id).select(Account::as_select());
    query.first(read.connection()).or_not_found("account")
}

/// Returns the account with an address, also a disabled one.
pub fn by_email(read: &mut Read, email: &Email) -> Result<Option<Account>> {
    let query = accounts::table.filter(accounts::email_key.eq(email.key())).select(Account::as_select());
    Ok(query.first(read.connection()).optional()?)
}

/// Returns the accounts that manage the installation, oldest first. Disabled ones are left out.
pub fn operators(read: &mut Read) -> Result<Vec<Account>> {
    Ok(accounts::table
        .filter(accounts::operator)
        .filter(accounts::disabled_at.is_null())
        .order(accounts::id.asc())
        .select(Account::as_select())
        .load(read.connection())?)
}

/// Returns whether an account manages the installation.
pub fn has_operator(read: &mut Read) -> Result<bool> {
    Ok(!operators(read)?.is_empty())
}

/// Makes an account an operator, or ends that. Ends its sessions, because its rights change.
///
/// # Errors
/// `not_found`.
pub fn set_operator(tx: &mut Tx, id: &AccountId, operator: bool, by: &Actor) -> Result<Account> {
    let now = tx.now();
    diesel::update(accounts::table.find(id))
        .set((accounts::operator.eq(operator), accounts::updated_at.eq(now)))
        .execute(tx.connection())?;
    let account = find(tx, id)?;
    sessions::revoke_of_account(tx, id, None)?;
    let action = if operator { "operator.added" } else { "operator.removed" };
    audit::record(tx, Entry::new(by.clone(), action, id.as_str()))?;
    Ok(account)
}

/// Disables an account: its sessions and links end, and it cannot sign in.
///
/// # Errors
/// `not_found`.
pub fn disable(tx: &mut Tx, id: &AccountId, by: &Actor) -> Result<Account> {
    lock(tx, id)?;
    let now = tx.now();
    diesel::update(accounts::table.find(id).filter(accounts::disabled_at.is_null()))
        .set((accounts::disabled_at.eq(now), accounts::updated_at.eq(now)))
        .execute(tx.connection())?;
    let account = find(tx, id)?;
    sessions::revoke_of_account(tx, id, None)?;
    links::withdraw_of_account(tx, id)?;
    audit::record(tx, Entry::new(by.clone(), "account.disabled", id.as_str()))?;
    Ok(account)
}

/// Lets a disabled account sign in again.
///
/// # Errors
/// `not_found`.
pub fn enable(tx: &mut Tx, id: &AccountId, by: &Actor) -> Result<Account> {
    let now = tx.now();
    diesel::update(accounts::table.find(id))
        .set((accounts::disabled_at.eq(None::<Timestamp>), accounts::updated_at.eq(now)))
        .execute(tx.connection())?;
    let account = find(tx, id)?;
    audit::record(tx, Entry::new(by.clone(), "account.enabled", id.as_str()))?;
    Ok(account)
}

/// Returns at most `most` accounts after `after`, oldest first, also disabled ones.
pub fn page(read: &mut Read, after: Option<&AccountId>, most: i64) -> Result<Vec<Account>> {
    let mut query =
        accounts::table.order(accounts::id.asc()).limit(most).select(Account::as_select()).into_boxed();
    if let Some(after) = after {
        query = query.filter(accounts::id.gt(after.as_str().to_owned()));
    }
    Ok(query.load(read.connection())?)
}

/// Changes the name and the language of an account. What is not given stays.
///
/// # Errors
/// `not_found`; `validation_error` for the name or the language.
pub fn set_profile(
    tx: &mut Tx,
    id: &AccountId,
    name: Option<&str>,
    locale: Option<&str>,
    by: &Actor,
) -> Result<Account> {
    lock(tx, id)?;
    let before = find(tx, id)?;
    let name = name.map_or(Ok(before.name.as_str()), checked_name)?;
    let locale = locale.unwrap_or(&before.locale);
    if !is_locale(locale) {
        return Err(Error::invalid("locale", "must be a language such as es or pt-BR"));
    }
    let now = tx.now();
    diesel::update(accounts::table.find(id))
        .set((accounts::name.eq(name), accounts::locale.eq(locale), accounts::updated_at.eq(now)))
        .execute(tx.connection())?;
    let entry = Entry::new(by.clone(), "account.changed", id.as_str());
    let details = json!({
        "before": { "name": before.name, "locale": before.locale }, "after": { "name": name, "locale": locale },
    });
    audit::record(tx, entry.details(details))?;
    find(tx, id)
}

/// Returns whether a text names a language, such as `es` or `pt-BR`.
fn is_locale(text: &str) -> bool {
    let (language, region) = text.split_once('-').map_or((text, None), |(first, rest)| (first, Some(rest)));
    let is_language =
        (2..=3).contains(&language.len()) && language.bytes().all(|letter| letter.is_ascii_lowercase());
    is_language
        && region.is_none_or(|region| {
            region.len() == 2 && region.bytes().all(|letter| letter.is_ascii_uppercase())
        })
}

/// Sets the password of an account.
///
/// # Errors
/// `not_found`.
pub(crate) fn set_password(tx: &mut Tx, id: &AccountId, hash: &PasswordHash) -> Result<()> {
    let now = tx.now();
    let changed = diesel::update(accounts::table.find(id))
        .set((
            accounts::password_hash.eq(hash.as_str()),
            accounts::password_changed_at.eq(now),
            accounts::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    if changed == 0 { Err(Error::not_found("account")) } else { Ok(()) }
}

/// Replaces the hash of a password that stays the same. The caller has locked the account.
pub(crate) fn replace_hash(tx: &mut Tx, id: &AccountId, next: &PasswordHash) -> Result<()> {
    diesel::update(accounts::table.find(id))
        .set(accounts::password_hash.eq(next.as_str()))
        .execute(tx.connection())?;
    Ok(())
}

/// Locks an account. A sign-in and a change of its password must not pass each other.
pub(crate) fn lock(tx: &mut Tx, id: &AccountId) -> Result<()> {
    tx.lock(&format!("account {id}"))
}

/// Returns a name without the space around it.
///
/// # Errors
/// `validation_error`.
pub(crate) fn checked_name(name: &str) -> Result<&str> {
    let name = name.trim();
    if name.len() > 4 * MOST_NAME
        || !(1..=MOST_NAME).contains(&name.chars().count())
        || name.chars().any(char::is_control)
    {
        return Err(Error::invalid("name", format_args!("must have 1 to {MOST_NAME} characters")));
    }
    Ok(name)
}
