//! Guessing passwords: what strangers cannot do, and what the owner of an account always can.

use crate::bed::{Bed, PASSWORD, address};
use accounts::Actor;
use accounts::account;
use model::Code;
use testkit::Kind;

const WRONG: &str = "wrong horse battery";

/// How an attempt is answered.
async fn answer(bed: &Bed, email: &str, password: &str) -> (Code, String, Option<i64>) {
    let error = bed.attempt(email, password).await.unwrap_err();
    (error.code(), error.message().to_owned(), error.retry_after_seconds())
}

#[testkit::both]
async fn unknown_disabled_and_wrong_are_answered_alike(kind: Kind) {
    let bed = Bed::new(kind);
    bed.account("marta@example.com").await;
    let out = bed.account("out@example.com").await.id;
    bed.write(move |tx| account::disable(tx, &out, &Actor::CommandLine)).await.unwrap();
    let expected = (Code::ValidationError, "The e-mail address or the password is wrong.".to_owned(), None);
    for (email, password) in [
        ("marta@example.com", WRONG),
        ("nobody@example.com", PASSWORD),
        ("out@example.com", PASSWORD),
        ("no address", PASSWORD),
        ("marta@example.com", ""),
        ("marta@example.com", &"x".repeat(1 << 20)),
    ] {
        assert_eq!(answer(&bed, email, password).await, expected, "{email}");
    }
    // The same number of attempts is free for all of them.
    for email in ["nobody@example.com", "out@example.com"] {
        for _ in 0..4 {
            assert_eq!(answer(&bed, email, PASSWORD).await, expected, "{email}");
        }
        assert_eq!(answer(&bed, email, PASSWORD).await.0, Code::RateLimited, "{email}");
    }
}

#[testkit::both]
async fn after_five_failures_the_wait_doubles_up_to_a_minute_and_never_locks_out(kind: Kind) {
    let bed = Bed::new(kind);
    bed.account("marta@example.com").await;
    for _ in 0..5 {
        assert_eq!(answer(&bed, "marta@example.com", WRONG).await.0, Code::ValidationError);
    }
    for wait in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
        // Also the right password is refused, so that it takes no computation to refuse it.
        let (code, _, retry) = answer(&bed, "marta@example.com", PASSWORD).await;
        assert_eq!((code, retry), (Code::RateLimited, Some(wait)));
        bed.advance(wait - 1);
        assert_eq!(answer(&bed, "marta@example.com", WRONG).await.2, Some(1));
        bed.advance(1);
        assert_eq!(answer(&bed, "Marta@Example.com", WRONG).await.0, Code::ValidationError);
    }
    bed.advance(60);
    bed.signed_in("marta@example.com").await;
    // The count begins again.
    for _ in 0..5 {
        assert_eq!(answer(&bed, "marta@example.com", WRONG).await.0, Code::ValidationError);
    }
    bed.advance(24 * 3_600);
    for _ in 0..5 {
        assert_eq!(answer(&bed, "marta@example.com", WRONG).await.0, Code::ValidationError);
    }
}

#[testkit::both]
async fn attempts_at_once_on_two_replicas_are_counted_together(kind: Kind) {
    let bed = Bed::new(kind);
    bed.account("marta@example.com").await;
    let other = bed.replica();
    let attempts: Vec<_> = (0..20)
        .map(|number| {
            let service = if number % 2 == 0 { bed.sign_in.clone() } else { other.clone() };
            tokio::spawn(async move {
                let tried = service.attempt("marta@example.com", WRONG.into(), None, address(number), "");
                tried.await.unwrap_err().code()
            })
        })
        .collect();
    let mut compared = 0;
    for attempt in attempts {
        compared += usize::from(attempt.await.unwrap() == Code::ValidationError);
    }
    assert_eq!(compared, 5);
}

#[testkit::both]
async fn strangers_do_not_keep_the_owner_waiting_in_her_browser(kind: Kind) {
    let bed = Bed::new(kind);
    bed.account("marta@example.com").await;
    bed.account("mallory@example.com").await;
    let device = bed.signed_in("marta@example.com").await.device;
    let foreign = bed.signed_in("mallory@example.com").await.device;
    let attempt = |password: &str, device: &str, from| {
        let (password, device, service) = (password.to_owned(), device.to_owned(), bed.sign_in.clone());
        async move {
            service.attempt("marta@example.com", password, Some(&device), address(from), "Firefox").await
        }
    };
    // From many addresses, with no cookie of hers: forged ones and those of other accounts share one counter.
    for number in 0..40 {
        let cookie = if number % 2 == 0 { foreign.clone() } else { format!("{device}A") };
        let code = attempt(WRONG, &cookie, number).await.unwrap_err().code();
        let expected = if number < 5 { Code::ValidationError } else { Code::RateLimited };
        assert_eq!(code, expected, "{number}");
    }
    assert_eq!(attempt(PASSWORD, &device, 99).await.unwrap().device, device);
    // Her own browser is limited, too.
    for _ in 0..5 {
        assert_eq!(attempt(WRONG, &device, 99).await.unwrap_err().code(), Code::ValidationError);
    }
    assert_eq!(attempt(PASSWORD, &device, 99).await.unwrap_err().retry_after_seconds(), Some(1));
    bed.advance(1);
    attempt(PASSWORD, &device, 99).await.unwrap();
}

#[testkit::both]
async fn an_address_has_three_hundred_attempts_a_minute(kind: Kind) {
    let bed = Bed::new(kind);
    bed.account("marta@example.com").await;
    for number in 0..300 {
        // Too long to be a password, so nothing is computed.
        let password = "x".repeat(300);
        let email = format!("nobody{number}@example.com");
        let tried = bed.sign_in.attempt(&email, password, None, address(7), "").await;
        assert_eq!(tried.unwrap_err().code(), Code::ValidationError, "{number}");
    }
    let tried = bed.sign_in.attempt("marta@example.com", PASSWORD.into(), None, address(7), "");
    let error = tried.await.unwrap_err();
    assert_eq!((error.code(), error.retry_after_seconds()), (Code::RateLimited, Some(60)));
    bed.sign_in.attempt("marta@example.com", PASSWORD.into(), None, address(8), "").await.unwrap();
    bed.advance(60);
    bed.sign_in.attempt("marta@example.com", PASSWORD.into(), None, address(7), "").await.unwrap();
}
