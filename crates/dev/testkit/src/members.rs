//! Members of teams who have signed in.

use crate::{Key, TestApp};
use accounts::schema::{accounts as people, memberships, sessions};
use auth::keys::create_for_member;
use business::team::{self, NewMember};
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::{AccountId, Env, KeyId, MemberRole, MemberSession, SessionId, WorkspaceId};
use std::net::Ipv4Addr;
use store::Tx;

/// A member of a team with an account and an open session.
#[derive(Debug, Clone)]
pub struct Member {
    /// The session, the account and the member.
    pub session: MemberSession,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The member's keys, live and test.
    pub keys: [KeyId; 2],
}

impl Member {
    /// The id of the member as text, as actors have it.
    pub fn id(&self) -> String {
        self.session.member.to_string()
    }
}

impl TestApp {
    /// Adds a member with this role to the team of a workspace, with an account that signs in now.
    pub async fn member(&self, workspace: WorkspaceId, role: MemberRole) -> Member {
        self.db().write(move |tx| made(tx, workspace, role)).await.unwrap()
    }

    /// Makes the account of a member an operator of the installation.
    pub async fn make_operator(&self, member: &Member) {
        let account = &member.session.account;
        self.sql(format!("UPDATE accounts SET operator = TRUE WHERE id = '{account}'")).await;
        self.service.pipeline.session_tokens.forget();
    }

    /// Issues a token for a member, to be sent like the secret of a key. It is valid for five minutes.
    pub fn token(&self, member: &Member, env: Env) -> Key {
        let (tokens, now) = (&self.service.pipeline.session_tokens, self.db().now());
        let secret = tokens.issue(&member.session, member.workspace, env, now).unwrap();
        let id = member.keys[usize::from(env == Env::Test)].clone();
        Key { secret, id, workspace: member.workspace }
    }

    /// Issues a token for a member who signs in again first.
    pub async fn fresh_token(&self, member: &Member, env: Env) -> Key {
        let id = member.session.session.clone();
        let signed_in = self.db().write(move |tx| {
            let now = tx.now();
            diesel::update(sessions::table.find(&id))
                .set((sessions::authenticated_at.eq(now), sessions::last_seen_at.eq(now)))
                .execute(tx.connection())?;
            Ok(now)
        });
        let authenticated_at = signed_in.await.unwrap();
        self.service.pipeline.session_tokens.forget();
        let session = MemberSession { authenticated_at, ..member.session.clone() };
        self.token(&Member { session, ..member.clone() }, env)
    }
}

fn made(tx: &mut Tx, workspace: WorkspaceId, role: MemberRole) -> model::Result<Member> {
    let (now, random) = (tx.now(), tx.random());
    let account = AccountId::new(now, &*random);
    let email = format!("{account}@example.com");
    let new = NewMember { name: "Carla".to_owned(), email: email.clone(), role, ..NewMember::default() };
    let member = team::add(tx, workspace, new)?.id;
    let mut key = |env| -> model::Result<KeyId> {
        Ok(create_for_member(tx, "Carla".to_owned(), workspace, env, member, role)?.key.id)
    };
    let keys = [key(Env::Live)?, key(Env::Test)?];
    diesel::insert_into(people::table)
        .values((
            (people::id.eq(&account), people::email.eq(&email), people::email_key.eq(&email)),
            (people::name.eq("Carla"), people::operator.eq(false)),
            (people::created_at.eq(now), people::updated_at.eq(now)),
        ))
        .execute(tx.connection())?;
    diesel::insert_into(memberships::table)
        .values((
            (memberships::account_id.eq(&account), memberships::workspace_id.eq(workspace)),
            (memberships::member_id.eq(member), memberships::created_at.eq(now)),
            (memberships::live_key_id.eq(&keys[0]), memberships::test_key_id.eq(&keys[1])),
        ))
        .execute(tx.connection())?;
    let session = SessionId::new(now, &*random);
    diesel::insert_into(sessions::table)
        .values((
            (sessions::id.eq(&session), sessions::secret_hash.eq(session.as_str().as_bytes().to_vec())),
            (sessions::account_id.eq(&account), sessions::created_at.eq(now)),
            (sessions::authenticated_at.eq(now), sessions::last_seen_at.eq(now)),
            sessions::ends_at.eq(now.plus_seconds(30 * 86_400)),
            (sessions::address.eq("127.0.0.1"), sessions::user_agent.eq("test")),
        ))
        .execute(tx.connection())?;
    let session = MemberSession {
        account,
        member,
        session,
        address: Ipv4Addr::LOCALHOST.into(),
        authenticated_at: now,
        role,
        is_operator: false,
    };
    Ok(Member { session, workspace, keys })
}
