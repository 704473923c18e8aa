//! `/account`: the workspaces of an account, its password, and the browsers in which it is signed in.

use super::sign_in::waiting;
use super::{mistakes, new_password_field, with_session};
use crate::forms::{Form, hidden};
use crate::layout::{Field, Wrong, moment, summary};
use crate::session::SignedIn;
use crate::visit::{PageResult, Visit};
use ::accounts::{Membership, Session, memberships, sessions};
use ::auth::workspaces;
use maud::{Markup, html};
use model::{Code, Error, Result, SessionId};

const HERE: &str = "/account";

/// Shows the page.
pub(super) async fn answer(visit: Visit) -> PageResult {
    let session = visit.require_session(HERE)?;
    if visit.is_post() {
        return Err(Error::new(Code::MethodNotAllowed, "Only GET and HEAD are allowed.").into());
    }
    show(&visit, session, &[]).await
}

/// Takes the forms of the page: `/account/password`, `/account/sessions`.
pub(super) async fn change(visit: Visit) -> PageResult {
    let session = visit.require_session(HERE)?;
    if !visit.is_post() {
        return Ok(visit.redirect(HERE));
    }
    let form = visit.form()?;
    match visit.request.rest.as_str() {
        "password" => change_password(&visit, session, &form).await,
        "sessions" => end_sessions(&visit, session, &form).await,
        _ => Err(Error::new(Code::NotFound, "There is no such page.").into()),
    }
}

async fn change_password(visit: &Visit, session: &SignedIn, form: &Form) -> PageResult {
    let (current, new) = (form.text("current").to_owned(), form.text("password").to_owned());
    let sign_in = visit.web().sign_in();
    match sign_in.change_password(&session.id, current, new, visit.peer()).await {
        Ok(secret) => {
            visit.web().forget();
            Ok(with_session(visit, visit.redirect("/account?done=password"), &secret))
        }
        Err(error) if error.code() == Code::RateLimited => {
            let (wrong, wait) = waiting(&error);
            Ok(show(visit, session, &wrong).await?.header("retry-after", wait.to_string()))
        }
        Err(error) => {
            // A rule about the new password begins with its name.
            let is_about_new = error.message().starts_with('`');
            let mut wrong = mistakes(error)?;
            if !is_about_new {
                wrong = vec![Wrong::field("current", "The current password is wrong.")];
            }
            show(visit, session, &wrong).await
        }
    }
}

/// Ends one session, or all others.
async fn end_sessions(visit: &Visit, session: &SignedIn, form: &Form) -> PageResult {
    let (account, own) = (session.account.clone(), session.id.clone());
    let ended: Option<SessionId> = match form.get("session") {
        Some("others") => None,
        other => Some(other.and_then(|id| id.parse().ok()).ok_or_else(|| Error::not_found("session"))?),
    };
    let ended = visit.web().db().write(move |tx| match &ended {
        None => sessions::revoke_others(tx, &account, &own).map(|_| ()),
        Some(id) => sessions::revoke(tx, &account, id),
    });
    ended.await?;
    visit.web().forget();
    Ok(visit.redirect("/account?done=sessions"))
}

/// A membership with the name of its workspace.
struct Place {
    membership: Membership,
    workspace: String,
}

async fn show(visit: &Visit, session: &SignedIn, wrong: &[Wrong]) -> PageResult {
    let account = session.account.clone();
    let read = visit.web().db().read(move |read| {
        let open = sessions::of_account(read, &account)?;
        let places = memberships::of_account(read, &account)?.into_iter().map(|membership| {
            let workspace = workspaces::by_id(read, membership.workspace)?.name;
            Ok(Place { membership, workspace })
        });
        Ok((places.collect::<Result<Vec<_>>>()?, open))
    });
    let (places, open) = read.await?;
    let content = html! {
        h1 { "Account" }
        (summary(wrong))
        (done(visit))
        p { "You are signed in as " strong { (session.email) } "." }
        (workspaces_of(&places))
        (password(visit, session, wrong))
        (browsers(visit, session, &open))
    };
    let (status, title) = if wrong.is_empty() { (200, "Account") } else { (400, "Error: Account") };
    Ok(visit.page(status, title, &content))
}

fn done(visit: &Visit) -> Markup {
    let text = match visit.parameter("done").as_deref() {
        Some("password") => "Your password is changed. All other browsers have been signed out.",
        Some("sessions") => "Signed out.",
        _ => return Markup::default(),
    };
    html! { p.card.ok role="status" { (text) } }
}

fn workspaces_of(places: &[Place]) -> Markup {
    html! {
        section.card {
            h2 { "Workspaces" }
            @if places.is_empty() { p { "You are a member of no workspace." } } @else {
                ul.rows {
                    @for place in places {
                        li { p { strong { (place.workspace) } } p.muted { "Your role: " (place.membership.role.as_str()) } }
                    }
                }
            }
        }
    }
}

fn password(visit: &Visit, session: &SignedIn, wrong: &[Wrong]) -> Markup {
    let current = Field {
        name: "current",
        label: "Current password",
        kind: "password",
        autocomplete: "current-password",
        hint: "",
        value: "",
    };
    html! {
        section.card {
            h2 { "Change password" }
            p.muted { "All other browsers are signed out." }
            form method="post" action=(visit.web().site().link("/account/password")) {
                (visit.form_token())
                input type="hidden" name="username" autocomplete="username" value=(session.email);
                (current.markup(wrong))
                (new_password_field(wrong))
                button.main { "Change password" }
            }
        }
    }
}

fn browsers(visit: &Visit, own: &SignedIn, open: &[Session]) -> Markup {
    let action = visit.web().site().link("/account/sessions");
    let form = |session: &str, label: &str| {
        html! {
            form method="post" action=(action) {
                (visit.form_token()) (hidden("session", session))
                button { (label) }
            }
        }
    };
    html! {
        section.card {
            h2 { "Where you are signed in" }
            ul.rows {
                @for session in open {
                    li {
                        p { strong { (browser(&session.user_agent)) } @if session.id == own.id { " (this browser)" } }
                        p.muted { "From " (session.address) ", last used " (moment(session.last_seen_at)) ", signed in " (moment(session.created_at)) }
                        @if session.id != own.id { (form(session.id.as_str(), "Sign out")) }
                    }
                }
            }
            @if open.len() > 1 { (form("others", "Sign out everywhere else")) }
        }
    }
}

/// Returns the name of a browser and its system, as far as it tells them.
fn browser(user_agent: &str) -> String {
    let known = |names: &[(&str, &'static str)]| {
        names.iter().find(|(mark, _)| user_agent.contains(mark)).map(|(_, name)| *name)
    };
    // Many browsers name others too, so the order matters.
    let browser = known(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = known(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ if user_agent.is_empty() => "Unknown browser".to_owned(),
        _ => user_agent.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_have_the_names_that_people_know() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36";
        assert_eq!(browser(chrome), "Chrome on Linux");
        assert_eq!(browser(&format!("{chrome} Edg/148.0")), "Edge on Linux");
        let safari = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Safari/604.1";
        assert_eq!(browser(safari), "Safari on iPhone");
        assert_eq!(browser(""), "Unknown browser");
        assert_eq!(browser("curl/8"), "curl/8");
    }
}
