//! Members of the team who have signed in.

use accounts::account::{self, NewAccount};
use accounts::audit::Actor;
use accounts::links::Place;
use accounts::{Email, Passwords, memberships, sessions};
use business::team::{self, NewMember};
use model::{Env, MemberRole, MemberSession, Result, WorkspaceId};
use operation::Pipeline;
use std::net::{IpAddr, Ipv4Addr};
use store::Tx;

/// From where the members sign in.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Admins of a workspace with open sessions.
pub struct Members {
    workspace: WorkspaceId,
    sessions: Vec<MemberSession>,
}

impl Members {
    /// Adds members to a workspace, who sign in now.
    pub async fn sign_in(pipeline: &Pipeline, workspace: WorkspaceId, number: usize) -> Result<Self> {
        let by = Actor::CommandLine;
        // A hash takes long on purpose, and nobody here enters a password.
        let passwords = Passwords::new(pipeline.db.random());
        let hash =
            passwords.hash("seven copper lanterns".to_owned(), &Email::parse("admin@example.com")?).await?;
        let made = pipeline.db.write(move |tx| {
            let add = |number| {
                let email = Email::parse(&format!("admin-{number}@example.com"))?;
                let new = NewAccount {
                    email,
                    name: format!("Admin {number}"),
                    password_hash: hash.clone(),
                    operator: false,
                };
                add(tx, workspace, &new, &by)
            };
            (0..number).map(add).collect()
        });
        Ok(Self { workspace, sessions: made.await? })
    }

    /// Returns a token for each, which is valid for five minutes.
    pub fn tokens(&self, pipeline: &Pipeline) -> Result<Vec<String>> {
        let now = pipeline.db.now();
        let issue = |member| pipeline.session_tokens.issue(member, self.workspace, Env::Live, now);
        self.sessions.iter().map(issue).collect()
    }
}

fn add(tx: &mut Tx, workspace: WorkspaceId, new: &NewAccount, by: &Actor) -> Result<MemberSession> {
    let role = MemberRole::Admin;
    let email = new.email.as_str().to_owned();
    let member = NewMember { name: new.name.clone(), email, role, ..NewMember::default() };
    let member = team::add(tx, workspace, member)?.id;
    let account = account::create(tx, new, by)?;
    memberships::join(tx, &account, Place { workspace, member }, role, by)?;
    let (session, _) = sessions::open(tx, &account.id, ADDRESS, "svc-bench")?;
    Ok(MemberSession {
        account: account.id,
        member,
        session: session.id,
        address: ADDRESS,
        authenticated_at: session.authenticated_at,
        role,
        is_operator: false,
    })
}
