//! Workbench: what the dashboard shows of a person's account, of API keys, of the log of requests and of the audit log, and
//! what operators manage of the installation.
//!
//! Its operations are for people who have signed in (`session = "…"`). They call the functions that the command line calls.

mod account;
mod audit;
mod group;
mod installation;
mod keys;
mod requests;
mod workspace;

pub use group::GROUP;

use ::model::{AccountId, Caller, Code, Error, MemberSession, Principal, Result};
use ::operation::{Domain, Operations};

/// The area of the dashboard's own operations.
pub struct Workbench;

impl Domain for Workbench {
    const AREA: &'static str = "Workbench";
    const ORDER: u16 = 900;
    const DESCRIPTION: &'static str = "The own account, API keys, the log of requests, the audit log, the workspace and the installation, for people who have \
         signed in.";

    fn operations() -> Operations {
        let parts = [
            account::operations(),
            keys::operations(),
            requests::operations(),
            audit::operations(),
            workspace::operations(),
            installation::operations(),
        ];
        parts.into_iter().flatten().collect()
    }
}

/// Returns the member who asks. The gate lets nobody else through.
///
/// # Errors
/// `session_required`.
fn member(caller: &Caller) -> Result<&MemberSession> {
    match &caller.principal {
        Principal::Member(member) => Ok(member),
        Principal::Key | Principal::App(_) => Err(Error::new(Code::SessionRequired, "Sign in.")),
    }
}

/// Returns who asks, for the audit log.
fn actor(caller: &Caller) -> Result<accounts::Actor> {
    Ok(accounts::Actor::Account(member(caller)?.account.clone(), None))
}

/// Returns the account that asks.
fn account_id(caller: &Caller) -> Result<AccountId> {
    Ok(member(caller)?.account.clone())
}
