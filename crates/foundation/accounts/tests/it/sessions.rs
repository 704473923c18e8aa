//! Sessions against a naive model, and the job that deletes them.

use crate::bed::{Bed, address};
use accounts::sessions::{self, IDLE_SECONDS, LIFETIME_SECONDS};
use accounts::{Account, Actor, Secret, account};
use jobs::Runner;
use model::SessionId;
use proptest::prelude::*;
use testkit::Kind;

/// What happens to one of the sessions of an account.
#[derive(Debug, Clone)]
enum Step {
    Open,
    Advance(i64),
    Touch(usize),
    Rotate(usize),
    Revoke(usize),
    RevokeOthers(usize),
}

/// A session as the model knows it.
struct Known {
    id: SessionId,
    secrets: Vec<Secret>,
    seen: i64,
    ends: i64,
    revoked: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Open),
        3 => prop_oneof![Just(30), Just(60), Just(3_600), Just(IDLE_SECONDS - 1), Just(IDLE_SECONDS), Just(5 * 86_400)]
            .prop_map(Step::Advance),
        3 => (0_usize..4).prop_map(Step::Touch),
        2 => (0_usize..4).prop_map(Step::Rotate),
        1 => (0_usize..4).prop_map(Step::Revoke),
        1 => (0_usize..4).prop_map(Step::RevokeOthers),
    ];
    prop::collection::vec(step, 1..25)
}

impl Known {
    fn is_open(&self, now: i64) -> bool {
        !self.revoked && now < self.ends && now < self.seen + IDLE_SECONDS
    }
}

async fn step(bed: &Bed, account: &Account, known: &mut Vec<Known>, step: &Step) {
    let (now, owner) = (bed.db().now().seconds(), account.id.clone());
    match *step {
        Step::Open => {
            let (session, secret) =
                bed.write(move |tx| sessions::open(tx, &owner, address(1), "Firefox")).await.unwrap();
            let ends = now + LIFETIME_SECONDS;
            known.push(Known { id: session.id, secrets: vec![secret], seen: now, ends, revoked: false });
        }
        Step::Advance(seconds) => bed.advance(seconds),
        Step::Touch(place) => {
            let Some(one) = known.get_mut(place) else { return };
            // Pages touch open sessions only.
            if one.is_open(now) {
                let id = one.id.clone();
                bed.write(move |tx| sessions::touch(tx, &id)).await.unwrap();
                if now >= one.seen + 60 {
                    one.seen = now;
                }
            }
        }
        Step::Rotate(place) => {
            let Some(one) = known.get_mut(place) else { return };
            let id = one.id.clone();
            let rotated = bed.write(move |tx| sessions::rotate(tx, &id)).await;
            assert_eq!(rotated.is_ok(), one.is_open(now));
            if let Ok(secret) = rotated {
                one.secrets.push(secret);
                one.seen = now;
            }
        }
        Step::Revoke(place) => {
            let Some(one) = known.get_mut(place) else { return };
            let id = one.id.clone();
            bed.write(move |tx| sessions::revoke(tx, &owner, &id)).await.unwrap();
            one.revoked = true;
        }
        Step::RevokeOthers(place) => {
            let Some(kept) = known.get(place).map(|one| one.id.clone()) else { return };
            let id = kept.clone();
            bed.write(move |tx| sessions::revoke_others(tx, &owner, &id)).await.unwrap();
            for other in known.iter_mut().filter(|other| other.id != kept) {
                other.revoked = true;
            }
        }
    }
}

async fn check(bed: &Bed, known: &[Known]) {
    let now = bed.db().now().seconds();
    for one in known {
        for (place, secret) in one.secrets.iter().enumerate() {
            let found = bed.find(secret).await;
            let is_newest = place + 1 == one.secrets.len();
            assert_eq!(found.map(|found| found.id), (one.is_open(now) && is_newest).then(|| one.id.clone()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_session_is_open_exactly_as_in_the_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bed = Bed::new(Kind::Sqlite);
            let account = bed.account("marta@example.com").await;
            let mut known = Vec::new();
            for one in &steps {
                step(&bed, &account, &mut known, one).await;
                check(&bed, &known).await;
            }
        });
    }
}

#[testkit::both]
async fn a_disabled_account_has_no_session_and_others_cannot_end_mine(kind: Kind) {
    let bed = Bed::new(kind);
    let (marta, eva) = (bed.account("marta@example.com").await, bed.account("eva@example.com").await);
    let mine = bed.signed_in("marta@example.com").await;
    let (id, other) = (mine.session.id.clone(), eva.id.clone());
    let foreign = bed.write(move |tx| sessions::revoke(tx, &other, &id)).await.unwrap_err();
    assert_eq!(foreign.message(), "The session does not exist in this workspace.");
    let (id, disabled) = (marta.id.clone(), marta.id);
    assert!(bed.find(&mine.secret).await.is_some());
    bed.write(move |tx| account::disable(tx, &disabled, &Actor::CommandLine)).await.unwrap();
    assert!(bed.find(&mine.secret).await.is_none());
    // The sessions of before stay ended.
    bed.write(move |tx| account::enable(tx, &id, &Actor::CommandLine)).await.unwrap();
    assert!(bed.find(&mine.secret).await.is_none());
}

#[testkit::both]
async fn what_is_over_is_deleted(kind: Kind) {
    let bed = Bed::new(kind);
    let account = bed.account("marta@example.com").await;
    bed.signed_in("marta@example.com").await;
    let new = accounts::links::NewLink::PasswordReset(account.id.clone());
    bed.write(move |tx| accounts::links::issue(tx, &new, &Actor::CommandLine)).await.unwrap();
    let _ = bed.attempt("nobody@example.com", "wrong horse battery").await;
    let counts = || {
        bed.db().read(|read| {
            use accounts::schema::{one_time_links, sessions, sign_in_failures};
            use diesel::{QueryDsl, RunQueryDsl};
            let links: i64 = one_time_links::table.count().get_result(read.connection())?;
            let sessions: i64 = sessions::table.count().get_result(read.connection())?;
            let failures: i64 = sign_in_failures::table.count().get_result(read.connection())?;
            Ok([sessions, links, failures])
        })
    };
    let runner = Runner::new(bed.db().clone()).with(accounts::jobs());
    let purge = async || {
        while runner.run_due().await.unwrap() > 0 {}
    };
    purge().await;
    assert_eq!(counts().await.unwrap(), [1, 1, 1]);
    bed.advance(24 * 3_600);
    purge().await;
    assert_eq!(counts().await.unwrap(), [1, 1, 0]);
    bed.advance(7 * 24 * 3_600);
    purge().await;
    assert_eq!(counts().await.unwrap(), [1, 0, 0]);
    bed.advance(LIFETIME_SECONDS);
    purge().await;
    assert_eq!(counts().await.unwrap(), [0, 0, 0]);
}
