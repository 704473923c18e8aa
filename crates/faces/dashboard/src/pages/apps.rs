//! `/apps`: the apps that act for an account, and the way to end that.

use crate::forms::hidden;
use crate::layout::moment;
use crate::session::SignedIn;
use crate::visit::{PageResult, Visit};
use ::auth::workspaces;
use ::oauth::{Grant, grants_of_account, revoke_grant, sentence};
use maud::{Markup, html};
use model::{ActorType, Cause, Env, Error, KeyId, Result};

const HERE: &str = "/apps";

pub(super) async fn answer(visit: Visit) -> PageResult {
    let session = visit.require_session(HERE)?;
    if visit.is_post() {
        return revoke(&visit, session).await;
    }
    let account = session.account.clone();
    let read = visit.web().db().read(move |read| {
        let grants = grants_of_account(read, &account)?;
        let named = grants.into_iter().map(|grant| {
            let workspace = workspaces::by_id(read, grant.workspace)?.name;
            Ok((grant, workspace))
        });
        named.collect::<Result<Vec<_>>>()
    });
    let grants = read.await?;
    let content = html! {
        h1 { "Connected apps" }
        @if visit.parameter("done").is_some() { p.card.ok role="status" { "The app has no access any more." } }
        p { "These apps can use the service as you." }
        @if grants.is_empty() { p.card { "No app is connected." } }
        @for (grant, workspace) in &grants { (app(&visit, grant, workspace)) }
    };
    Ok(visit.page(200, "Connected apps", &content))
}

fn app(visit: &Visit, grant: &Grant, workspace: &str) -> Markup {
    html! {
        section.card {
            h2 { (grant.client_name) }
            p.muted { code { (grant.client_id) } }
            p {
                "In " strong { (workspace) } @if grant.env == Env::Test { ", as a test" } ", since " (moment(grant.created_at))
                @if let Some(at) = grant.last_tokens_at { ", last used " (moment(at)) }
                "."
            }
            details {
                summary { "What it may do" }
                ul.plain { @for scope in grant.scopes.iter() { li { (sentence(scope).text) } } }
            }
            form method="post" action=(visit.web().site().link(HERE)) {
                (visit.form_token())
                (hidden("key", grant.key_id.as_str()))
                button.danger { "Disconnect" }
            }
        }
    }
}

/// Ends what an app may do for the account.
async fn revoke(visit: &Visit, session: &SignedIn) -> PageResult {
    let form = visit.form()?;
    let unknown = || Error::not_found("grant");
    let key: KeyId = form.text("key").parse().map_err(|()| unknown())?;
    let account = session.account.clone();
    let revoked = visit.web().db().write(move |tx| {
        // Only those of the account itself.
        let grants = grants_of_account(tx, &account)?;
        let grant = grants.iter().find(|grant| grant.key_id == key).ok_or_else(unknown)?;
        let cause = Cause::actor(ActorType::User, &grant.member);
        revoke_grant(tx, grant.workspace, &key, &cause)
    });
    revoked.await?;
    visit.web().forget();
    Ok(visit.redirect("/apps?done=1"))
}
