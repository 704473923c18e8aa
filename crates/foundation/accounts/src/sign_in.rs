//! Signing in, and everything else that asks for a password.

use crate::account::{self, Account};
use crate::audit::{self, Actor, Entry};
use crate::guessing::{self, Counter, Device};
use crate::links::{self, Purpose};
use crate::passwords::{self, PasswordHash, Passwords};
use crate::sessions::{self, Session};
use crate::{Email, Secret};
use auth::{RateWindows, Seal};
use model::{AccountId, Code, Error, Result, SessionId};
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;
use store::{Db, Tx};

/// The attempts of one address in a minute. High, because the address may be that of a proxy.
const PER_ADDRESS: i64 = 300;
/// The name of the window of addresses.
const DOOR: &str = "sign-in";

/// An account that has just signed in.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// The account.
    pub account: Account,
    /// The new session.
    pub session: Session,
    /// The secret of the session, for the cookie.
    pub secret: Secret,
    /// The value of the device cookie, by which this browser has a counter of its own from now on.
    pub device: String,
}

/// Signs people in.
pub struct SignIn {
    db: Db,
    passwords: Arc<Passwords>,
    seal: Arc<Seal>,
    rates: Arc<RateWindows>,
}

impl SignIn {
    /// Creates the service.
    pub fn new(db: Db, passwords: Arc<Passwords>, seal: Arc<Seal>, rates: Arc<RateWindows>) -> Self {
        Self { db, passwords, seal, rates }
    }

    /// Returns the service that hashes passwords.
    pub fn passwords(&self) -> &Arc<Passwords> {
        &self.passwords
    }

    /// Signs an account in with its password and opens a session. `device` is the device cookie of the browser.
    ///
    /// # Errors
    /// `validation_error` if there is no such account or the password is wrong, with the same message;
    /// `rate_limited` with the time to wait; `service_unavailable` if too many people sign in at once.
    pub async fn attempt(
        &self,
        email: &str,
        password: String,
        device: Option<&str>,
        address: IpAddr,
        user_agent: &str,
    ) -> Result<SignedIn> {
        self.count_address(address).await?;
        let email = Email::parse(email).map_err(|_| wrong())?;
        let wanted = email.clone();
        let account = self.db.read(move |read| account::by_email(read, &wanted)).await?;
        let known = account
            .as_ref()
            .and_then(|account| Device::parse(&self.seal, &account.id, device.unwrap_or_default()));
        let counter = match &known {
            Some(device) => Counter::of_device(&self.seal, device),
            None => Counter::of_email(&self.seal, &email),
        };
        let usable = account.filter(|account| account.disabled_at.is_none());
        let stored = usable.as_ref().and_then(|account| account.password_hash.clone());
        let proof = self.prove(&counter, stored, password).await?;
        let account = usable.ok_or_else(wrong)?;
        let device = known.unwrap_or_else(|| Device::new(&account.id, &*self.db.random()));
        let cookie = device.cookie(&self.seal);
        let (id, user_agent) = (account.id, user_agent.to_owned());
        self.db
            .write(move |tx| {
                guessing::succeed(tx, &counter)?;
                let account = proof.confirm(tx, &id)?;
                let (session, secret) = sessions::open(tx, &id, address, &user_agent)?;
                Ok(SignedIn { account, session, secret, device: cookie.clone() })
            })
            .await
    }

    /// Proves again who the account of a session is. Returns the new secret of the session; the old one ends.
    ///
    /// # Errors
    /// As [`SignIn::attempt`]; `not_found` if the session has ended.
    pub async fn step_up(&self, session: &SessionId, password: String, address: IpAddr) -> Result<Secret> {
        let (account, counter, proof) = self.prove_session(session, password, Some(address)).await?;
        let session = session.clone();
        self.db
            .write(move |tx| {
                guessing::succeed(tx, &counter)?;
                proof.confirm(tx, &account.id)?;
                sessions::rotate(tx, &session)
            })
            .await
    }

