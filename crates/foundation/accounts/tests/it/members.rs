//! Members: joining, roles, leaving, invitations.

use crate::bed::{Bed, email};
use accounts::audit;
use accounts::links::{self, NewLink, Place};
use accounts::{Account, Actor, Membership, Secret, memberships};
use auth::keys::{self, NewKey};
use auth::roles;
use model::{Code, Env, KeyId, MemberId, MemberRole, Result, Scope, ScopeSet, WorkspaceId};
use testkit::Kind;

const BY: Actor = Actor::CommandLine;

impl Bed {
    async fn join(&self, account: &Account, place: Place, role: MemberRole) -> Result<Membership> {
        let account = account.clone();
        self.write(move |tx| memberships::join(tx, &account, place, role, &BY)).await
    }

    async fn set_role(&self, place: Place, role: MemberRole) -> Result<Vec<KeyId>> {
        self.write(move |tx| memberships::set_role(tx, place, role, &BY)).await
    }

    async fn leave(&self, place: Place) -> Result<Vec<KeyId>> {
        self.write(move |tx| memberships::leave(tx, place, &BY)).await
    }

    async fn invite(&self, place: Place) -> Secret {
        let new = NewLink::Invitation(place, email("eva@example.com"));
        self.write(move |tx| links::issue(tx, &new, &BY)).await.unwrap()
    }

    async fn accept(&self, code: &Secret, account: &Account, role: MemberRole) -> Result<Membership> {
        let (code, id) = (code.clone(), account.id.clone());
        self.write(move |tx| memberships::accept(tx, &code, &id, &BY, |_, _| Ok(role))).await
    }

    /// Returns the scopes of a key, and whether it works.
    async fn key(&self, id: &KeyId) -> (ScopeSet, bool) {
        let id = id.clone();
        let key = self.db().read(move |read| keys::by_id(read, &id)).await.unwrap();
        (key.key.scopes, key.revoked_at.is_none())
    }

    /// Authorizes an app.
    async fn grant(&self, place: Place) -> KeyId {
        let new = NewKey::of_workspace("App", place.workspace, Env::Live, vec![Scope::ContactsRead]);
        let made = self.write(move |tx| keys::create_for_grant(tx, new.clone(), place.member)).await;
        made.unwrap().key.id
    }

    async fn actions(&self, workspace: WorkspaceId) -> Vec<String> {
        let recent = self.db().read(move |read| audit::recent(read, Some(workspace), 50)).await.unwrap();
        // All of one moment: the clock stands still.
        let mut actions: Vec<String> = recent.into_iter().map(|entry| entry.action).collect();
        actions.sort();
        actions
    }
}

#[testkit::both]
async fn a_role_is_that_of_both_keys_and_fewer_rights_end_apps(kind: Kind) {
    let bed = Bed::new(kind);
    let (marta, eva) = (bed.account("marta@example.com").await, bed.account("eva@example.com").await);
    let workspace = bed.workspace().await;
    let [owner, admin] = [1, 2].map(|id| Place { workspace, member: MemberId(id) });
    bed.join(&marta, owner, MemberRole::Owner).await.unwrap();
    let joined = bed.join(&eva, admin, MemberRole::Manager).await.unwrap();
    let grant = bed.grant(admin).await;
    for id in [&joined.live_key, &joined.test_key] {
        assert_eq!(bed.key(id).await, (roles::scopes(MemberRole::Manager), true));
    }
    assert_eq!(bed.set_role(admin, MemberRole::Admin).await.unwrap(), []);
    assert_eq!(bed.set_role(admin, MemberRole::Admin).await.unwrap(), []);
    assert!(bed.key(&grant).await.1);
    assert_eq!(bed.set_role(admin, MemberRole::Viewer).await.unwrap(), std::slice::from_ref(&grant));
    assert!(!bed.key(&grant).await.1);
    for id in [&joined.live_key, &joined.test_key] {
        assert_eq!(bed.key(id).await, (roles::scopes(MemberRole::Viewer), true));
    }
    let id = eva.id.clone();
    let found = bed.db().read(move |read| memberships::in_workspace(read, &id, workspace)).await.unwrap();
    assert_eq!((found.role, found.member), (MemberRole::Viewer, admin.member));
    let expected = ["member.joined", "member.joined", "member.role_set", "member.role_set"];
    assert_eq!(bed.actions(workspace).await, expected);
}

