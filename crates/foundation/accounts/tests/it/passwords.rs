//! Changing and resetting passwords, and proving again who one is.

use crate::bed::{Bed, PASSWORD, address};
use accounts::links::{self, NewLink, Purpose};
use accounts::{Account, Actor, Secret, sessions};
use model::{Code, Result};
use testkit::Kind;

const NEW: &str = "a brand new sentence";

impl Bed {
    async fn is_open(&self, secret: &Secret) -> bool {
        self.find(secret).await.is_some()
    }

    async fn reset_link(&self, account: &Account) -> Secret {
        let new = NewLink::PasswordReset(account.id.clone());
        self.write(move |tx| links::issue(tx, &new, &Actor::CommandLine)).await.unwrap()
    }

    async fn reset(&self, link: &Secret, password: &str) -> Result<Account> {
        self.sign_in.reset_password(link, password.to_owned(), address(1)).await
    }
}

#[testkit::both]
async fn a_new_password_ends_all_other_sessions_and_links(kind: Kind) {
    let bed = Bed::new(kind);
    let account = bed.account("marta@example.com").await;
    let (here, there) = (bed.signed_in("marta@example.com").await, bed.signed_in("marta@example.com").await);
    let link = bed.reset_link(&account).await;
    let change = |current: &str, new: &str| {
        let (id, service) = (here.session.id.clone(), bed.sign_in.clone());
        let (current, new) = (current.to_owned(), new.to_owned());
        async move { service.change_password(&id, current, new, address(1)).await }
    };
    let refused = change(PASSWORD, "short").await.unwrap_err();
    assert_eq!(refused.message(), "`password` must have 10 to 256 bytes");
    let refused = change("wrong horse battery", NEW).await.unwrap_err();
    assert_eq!(refused.message(), "The e-mail address or the password is wrong.");
    assert!(bed.is_open(&here.secret).await && bed.is_open(&there.secret).await);

    let secret = change(PASSWORD, NEW).await.unwrap();
    assert!(bed.is_open(&secret).await);
    assert!(!bed.is_open(&here.secret).await && !bed.is_open(&there.secret).await);
    assert_eq!(bed.reset(&link, NEW).await.unwrap_err().code(), Code::LinkUsed);
    assert_eq!(bed.attempt("marta@example.com", PASSWORD).await.unwrap_err().code(), Code::ValidationError);
    bed.attempt("marta@example.com", NEW).await.unwrap();
}

#[testkit::both]
async fn a_link_for_a_new_password_works_once_and_ends_all_sessions(kind: Kind) {
    let bed = Bed::new(kind);
    let account = bed.account("marta@example.com").await;
    let session = bed.signed_in("marta@example.com").await;
    let first = bed.reset_link(&account).await;
    let link = bed.reset_link(&account).await;
    // The newer link has replaced the older one.
    assert_eq!(bed.reset(&first, NEW).await.unwrap_err().code(), Code::LinkUsed);
    // A password that is refused leaves the link as it was.
    assert_eq!(bed.reset(&link, "password123").await.unwrap_err().code(), Code::ValidationError);
    let (one, two) = tokio::join!(bed.reset(&link, NEW), bed.reset(&link, "another new sentence"));
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
    let lost = one.err().or(two.err()).unwrap();
    assert_eq!(lost.code(), Code::LinkUsed);
    assert!(!bed.is_open(&session.secret).await);

    let late = bed.reset_link(&account).await;
    bed.advance(Purpose::PasswordReset.lifetime_seconds());
    assert_eq!(bed.reset(&late, NEW).await.unwrap_err().code(), Code::LinkExpired);
    let unknown = Secret::parse(&"A".repeat(43)).unwrap();
    assert_eq!(bed.reset(&unknown, NEW).await.unwrap_err().code(), Code::NotFound);
}

#[testkit::both]
async fn a_sign_in_with_the_old_password_does_not_outlive_its_change(kind: Kind) {
    let bed = Bed::new(kind);
    let account = bed.account("marta@example.com").await;
    let mut password = PASSWORD.to_owned();
    for round in 0..6 {
        let here = bed.attempt("marta@example.com", &password).await.unwrap();
        let next = format!("sentence number {round}");
        let change =
            bed.sign_in.change_password(&here.session.id, password.clone(), next.clone(), address(1));
        let (changed, _) = tokio::join!(change, bed.attempt("marta@example.com", &password));
        let id = account.id.clone();
        let open = bed.db().read(move |read| sessions::of_account(read, &id)).await.unwrap();
        assert_eq!(open.iter().map(|session| &session.id).collect::<Vec<_>>(), [&here.session.id]);
        changed.unwrap();
        password = next;
    }
}

#[testkit::both]
async fn a_session_gets_a_new_secret_when_the_account_proves_again_who_it_is(kind: Kind) {
    let bed = Bed::new(kind);
    bed.account("marta@example.com").await;
    let signed_in = bed.signed_in("marta@example.com").await;
    let id = signed_in.session.id.clone();
    bed.advance(600);
    let step_up = |password: &str| {
        let (id, service, password) = (id.clone(), bed.sign_in.clone(), password.to_owned());
        async move { service.step_up(&id, password, address(1)).await }
    };
    assert!(!bed.find(&signed_in.secret).await.unwrap().is_recent(bed.db().now()));
    let secret = step_up(PASSWORD).await.unwrap();
    let renewed = bed.find(&secret).await.unwrap();
    assert!(renewed.is_recent(bed.db().now()));
    assert_eq!((renewed.id, renewed.ends_at), (id.clone(), signed_in.session.ends_at));
    assert!(bed.find(&signed_in.secret).await.is_none());
    // Whoever has the session cannot guess the password with it. Others who guess do not keep the session waiting.
    for _ in 0..8 {
        let _ = bed.attempt("marta@example.com", "wrong horse battery").await;
    }
    for _ in 0..5 {
        assert_eq!(step_up("wrong horse battery").await.unwrap_err().code(), Code::ValidationError);
    }
    assert_eq!(step_up(PASSWORD).await.unwrap_err().code(), Code::RateLimited);
    assert!(bed.find(&secret).await.is_some());
}