    /// Replaces the password of a session's account. All other sessions and all links of the account end. Returns the
    /// new secret of the session.
    ///
    /// # Errors
    /// As [`SignIn::step_up`]; `validation_error` with the param `password` for the new password.
    pub async fn change_password(
        &self,
        session: &SessionId,
        current: String,
        new: String,
        address: IpAddr,
    ) -> Result<Secret> {
        let (account, counter, proof, hash) = self.new_password(session, current, new, Some(address)).await?;
        let session = session.clone();
        self.db
            .write(move |tx| {
                let by = Actor::Account(account.id.clone(), Some(address));
                replace_password(tx, (&account, &counter, &proof), &hash, Some(&session), &by)?;
                sessions::rotate(tx, &session)
            })
            .await
    }

    /// Replaces the password of a session's account, and ends all its sessions, this one too: whoever asks through the API
    /// cannot be handed the new secret of a cookie.
    ///
    /// # Errors
    /// As [`SignIn::change_password`].
    pub async fn change_password_and_sign_out(
        &self,
        session: &SessionId,
        current: String,
        new: String,
        address: Option<IpAddr>,
    ) -> Result<()> {
        let (account, counter, proof, hash) = self.new_password(session, current, new, address).await?;
        self.db
            .write(move |tx| {
                let by = Actor::Account(account.id.clone(), address);
                replace_password(tx, (&account, &counter, &proof), &hash, None, &by)
            })
            .await
    }

    /// Sets a new password by a link. The link is used up, and all sessions and links of the account end.
    ///
    /// # Errors
    /// Those of [`links::look`]; `validation_error` for the password; `service_unavailable`.
    pub async fn reset_password(&self, link: &Secret, new: String, address: IpAddr) -> Result<Account> {
        self.count_address(address).await?;
        let wanted = link.clone();
        // Before the hash, so that a link that does not work costs nothing.
        let account = self.db.read(move |read| {
            let link = links::look(read, &wanted, Purpose::PasswordReset)?;
            account::find(read, &reset_of(link.account_id)?)
        });
        let email = Email::parse(&account.await?.email)?;
        let hash = self.passwords.hash(new, &email).await?;
        let (link, counter) = (link.clone(), Counter::of_email(&self.seal, &email));
        self.db
            .write(move |tx| {
                let account = reset_of(links::spend(tx, &link, Purpose::PasswordReset)?.account_id)?;
                guessing::succeed(tx, &counter)?;
                set_password(tx, &account, &hash, None, &Actor::Visitor(Some(address)))?;
                account::find(tx, &account)
            })
            .await
    }

    /// Counts a request of an address.
    ///
    /// # Errors
    /// `rate_limited`.
    async fn count_address(&self, address: IpAddr) -> Result<()> {
        let now = self.db.now();
        let window = match self.rates.used_up(DOOR, address, PER_ADDRESS, now) {
            Some(window) => window,
            None => self.rates.count_address(DOOR, address, PER_ADDRESS, now).await,
        };
        if !window.exceeded {
            return Ok(());
        }
        let message = "Too many attempts from this address. Wait a moment and try again.";
        Err(Error::new(Code::RateLimited, message).retry_after(window.reset_seconds))
    }

    async fn account_of(&self, session: &SessionId) -> Result<Account> {
        let wanted = session.clone();
        self.db
            .read(move |read| {
                let found = sessions::by_id(read, &wanted)?;
                let session = found.ok_or_else(|| Error::not_found("session"))?;
                account::find(read, &session.account_id)
            })
            .await
    }

    /// Proves the current password, and checks and hashes the new one.
    async fn new_password(
        &self,
        session: &SessionId,
        current: String,
        new: String,
        address: Option<IpAddr>,
    ) -> Result<(Account, Counter, Proof, PasswordHash)> {
        let account = self.account_of(session).await?;
        let email = Email::parse(&account.email)?;
        passwords::check_new(&new, &email)?;
        let (account, counter, proof) = self.prove_session(session, current, address).await?;
        let hash = self.passwords.hash(new, &email).await?;
        Ok((account, counter, proof, hash))
    }