#[testkit::both]
async fn who_leaves_has_no_key_no_app_and_no_invitation(kind: Kind) {
    let bed = Bed::new(kind);
    let (marta, eva) = (bed.account("marta@example.com").await, bed.account("eva@example.com").await);
    let workspace = bed.workspace().await;
    let [owner, agent, invited] = [1, 2, 3].map(|id| Place { workspace, member: MemberId(id) });
    bed.join(&marta, owner, MemberRole::Owner).await.unwrap();
    let joined = bed.join(&eva, agent, MemberRole::Admin).await.unwrap();
    let (grant, code) = (bed.grant(agent).await, bed.invite(invited).await);
    assert_eq!(bed.leave(agent).await.unwrap(), std::slice::from_ref(&grant));
    for id in [&joined.live_key, &joined.test_key, &grant] {
        assert!(!bed.key(id).await.1);
    }
    let id = eva.id.clone();
    let gone = bed.db().read(move |read| memberships::in_workspace(read, &id, workspace)).await.unwrap_err();
    assert_eq!(gone.code(), Code::WorkspaceNotFound);
    assert_eq!(bed.leave(invited).await.unwrap(), []);
    let late = bed.accept(&code, &eva, MemberRole::Agent).await.unwrap_err();
    assert_eq!(late.code(), Code::LinkUsed);
    // The account can come back, as another member.
    bed.join(&eva, invited, MemberRole::Agent).await.unwrap();
}

#[testkit::both]
async fn the_last_owner_who_can_sign_in_stays(kind: Kind) {
    let bed = Bed::new(kind);
    let (marta, eva) = (bed.account("marta@example.com").await, bed.account("eva@example.com").await);
    let workspace = bed.workspace().await;
    let [first, second] = [1, 2].map(|id| Place { workspace, member: MemberId(id) });
    bed.join(&marta, first, MemberRole::Owner).await.unwrap();
    for refused in [bed.leave(first).await, bed.set_role(first, MemberRole::Admin).await] {
        assert_eq!(refused.unwrap_err().code(), Code::InvalidState);
    }
    bed.join(&eva, second, MemberRole::Owner).await.unwrap();
    // Both remove each other at once. One of them stays.
    let (one, two) = tokio::join!(bed.leave(first), bed.leave(second));
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
    assert_eq!(one.err().or(two.err()).unwrap().code(), Code::InvalidState);
    // An owner of another workspace, or one who is disabled, is none here.
    let elsewhere = Place { workspace: bed.workspace().await, member: MemberId(9) };
    let (here, account) = match bed.db().read(move |read| memberships::of_member(read, first)).await.unwrap()
    {
        Some(_) => (first, eva),
        None => (second, marta),
    };
    bed.join(&account, elsewhere, MemberRole::Owner).await.unwrap();
    let back = Place { workspace, member: MemberId(4) };
    bed.join(&account, back, MemberRole::Owner).await.unwrap();
    bed.write(move |tx| accounts::account::disable(tx, &account.id, &BY)).await.unwrap();
    assert_eq!(bed.leave(here).await.unwrap_err().code(), Code::InvalidState);
}

#[testkit::both]
async fn an_invitation_works_once_for_one_account(kind: Kind) {
    let bed = Bed::new(kind);
    let (marta, eva) = (bed.account("marta@example.com").await, bed.account("eva@example.com").await);
    let place = Place { workspace: bed.workspace().await, member: MemberId(1) };
    let code = bed.invite(place).await;
    bed.advance(7 * 24 * 3_600 - 1);
    let (one, two) = tokio::join!(
        bed.accept(&code, &marta, MemberRole::Agent),
        bed.accept(&code, &eva, MemberRole::Agent)
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
    assert_eq!(one.err().or(two.err()).unwrap().code(), Code::LinkUsed);
    // Who is a member already keeps what it has, and the link of the other member stays.
    let other = Place { member: MemberId(2), ..place };
    let code = bed.invite(other).await;
    let winner = bed.db().read(move |read| memberships::of_member(read, place)).await.unwrap().unwrap();
    let (again, free) = if winner.account == marta.id { (&marta, &eva) } else { (&eva, &marta) };
    let refused = bed.accept(&code, again, MemberRole::Owner).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidState);
    bed.accept(&code, free, MemberRole::Viewer).await.unwrap();
    // A member has one account.
    let code = bed.invite(other).await;
    let third = bed.account("third@example.com").await;
    assert_eq!(bed.accept(&code, &third, MemberRole::Viewer).await.unwrap_err().code(), Code::InvalidState);
}
