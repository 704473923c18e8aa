//! Accounts for tests, made as the command line and the pages make them.

use accounts::account::{self, NewAccount};
use accounts::links::{self, NewLink, Place};
use accounts::{Actor, Email, Secret, SignIn, first_operator, memberships};
use business::team::{self, NewMember};
use model::{AccountId, MemberId, MemberRole, WorkspaceId};
use std::sync::Arc;
use testkit::TestApp;

pub const PASSWORD: &str = "correct horse battery";

pub fn sign_in(app: &TestApp) -> Arc<SignIn> {
    app.service.pipeline.services.get::<SignIn>().unwrap()
}

/// An account without a workspace.
pub async fn account(app: &TestApp, email: &str, operator: bool) -> AccountId {
    let email = Email::parse(email).unwrap();
    let password_hash = sign_in(app).passwords().hash(PASSWORD.to_owned(), &email).await.unwrap();
    let new = NewAccount { email, name: "Marta Ruiz".to_owned(), password_hash, operator };
    app.db().write(move |tx| Ok(account::create(tx, &new, &Actor::CommandLine)?.id)).await.unwrap()
}

/// Adds a member with this address to a team.
pub async fn member(app: &TestApp, workspace: WorkspaceId, email: &str, role: MemberRole) -> MemberId {
    let new =
        NewMember { name: "Marta Ruiz".to_owned(), email: email.to_owned(), role, ..NewMember::default() };
    app.db().write(move |tx| Ok(team::add(tx, workspace, new.clone())?.id)).await.unwrap()
}

/// An account that is a member of a team.
pub async fn joined(app: &TestApp, workspace: WorkspaceId, email: &str, role: MemberRole) -> AccountId {
    let member = member(app, workspace, email, role).await;
    let id = account(app, email, false).await;
    join(app, &id, Place { workspace, member }, role).await;
    id
}

pub async fn join(app: &TestApp, id: &AccountId, place: Place, role: MemberRole) {
    let id = id.clone();
    let joined = app.db().write(move |tx| {
        let account = account::find(tx, &id)?;
        memberships::join(tx, &account, place, role, &Actor::CommandLine)
    });
    joined.await.unwrap();
}

pub async fn link(app: &TestApp, new: NewLink) -> Secret {
    app.db().write(move |tx| links::issue(tx, &new, &Actor::CommandLine)).await.unwrap()
}

/// The path of the link that `serve` prints.
pub async fn start_link(app: &TestApp) -> String {
    let secret = app.db().write(|tx| first_operator::issue_at_start(tx, None)).await.unwrap().unwrap();
    format!("/start/{}", secret.reveal())
}
