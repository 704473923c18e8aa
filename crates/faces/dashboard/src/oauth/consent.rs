//! The page that asks whether an app may use a workspace: who asks, where the browser will be sent, and each scope as a
//! sentence.

use super::Inner;
use super::request::AuthorizationRequest;
use crate::forms::Form;
use crate::layout::{Wrong, summary};
use crate::session::SignedIn;
use crate::visit::Visit;
use ::oauth::clients::redirect::{Destination, destination};
use ::oauth::clients::{Client, ClientSource};
use ::oauth::{find_grant, sentence};
use accounts::memberships::{self, Membership};
use auth::roles::{Permission, permits};
use auth::workspaces;
use maud::{Markup, html};
use model::{AccountId, Env, Result, Scope, ScopeSet, WorkspaceId};
use store::Read;

/// A workspace that the person may let the app use.
pub(super) struct Choice {
    /// The workspace, with the person's role in it.
    pub(super) place: Membership,
    /// The name of the workspace.
    name: String,
    /// What the app may do there already, by environment.
    granted: Vec<(Env, ScopeSet)>,
}

/// What the person has decided.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The app may use this workspace.
    Allow(WorkspaceId, Env),
    /// It may not.
    Deny,
    /// The form lacks something.
    Unclear,
}

impl Decision {
    /// Reads the form.
    pub(super) fn read(form: &Form) -> Self {
        let workspace = form.get("workspace").and_then(|text| text.parse().ok());
        match (form.get("decision"), workspace, Env::parse(form.text("env"))) {
            (Some("deny"), _, _) => Self::Deny,
            (Some("allow"), Some(workspace), Some(env)) => Self::Allow(workspace, env),
            _ => Self::Unclear,
        }
    }
}

/// Returns the workspaces that an account may let apps use.
pub(super) fn choices(read: &mut Read, account: &AccountId, client_key: &str) -> Result<Vec<Choice>> {
    let mut choices = Vec::new();
    for place in memberships::of_account(read, account)? {
        if !permits(place.role, Permission::AuthorizeApps) {
            continue;
        }
        let name = workspaces::by_id(read, place.workspace)?.name;
        let mut granted = Vec::new();
        for env in Env::ALL {
            if let Some(grant) = find_grant(read, account, place.workspace, env, client_key)? {
                granted.push((env, grant.scopes));
            }
        }
        choices.push(Choice { place, name, granted });
    }
    Ok(choices)
}

/// Returns the name of the workspace that has registered a client.
pub(super) async fn registrar(inner: &Inner, client: &Client) -> Result<Option<String>> {
    let ClientSource::Registered { workspace, .. } = client.source else { return Ok(None) };
    let found = inner.db.read(move |read| workspaces::by_id(read, workspace)).await?;
    Ok(Some(found.name))
}

/// Returns the content of the page.
pub(super) fn page(
    visit: &Visit,
    session: &SignedIn,
    request: &AuthorizationRequest,
    choices: &[Choice],
    registrar: Option<&str>,
    wrong: &[Wrong],
) -> Markup {
    html! {
        h1 { (request.client.name) " asks for access" }
        (summary(wrong))
        section.card { (identity(&request.client, registrar)) (way_back(&request.target.redirect_uri)) }
        // Without an action, the form is posted to the address of the page, which contains the request.
        form method="post" {
            (visit.form_token())
            @if choices.is_empty() {
                section.card {
                    p { "You are signed in as " strong { (session.email) } ". Only owners and admins of a workspace can let apps use it, \
                         and you are neither in any." }
                }
            } @else {
                section.card { (workspace(session, choices)) }
                section.card { (scopes(request.scopes, choices)) }
                section.card { (environment()) }
            }
            div.buttons {
                @if !choices.is_empty() { button.main name="decision" value="allow" { "Allow" } }
                button name="decision" value="deny" { "Deny" }
            }
        }
        p.muted { "You can take this back at any time under “Connected apps”." }
    }
}

/// Says what is known about the app, and who says so.
fn identity(client: &Client, registrar: Option<&str>) -> Markup {
    html! {
        h2 { "Who asks" }
        @match &client.source {
            ClientSource::Document { host } => {
                p.verified { "The app belongs to " strong { (host) } ". This was verified." }
            }
            ClientSource::Registered { .. } => {
                p { "The workspace " strong { (registrar.unwrap_or_default()) } " has registered this app here." }
            }
            ClientSource::Sealed => {
                p.warn { "The app has named itself “" (client.name) "”. Nobody has verified that." }
            }
        }
    }
}

/// Says where the browser goes next.
fn way_back(redirect_uri: &str) -> Markup {
    html! {
        @match destination(redirect_uri) {
            Destination::Loopback => {
                p.warn { "Your browser will then go to a program on this computer. Nobody can verify which program that is: continue \
                          only if you have just started it yourself." }
            }
            Destination::App(scheme) => {
                p.warn { "Your browser will then open an app on this device: " strong { (scheme) } ". Nobody can verify which app that is: \
                          continue only if you have just started it yourself." }
            }
            Destination::Host(host) => p { "Your browser will then go to " strong { (host) } "." }
        }
    }
}

fn workspace(session: &SignedIn, choices: &[Choice]) -> Markup {
    html! {
        h2 id="workspace" { "Which workspace" }
        p.muted { "You are signed in as " (session.email) "." }
        @for (place, choice) in choices.iter().enumerate() {
            label.choice {
                input type="radio" name="workspace" value=(choice.place.workspace) checked[place == 0] required;
                " " (choice.name)
            }
            @for (env, granted) in &choice.granted {
                p.muted {
                    "The app may already use it" @if *env == Env::Test { " in test mode" } ": " (list(*granted)) "."
                }
            }
        }
    }
}

/// Lists sentences in one sentence.
fn list(scopes: ScopeSet) -> String {
    let lower = |text: &str| {
        let mut letters = text.chars();
        letters
            .next()
            .map(|first| first.to_lowercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    scopes.iter().map(|scope| lower(sentence(scope).text)).collect::<Vec<_>>().join("; ")
}

/// Shows what the app asks for. A scope is new if some workspace has let the app do other things, but not this.
fn scopes(asked: ScopeSet, choices: &[Choice]) -> Markup {
    let known: ScopeSet =
        choices.iter().flat_map(|choice| &choice.granted).flat_map(|(_, granted)| granted.iter()).collect();
    let is_new = |scope: Scope| !known.is_empty() && !known.contains(scope);
    html! {
        h2 { "What the app may then do" }
        ul.rows {
            @for scope in asked.iter() {
                li {
                    p {
                        (sentence(scope).text)
                        @if is_new(scope) { " " strong.mark { "New" } }
                        @if let Some(warning) = sentence(scope).warning { " " strong.mark.warn { (warning.text()) } }
                    }
                    p.muted { code { (scope) } }
                }
            }
        }
    }
}

fn environment() -> Markup {
    html! {
        h2 { "For real, or as a test" }
        label.choice { input type="radio" name="env" value="live" checked required; " For real" }
        label.choice { input type="radio" name="env" value="test"; " As a test: nothing is sent to anybody, and no Energy is spent" }
    }
}
