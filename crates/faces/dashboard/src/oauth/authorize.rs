//! `/oauth/authorize`: checks the request, asks the person, and sends the browser back to the client.
//!
//! The form of the page is posted to the address of the page, so the request is in the URL both times and is checked both
//! times. Nothing is stored before the decision, so tabs, reloads and the back button cannot get in each other's way.

use super::Inner;
use super::consent::{self, Choice, Decision};
use super::parameters::Parameters;
use super::request::{AuthorizationRequest, Refusal as RequestRefusal, check};
use crate::layout::Wrong;
use crate::session::SignedIn;
use crate::visit::{PageResult, Refusal, Visit};
use ::oauth::clients::Clients;
use ::oauth::{Authorization, authorize};
use accounts::Actor;
use accounts::audit::{self, Entry};
use maud::html;
use model::{Code, Error};
use operation::RawAnswer;
use serde_json::json;
use std::sync::Arc;

/// Answers a request for authorization.
pub(super) async fn answer(inner: &Arc<Inner>, mut visit: Visit) -> PageResult {
    // Browsers hold `form-action` also against the redirect to the client that follows the form.
    visit.allow_forms_to_leave();
    let here = format!("/oauth/authorize?{}", visit.request.query);
    let parameters = Parameters::parse(visit.request.query.as_bytes());
    // Only somebody who is signed in can make the service fetch a document.
    if parameters.get("client_id").is_some_and(Clients::is_remote) {
        visit.require_session(&here)?;
    }
    let request = match check(inner, &parameters).await {
        Ok(request) => request,
        Err(RequestRefusal::Redirect(target, error, description)) => {
            return Ok(to_client(&target.with_error(error, &description)));
        }
        Err(RequestRefusal::Page(title, text)) => return Ok(refusal_page(&visit, title, &text)),
        Err(RequestRefusal::Internal(error)) => return Err(error.into()),
    };
    let session = visit.require_recent_session(&here)?.clone();
    if visit.is_post() {
        decide(inner, &visit, &session, request).await
    } else {
        ask(inner, &visit, &session, &request, &[]).await
    }
}

/// Shows the page that asks.
async fn ask(
    inner: &Inner,
    visit: &Visit,
    session: &SignedIn,
    request: &AuthorizationRequest,
    wrong: &[Wrong],
) -> PageResult {
    let (account, key) = (session.account.clone(), request.client.key.clone());
    let choices = inner.db.read(move |read| consent::choices(read, &account, &key)).await?;
    let registrar = consent::registrar(inner, &request.client).await?;
    let content = consent::page(visit, session, request, &choices, registrar.as_deref(), wrong);
    let status = if wrong.is_empty() { 200 } else { 400 };
    Ok(visit.page(status, &format!("{} asks for access", request.client.name), &content))
}

/// Takes the decision.
async fn decide(
    inner: &Inner,
    visit: &Visit,
    session: &SignedIn,
    request: AuthorizationRequest,
) -> PageResult {
    let form = visit.form()?;
    let (workspace, env) = match Decision::read(&form) {
        Decision::Deny => {
            let url = request.target.with_error("access_denied", "the person did not allow it");
            return Ok(to_client(&url));
        }
        Decision::Allow(workspace, env) => (workspace, env),
        Decision::Unclear => {
            let wrong = [Wrong::field("workspace", "Choose the workspace that the app may use.")];
            return ask(inner, visit, session, &request, &wrong).await;
        }
    };
    let AuthorizationRequest { client, target, scopes, challenge, resource } = request;
    let account = session.account.clone();
    let by = Actor::Account(account.clone(), Some(visit.peer()));
    let redirect_uri = target.redirect_uri.clone();
    let code = inner.db.write(move |tx| {
        let choices = consent::choices(tx, &account, &client.key)?;
        // The role is read in this transaction, because it may have changed since the page was shown.
        let choice =
            choices.iter().find(|choice| choice.place.workspace == workspace).ok_or_else(forbidden)?;
        let Choice { place, .. } = choice;
        let new = Authorization {
            account: account.clone(),
            member: place.member,
            workspace,
            env,
            client_id: client.id.clone(),
            client_key: client.key.clone(),
            client_name: client.name.clone(),
            redirect_uri: redirect_uri.clone(),
            challenge: challenge.clone(),
            resource,
            scopes,
        };
        let code = authorize(tx, &new)?;
        let details = json!({ "client_id": client.id, "name": client.name, "env": env, "scopes": scopes });
        let entry = Entry::new(by.clone(), "app.authorized", client.key.clone());
        audit::record(tx, entry.workspace(workspace).details(details))?;
        Ok(code)
    });
    Ok(to_client(&target.with_code(code.await?.reveal())))
}

fn forbidden() -> Error {
    let message = "Only owners and admins of a workspace can let apps use it. Nothing was changed.";
    Error::new(Code::NotFound, message)
}

/// Sends the browser to the client with `GET`, whatever the method of this request (RFC 9700, 4.12).
fn to_client(url: &str) -> RawAnswer {
    RawAnswer::status(303).header("location", url)
}

/// Returns a page that leads nowhere.
fn refusal_page(visit: &Visit, title: &str, text: &str) -> RawAnswer {
    let content = html! {
        h1 { (title) }
        p { (text) }
        p.muted { "You can close this page. The app has not received anything." }
    };
    visit.narrow_page(400, title, &content)
}

/// Returns the answer for a request that failed.
pub(super) fn failed(visit: &Visit, refusal: Refusal) -> Result<RawAnswer, Error> {
    match refusal {
        Refusal::Answer(answer) => Ok(*answer),
        Refusal::Failed(error) if error.cause().is_some() => Err(error),
        Refusal::Failed(error) => Ok(visit.error_page(&error)),
    }
}
