//! The first operator: one link, one account, also on two replicas.

use crate::bed::{Bed, PASSWORD, email};
use accounts::links::{self, NewLink, Place};
use accounts::{Account, Actor, Secret, account, first_operator, memberships};
use auth::keys;
use model::{Code, MemberId, MemberRole, Result};
use store::Db;
use testkit::Kind;

impl Bed {
    async fn start(&self, place: Option<Place>) -> Option<Secret> {
        self.write(move |tx| first_operator::issue_at_start(tx, place)).await.unwrap()
    }

    async fn operators(&self) -> Vec<Account> {
        self.db().read(account::operators).await.unwrap()
    }

    async fn create(&self, db: &Db, code: &Secret, address: &str) -> Result<Account> {
        let (code, email, hash) = (code.clone(), email(address), self.hash(PASSWORD).await);
        db.write(move |tx| first_operator::create(tx, &code, &email, "Marta Ruiz", &hash, None)).await
    }
}

#[testkit::both]
async fn a_link_creates_one_operator_and_looking_at_it_changes_nothing(kind: Kind) {
    let bed = Bed::new(kind);
    let other = bed.data.reopen();
    let code = bed.start(None).await.unwrap();
    for _ in 0..3 {
        let code = code.clone();
        bed.db().read(move |read| first_operator::look(read, &code)).await.unwrap();
    }
    let (one, two) = tokio::join!(
        bed.create(bed.db(), &code, "marta@example.com"),
        bed.create(&other, &code, "mallory@example.com")
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
    assert_eq!(bed.operators().await.len(), 1);
    assert_eq!(one.err().or(two.err()).unwrap().code(), Code::LinkUsed);
    let winner = bed.operators().await[0].email.clone();
    assert!(bed.signed_in(&winner).await.account.operator);
    assert_eq!(bed.start(None).await, None);
}

#[testkit::both]
async fn of_the_links_of_two_replicas_one_creates_an_operator(kind: Kind) {
    let bed = Bed::new(kind);
    let other = bed.data.reopen();
    let (here, there) = (bed.start(None).await.unwrap(), bed.start(None).await.unwrap());
    let (one, two) = tokio::join!(
        bed.create(bed.db(), &here, "marta@example.com"),
        bed.create(&other, &there, "mallory@example.com")
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
    assert_eq!(bed.operators().await.len(), 1);
    // Whoever has the machine can add another one.
    let new = NewLink::FirstOperator(None);
    let code = bed.write(move |tx| links::issue(tx, &new, &Actor::CommandLine)).await.unwrap();
    bed.create(bed.db(), &code, "eva@example.com").await.unwrap();
    assert_eq!(bed.operators().await.len(), 2);
}

#[testkit::both]
async fn what_is_refused_leaves_the_link_and_nothing_else(kind: Kind) {
    let bed = Bed::new(kind);
    bed.account("eva@example.com").await;
    let code = bed.start(None).await.unwrap();
    let taken = bed.create(bed.db(), &code, "Eva@example.com").await.unwrap_err();
    assert_eq!((taken.code(), taken.param_name()), (Code::DuplicateValue, Some("email")));
    assert!(bed.operators().await.is_empty());
    bed.create(bed.db(), &code, "marta@example.com").await.unwrap();
    let late = bed.start(None).await;
    assert_eq!(late, None);
    let unknown = Secret::parse(&"A".repeat(43)).unwrap();
    let refused = bed.create(bed.db(), &unknown, "x@example.com").await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
}

#[testkit::both]
async fn the_link_of_the_demo_ends_in_its_workspace_as_owner(kind: Kind) {
    let bed = Bed::new(kind);
    let place = Place { workspace: bed.workspace().await, member: MemberId(1) };
    let code = bed.start(Some(place)).await.unwrap();
    let account = bed.create(bed.db(), &code, "marta@example.com").await.unwrap();
    let id = account.id.clone();
    let [membership] =
        bed.db().read(move |read| memberships::of_account(read, &id)).await.unwrap().try_into().unwrap();
    assert_eq!((membership.workspace, membership.member), (place.workspace, place.member));
    assert_eq!(membership.role, MemberRole::Owner);
    for (id, env) in [(membership.live_key, "live"), (membership.test_key, "test")] {
        let key = bed.db().read(move |read| keys::by_id(read, &id)).await.unwrap();
        assert_eq!((key.key.env.as_str(), key.member), (env, Some(place.member)));
    }
}
