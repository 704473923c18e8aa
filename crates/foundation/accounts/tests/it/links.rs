//! One-time links against a naive model.

use crate::bed::{Bed, email};
use accounts::links::{self, NewLink, Place, Purpose};
use accounts::{Actor, Secret};
use model::{Code, MemberId};
use proptest::prelude::*;
use testkit::Kind;

#[derive(Debug, Clone)]
enum Step {
    /// Issues a link of this kind: 0 an invitation of member 1, 1 of member 2, 2 a new password, 3 the first operator.
    Issue(usize),
    Advance(i64),
    /// Looks at a link, or spends it, for a purpose.
    Use {
        place: usize,
        purpose: usize,
        is_spent: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_usize..4).prop_map(Step::Issue),
        prop_oneof![Just(60), Just(1_799), Just(1_800), Just(7 * 86_400 - 1), Just(7 * 86_400)]
            .prop_map(Step::Advance),
        (0_usize..6, 0_usize..3, any::<bool>()).prop_map(|(place, purpose, is_spent)| Step::Use {
            place,
            purpose,
            is_spent
        }),
        (0_usize..6, 0_usize..3, any::<bool>()).prop_map(|(place, purpose, is_spent)| Step::Use {
            place,
            purpose,
            is_spent
        }),
    ];
    prop::collection::vec(step, 1..30)
}

struct Known {
    kind: usize,
    secret: Secret,
    purpose: Purpose,
    expires: i64,
    is_used: bool,
}

impl Known {
    fn expected(&self, purpose: Purpose, now: i64) -> Option<Code> {
        match () {
            () if purpose != self.purpose => Some(Code::NotFound),
            () if self.is_used => Some(Code::LinkUsed),
            () if self.expires <= now => Some(Code::LinkExpired),
            () => None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_link_works_exactly_as_in_the_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bed = Bed::new(Kind::Sqlite);
            let (account, workspace) = (bed.account("marta@example.com").await.id, bed.workspace().await);
            let mut known: Vec<Known> = Vec::new();
            for step in steps {
                let now = bed.db().now().seconds();
                match step {
                    Step::Issue(kind) => {
                        let invited =
                            |id| NewLink::Invitation(Place { workspace, member: MemberId(id) }, email("a@b"));
                        let new = match kind {
                            0 => invited(1),
                            1 => invited(2),
                            2 => NewLink::PasswordReset(account.clone()),
                            _ => NewLink::FirstOperator(None),
                        };
                        let purpose = new.purpose();
                        let secret = bed.write(move |tx| links::issue(tx, &new, &Actor::Service)).await.unwrap();
                        // The link replaces an earlier one for the same person.
                        for other in known.iter_mut().filter(|other| other.kind == kind && kind < 3) {
                            other.is_used = true;
                        }
                        let expires = now + purpose.lifetime_seconds();
                        known.push(Known { kind, secret, purpose, expires, is_used: false });
                    }
                    Step::Advance(seconds) => bed.advance(seconds),
                    Step::Use { place, purpose, is_spent } => {
                        let Some(one) = known.get_mut(place) else { continue };
                        let (secret, purpose) = (one.secret.clone(), Purpose::ALL[purpose]);
                        let expected = one.expected(purpose, now);
                        let used = bed.write(move |tx| match is_spent {
                            true => links::spend(tx, &secret, purpose),
                            false => links::look(tx, &secret, purpose),
                        });
                        assert_eq!(used.await.err().map(|error| error.code()), expected);
                        one.is_used |= is_spent && expected.is_none();
                    }
                }
            }
        });
    }
}

#[testkit::both]
async fn of_many_who_spend_a_link_at_once_one_succeeds(kind: Kind) {
    let bed = Bed::new(kind);
    let other = bed.data.reopen();
    for _ in 0..5 {
        let new = NewLink::FirstOperator(None);
        let secret = bed.write(move |tx| links::issue(tx, &new, &Actor::CommandLine)).await.unwrap();
        let spending: Vec<_> = (0..8)
            .map(|number| {
                let (db, secret) = (if number % 2 == 0 { bed.db() } else { &other }.clone(), secret.clone());
                tokio::spawn(async move {
                    db.write(move |tx| links::spend(tx, &secret, Purpose::FirstOperator)).await
                })
            })
            .collect();
        let mut won = 0;
        for one in spending {
            match one.await.unwrap() {
                Ok(_) => won += 1,
                Err(error) => assert_eq!(error.code(), Code::LinkUsed),
            }
        }
        assert_eq!(won, 1);
    }
}
