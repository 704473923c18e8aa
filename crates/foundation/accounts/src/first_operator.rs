//! The first operator of an installation. Nobody becomes one by being the first visitor: it takes a link that only those
//! who see the program's output or its command line have.

use crate::account::{self, Account, NewAccount};
use crate::audit::Actor;
use crate::links::{self, NewLink, Place, Purpose};
use crate::memberships;
use crate::{Email, PasswordHash, Secret};
use model::{Code, Error, MemberRole, Result};
use std::net::IpAddr;
use store::{Read, Tx};

/// Issues the link that the program prints at its start, unless there is an operator. The operator becomes this member,
/// who is an owner, if there is one.
pub fn issue_at_start(tx: &mut Tx, place: Option<Place>) -> Result<Option<Secret>> {
    if account::has_operator(tx)? {
        return Ok(None);
    }
    links::issue(tx, &NewLink::FirstOperator(place), &Actor::Service).map(Some)
}

/// Returns an error if a link cannot create an operator now. Changes nothing.
///
/// # Errors
/// Those of [`links::look`]; `link_used` for a link of the start if there is an operator meanwhile.
pub fn look(read: &mut Read, code: &Secret) -> Result<()> {
    let link = links::look(read, code, Purpose::FirstOperator)?;
    expect_first(read, &link)
}

/// Uses a link up and creates the account of an operator, in this transaction. Of several at once one succeeds, also
/// with different links on different replicas.
///
/// # Errors
/// As [`look`] and [`account::create`].
pub fn create(
    tx: &mut Tx,
    code: &Secret,
    email: &Email,
    name: &str,
    password_hash: &PasswordHash,
    address: Option<IpAddr>,
) -> Result<Account> {
    tx.lock("first operator")?;
    let link = links::spend(tx, code, Purpose::FirstOperator)?;
    expect_first(tx, &link)?;
    let by = Actor::Visitor(address);
    let new = NewAccount {
        email: email.clone(),
        name: name.to_owned(),
        password_hash: password_hash.clone(),
        operator: true,
    };
    let account = account::create(tx, &new, &by)?;
    if let Some(place) = link.place() {
        memberships::join(tx, &account, place, MemberRole::Owner, &by)?;
    }
    Ok(account)
}

/// Two replicas print a link each. Once one of them is used, the other would make a second operator.
fn expect_first(read: &mut Read, link: &links::Link) -> Result<()> {
    if link.created_by == Actor::Service.label() && account::has_operator(read)? {
        let message =
            "The installation has an operator already. `svc operator link` prints a link for another one.";
        return Err(Error::new(Code::LinkUsed, message));
    }
    Ok(())
}