    async fn prove_session(
        &self,
        session: &SessionId,
        password: String,
        address: Option<IpAddr>,
    ) -> Result<(Account, Counter, Proof)> {
        if let Some(address) = address {
            self.count_address(address).await?;
        }
        let account = self.account_of(session).await?;
        let counter = Counter::of_session(&self.seal, session);
        let proof = self.prove(&counter, account.password_hash.clone(), password).await?;
        Ok((account, counter, proof))
    }

    /// Compares a password with the stored hash. Without a hash it takes as long, and the password is wrong.
    async fn prove(&self, counter: &Counter, stored: Option<String>, password: String) -> Result<Proof> {
        let counted = counter.clone();
        self.db.write(move |tx| guessing::begin(tx, &counted)).await?;
        let verdict = match self.passwords.verify(stored.clone(), password.clone()).await {
            Ok(verdict) => verdict,
            Err(error) => {
                let counted = counter.clone();
                self.db.write(move |tx| guessing::take_back(tx, &counted)).await?;
                return Err(error);
            }
        };
        let Some(hash) = stored.filter(|_| verdict.matches) else { return Err(wrong()) };
        let next = match verdict.is_outdated {
            // Signing in matters more than the new parameters: the next sign-in tries again.
            true => self.passwords.rehash(password).await.ok(),
            false => None,
        };
        Ok(Proof { hash, next })
    }
}

/// The hash that a password matched.
struct Proof {
    hash: String,
    /// The hash with the parameters of today, if they have changed.
    next: Option<PasswordHash>,
}

impl Proof {
    /// Returns the account if the password is still the one that was proved and the account may sign in.
    ///
    /// # Errors
    /// `validation_error` as for a wrong password.
    fn confirm(&self, tx: &mut Tx, id: &AccountId) -> Result<Account> {
        // While the password was hashed, it may have been changed, which ended all sessions. This one must not outlive it.
        account::lock(tx, id)?;
        let account = account::find(tx, id)?;
        let is_same = account.password_hash.as_deref() == Some(self.hash.as_str());
        if !is_same || account.disabled_at.is_some() {
            return Err(wrong());
        }
        if let Some(next) = &self.next {
            account::replace_hash(tx, id, next)?;
        }
        Ok(account)
    }
}

/// The same for an unknown address, a disabled account and a wrong password.
fn wrong() -> Error {
    Error::new(Code::ValidationError, "The e-mail address or the password is wrong.").param("password")
}

fn reset_of(account: Option<AccountId>) -> Result<AccountId> {
    account.ok_or_else(|| Error::internal("a link for a new password names no account"))
}

/// Sets a password if the current one is still the one that was proved.
fn replace_password(
    tx: &mut Tx,
    (account, counter, proof): (&Account, &Counter, &Proof),
    hash: &PasswordHash,
    kept: Option<&SessionId>,
    by: &Actor,
) -> Result<()> {
    guessing::succeed(tx, counter)?;
    proof.confirm(tx, &account.id)?;
    set_password(tx, &account.id, hash, kept, by)
}

/// Sets a password and ends what the old one has opened.
fn set_password(
    tx: &mut Tx,
    id: &AccountId,
    hash: &PasswordHash,
    kept: Option<&SessionId>,
    by: &Actor,
) -> Result<()> {
    account::lock(tx, id)?;
    account::set_password(tx, id, hash)?;
    let ended = sessions::revoke_of_account(tx, id, kept)?;
    links::withdraw_of_account(tx, id)?;
    let entry = Entry::new(by.clone(), "account.password_set", id.as_str());
    audit::record(tx, entry.details(json!({ "ended_sessions": ended })))
}
