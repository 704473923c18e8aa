//! Ten thousand wrong passwords, from one address and from many, while the owner signs in.

use crate::browser::{Browser, form};
use crate::people::{PASSWORD, account};
use chrono::Duration;
use std::net::Ipv4Addr;
use testkit::{Kind, TestApp};

const EVA: &str = "eva@example.com";
const ATTEMPTS: usize = 10_000;

/// A browser in which the owner has signed in before.
async fn known_browser(app: &TestApp, address: Ipv4Addr) -> Browser {
    let mut browser = Browser::at(app, address);
    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    browser.fill("/account", "/sign-out", &[]).await.expect_redirect("/sign-in");
    assert!(browser.cookies.contains_key("__Host-svc_device"));
    browser
}

/// Tries wrong passwords from these addresses in turn. The clock goes on by `pause` after each. Returns how many were
/// compared.
async fn guess(
    app: &TestApp,
    addresses: &[Ipv4Addr],
    pause: Duration,
    mut owner: impl AsyncFnMut(usize),
) -> usize {
    let mut guessers = Vec::new();
    for address in addresses {
        let mut browser = Browser::at(app, *address);
        let token = browser.get("/sign-in").await.token().unwrap().to_owned();
        let stream = browser.connect().await;
        guessers.push((browser, stream, token));
    }
    let mut compared = 0;
    for number in 0..ATTEMPTS {
        let place = number % guessers.len();
        let (browser, stream, token) = &mut guessers[place];
        let body =
            form(&[("email", EVA), ("password", &format!("wrong password {number}")), ("form_token", token)]);
        let request = ("POST", "/sign-in");
        let page =
            browser.send_on(stream, request, "application/x-www-form-urlencoded", body.as_bytes()).await;
        match page.status {
            400 => compared += 1,
            429 => {
                let wait: i64 = page.header("retry-after").unwrap().parse().unwrap();
                assert!((1..=60).contains(&wait), "{wait}");
            }
            other => panic!("{other}: {}", page.text),
        }
        app.data.clock.advance(pause);
        owner(number).await;
    }
    compared
}

#[testkit::both]
async fn ten_thousand_wrong_passwords_from_one_address(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mut eva = known_browser(&app, Ipv4Addr::new(127, 0, 0, 9)).await;
    let compared = guess(&app, &[Ipv4Addr::LOCALHOST], Duration::milliseconds(20), async |number| {
        if number % 2_500 == 1_000 {
            eva.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
            eva.fill("/account", "/sign-out", &[]).await.expect_redirect("/sign-in");
        }
    });
    // In 200 seconds: five at once, then after 1, 2, 4, 8, 16, 32, 60 and 60 seconds.
    let compared = compared.await;
    assert!((8..=14).contains(&compared), "{compared}");
}

#[testkit::both]
async fn ten_thousand_wrong_passwords_from_many_addresses(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mut eva = known_browser(&app, Ipv4Addr::new(127, 0, 0, 9)).await;
    let mut new_browser = Browser::at(&app, Ipv4Addr::new(127, 0, 0, 10));
    let addresses: Vec<Ipv4Addr> = (0..100).map(|last| Ipv4Addr::new(127, 0, 1, last + 1)).collect();
    let compared = guess(&app, &addresses, Duration::milliseconds(20), async |number| {
        if number % 2_500 == 1_000 {
            eva.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
            eva.fill("/account", "/sign-out", &[]).await.expect_redirect("/sign-in");
        }
        if number == 5_000 {
            // A browser that she has never used waits with everybody else, for at most a minute.
            let page = new_browser.sign_in(EVA, PASSWORD).await;
            page.expect(429).expect_text("There were too many attempts. Try again in ");
        }
    });
    let compared = compared.await;
    assert!((8..=14).contains(&compared), "{compared}");
    app.data.clock.advance(Duration::seconds(60));
    new_browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
}

#[testkit::both]
async fn the_mark_of_a_browser_is_that_of_its_account(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    account(&app, "mallory@example.com", false).await;
    let mut mallory = Browser::new(&app);
    mallory.sign_in("mallory@example.com", PASSWORD).await.expect_redirect("/app/");
    let device = mallory.cookies["__Host-svc_device"].clone();
    let mut guesser = Browser::new(&app);
    for _ in 0..5 {
        guesser.sign_in(EVA, "wrong password").await.expect(400);
    }
    for mark in [device.as_str(), "x", "a.b", &device.replace('.', "")] {
        guesser.cookies.insert("__Host-svc_device".to_owned(), mark.to_owned());
        guesser.sign_in(EVA, PASSWORD).await.expect(429);
    }
}
