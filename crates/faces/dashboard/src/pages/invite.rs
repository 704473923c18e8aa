//! `/invite/<code>`: an invitation to the team of a workspace. Opening it changes nothing; its form joins.

use super::{code, expect_safe_connection, look, mistakes, name_field, new_password_field, with_session};
use crate::layout::{Wrong, summary};
use crate::session::SignedIn;
use crate::visit::{PageResult, Visit, with_next};
use ::accounts::account::{self, NewAccount};
use ::accounts::links::{Link, Place, Purpose};
use ::accounts::{Actor, Email, Secret, memberships, sessions};
use ::auth::workspaces;
use business::team;
use maud::{Markup, html};
use model::{Error, MemberRole, Result};
use store::{Read, Tx};

/// What an invitation is for.
struct Invitation {
    code: Secret,
    email: Email,
    workspace: String,
    role: MemberRole,
    /// Whether the address has an account, which then has to be the one that joins.
    has_account: bool,
}

impl Invitation {
    fn read(read: &mut Read, code: Secret, link: &Link) -> Result<Self> {
        let broken = || Error::internal("an invitation names no member");
        let place = link.place().ok_or_else(broken)?;
        let email = Email::parse(link.email.as_deref().ok_or_else(broken)?)?;
        Ok(Self {
            code,
            workspace: workspaces::by_id(read, place.workspace)?.name,
            role: team::find(read, place.workspace, place.member)?.role,
            has_account: account::by_email(read, &email)?.is_some(),
            email,
        })
    }
}

pub(super) async fn answer(visit: Visit) -> PageResult {
    expect_safe_connection(&visit)?;
    let code = code(&visit)?;
    let link = look(&visit, &code, Purpose::Invitation).await?;
    let invitation = visit.web().db().read(move |read| Invitation::read(read, code.clone(), &link)).await?;
    match visit.signed_in() {
        Some(session) => of_account(&visit, session, invitation).await,
        None if invitation.has_account => {
            let here = Purpose::Invitation.path(&invitation.code);
            let content = html! {
                (heading(&invitation))
                p { "There is an account with the address " strong { (invitation.email) } ". Sign in with it to join." }
                p { a.button href=(visit.web().site().link(&with_next("/sign-in", &here))) { "Sign in" } }
            };
            Ok(visit.narrow_page(200, "Join the team", &content))
        }
        None => of_newcomer(&visit, invitation).await,
    }
}

fn heading(invitation: &Invitation) -> Markup {
    html! {
        h1 { "Join " (invitation.workspace) }
        p { "You are invited to the team of " strong { (invitation.workspace) } " with the role " strong { (invitation.role.as_str()) } "." }
    }
}

/// Lets an account that is signed in join. Another account than the invited one has to sign out first.
async fn of_account(visit: &Visit, session: &SignedIn, invitation: Invitation) -> PageResult {
    visit.require_recent_session(&Purpose::Invitation.path(&invitation.code))?;
    let is_invited = Email::parse(&session.email).is_ok_and(|email| email.key() == invitation.email.key());
    if visit.is_post() {
        visit.form()?;
        if is_invited {
            let (account, by) =
                (session.account.clone(), Actor::Account(session.account.clone(), Some(visit.peer())));
            let code = invitation.code;
            let id = session.id.clone();
            let joined = visit.web().db().write(move |tx| {
                memberships::accept(tx, &code, &account, &by, role_of)?;
                // The account has more rights than when its cookie was set.
                sessions::rotate(tx, &id)
            });
            let secret = joined.await?;
            visit.web().forget();
            return Ok(with_session(visit, visit.redirect("/app/"), &secret));
        }
    }
    let content = html! {
        (heading(&invitation))
        p { "You are signed in as " strong { (session.email) } "." }
        @if is_invited {
            form.wide method="post" { (visit.form_token()) button.main { "Join" } }
        } @else {
            p.warn { "The invitation is for " strong { (invitation.email) } ". Sign out, and open the link again." }
            form.wide method="post" action=(visit.web().site().link("/sign-out")) { (visit.form_token()) button { "Sign out" } }
        }
    };
    let status = if visit.is_post() { 403 } else { 200 };
    Ok(visit.narrow_page(status, "Join the team", &content))
}

/// Creates the account of somebody who has none.
async fn of_newcomer(visit: &Visit, invitation: Invitation) -> PageResult {
    if !visit.is_post() {
        return Ok(visit.narrow_page(200, "Join the team", &page(visit, &invitation, "", &[])));
    }
    let form = visit.form()?;
    let name = form.text("name");
    match create(visit, &invitation, name, form.text("password")).await {
        Ok(secret) => Ok(with_session(visit, visit.redirect("/app/"), &secret)),
        Err(error) => {
            let status = error.code().status();
            let wrong = mistakes(error)?;
            Ok(visit.narrow_page(status, "Error: Join the team", &page(visit, &invitation, name, &wrong)))
        }
    }
}

async fn create(visit: &Visit, invitation: &Invitation, name: &str, password: &str) -> Result<Secret> {
    let email = invitation.email.clone();
    let password_hash = visit.web().sign_in().passwords().hash(password.to_owned(), &email).await?;
    let new = NewAccount { email, name: name.to_owned(), password_hash, operator: false };
    let (code, address, user_agent) = (invitation.code.clone(), visit.peer(), visit.user_agent());
    let opened = visit.web().db().write(move |tx| {
        let by = Actor::Visitor(Some(address));
        let account = account::create(tx, &new, &by)?;
        memberships::accept(tx, &code, &account.id, &by, role_of)?;
        let (_, secret) = sessions::open(tx, &account.id, address, &user_agent)?;
        Ok(secret)
    });
    opened.await
}

/// Reads the role that the member has now. The invitation has none that could be older.
fn role_of(tx: &mut Tx, place: Place) -> Result<MemberRole> {
    Ok(team::find(tx, place.workspace, place.member)?.role)
}

fn page(visit: &Visit, invitation: &Invitation, name: &str, wrong: &[Wrong]) -> Markup {
    html! {
        (heading(invitation))
        (summary(wrong))
        p { "Your account will have the address " strong { (invitation.email) } "." }
        form.wide method="post" {
            (visit.form_token())
            input type="hidden" name="username" autocomplete="username" value=(invitation.email);
            (name_field(name, wrong))
            (new_password_field(wrong))
            button.main { "Create account and join" }
        }
    }
}
