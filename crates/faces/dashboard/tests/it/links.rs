//! One-time links: the first operator, invitations, new passwords.

use crate::browser::Browser;
use crate::people::{PASSWORD, account, joined, link, member, start_link};
use accounts::links::{NewLink, Place};
use business::team::{self, MemberPatch};
use chrono::Duration;
use model::MemberRole;
use testkit::{Kind, TestApp};

const EVA: &str = "eva@example.com";
const NEW: [(&str, &str); 3] = [("email", EVA), ("name", "Eva"), ("password", PASSWORD)];

#[testkit::both]
async fn the_first_operator_comes_by_the_link(kind: Kind) {
    let app = TestApp::new(kind).await;
    let path = start_link(&app).await;
    let mut browser = Browser::new(&app);
    let code = path.rsplit('/').next().unwrap();
    for pasted in [code.to_owned(), format!(" https://svc.example{path}\n")] {
        browser.fill("/start", "/start", &[("code", &pasted)]).await.expect_redirect(&path);
    }
    browser
        .fill("/start", "/start", &[("code", "nonsense")])
        .await
        .expect(400)
        .expect_text("not the code of a link");
    for (field, value, message) in [
        ("email", "no address", "The e-mail address must be an e-mail address."),
        ("name", " ", "The name must not be empty."),
        ("password", "short", "The password must have 10 to 256 bytes."),
        ("password", EVA, "The password must not be your e-mail address."),
        ("password", "1234567890", "The password is one that many people use"),
    ] {
        let fields = NEW.map(|(name, other)| (name, if name == field { value } else { other }));
        browser.fill(&path, &path, &fields).await.expect(400).expect_text(message);
    }
    browser.fill(&path, &path, &NEW).await.expect_redirect("/app/");
    browser.get("/account").await.expect(200).expect_text(EVA);
    browser.get(&path).await.expect(410).expect_text("This link was used already");
    Browser::new(&app).sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
}

#[testkit::both]
async fn scanners_spend_no_link(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let place =
        Place { workspace, member: member(&app, workspace, "ana@example.com", MemberRole::Viewer).await };
    let id = account(&app, EVA, false).await;
    let email = accounts::Email::parse("ana@example.com").unwrap();
    let invite = format!("/invite/{}", link(&app, NewLink::Invitation(place, email)).await.reveal());
    let reset = format!("/reset/{}", link(&app, NewLink::PasswordReset(id)).await.reveal());
    let start = start_link(&app).await;
    for path in [&start, &invite, &reset] {
        let mut scanner = Browser::new(&app).with("sec-fetch-site", None);
        for method in ["GET", "HEAD", "GET", "HEAD", "OPTIONS", "PUT", "DELETE"] {
            let page = scanner.send((method, path), "", b"").await;
            assert_eq!(
                page.status,
                if matches!(method, "GET" | "HEAD") { 200 } else { 405 },
                "{method} {path}"
            );
            assert_eq!(scanner.session(), None);
        }
        // A scanner that sends forms has no token.
        scanner.post(path, &NEW).await.expect(403);
    }
    let mut browser = Browser::new(&app);
    browser
        .fill(&reset, &reset, &[("password", "another good one")])
        .await
        .expect(200)
        .expect_text("Your password is set");
    browser.fill(&invite, &invite, &[("name", "Ana"), ("password", PASSWORD)]).await.expect_redirect("/app/");
    let mut operator = Browser::new(&app);
    let other = [("email", "op@example.com"), NEW[1], NEW[2]];
    operator.fill(&start, &start, &other).await.expect_redirect("/app/");
}

#[testkit::both]
async fn used_guessed_and_expired_links_do_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let id = account(&app, EVA, false).await;
    let mut browser = Browser::new(&app);
    let good = link(&app, NewLink::PasswordReset(id.clone())).await;
    for code in ["", "x", "..", "%00", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", &"A".repeat(5_000)] {
        for page in ["start", "invite", "reset"] {
            browser.get(&format!("/{page}/{code}")).await.expect(404);
        }
    }
    // A link for one thing is none for another.
    browser.get(&format!("/start/{}", good.reveal())).await.expect(404);
    browser.get(&format!("/invite/{}", good.reveal())).await.expect(404);
    let reset = format!("/reset/{}", good.reveal());
    let token = browser.get(&reset).await.token().unwrap().to_owned();
    let fields = [("password", "another good one"), ("form_token", token.as_str())];
    app.data.clock.advance(Duration::minutes(30));
    browser.get(&reset).await.expect(410).expect_text("This link has expired");
    browser.post(&reset, &fields).await.expect(410);
    // A newer link ends an older one, and a password ends both.
    let older = format!("/reset/{}", link(&app, NewLink::PasswordReset(id.clone())).await.reveal());
    let newer = format!("/reset/{}", link(&app, NewLink::PasswordReset(id)).await.reveal());
    browser.get(&older).await.expect(410);
    browser.post(&newer, &fields).await.expect(200);
    browser.post(&newer, &fields).await.expect(410);
    Browser::new(&app).sign_in(EVA, "another good one").await.expect_redirect("/app/");
    let start = start_link(&app).await;
    app.data.clock.advance(Duration::minutes(31));
    browser.get(&start).await.expect(410);
}

#[testkit::both]
async fn of_racing_posts_of_a_link_one_wins(kind: Kind) {
    let app = TestApp::new(kind).await;
    let replica = app.replica(auth::RateWindows::local()).await;
    let path = start_link(&app).await;
    let mut racers = Vec::new();
    for number in 0..6 {
        let mut browser = Browser::new(if number % 2 == 0 { &app } else { &replica });
        let token = browser.get(&path).await.token().unwrap().to_owned();
        let (path, email) = (path.clone(), format!("racer{number}@example.com"));
        racers.push(tokio::spawn(async move {
            let fields = [("email", email.as_str()), NEW[1], NEW[2], ("form_token", token.as_str())];
            browser.post(&path, &fields).await.status
        }));
    }
    let mut statuses = Vec::new();
    for racer in racers {
        statuses.push(racer.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 410, 410, 410, 410, 410]);
    let accounts = app.db().read(accounts::account::operators).await.unwrap();
    assert_eq!(accounts.len(), 1);
}

#[testkit::both]
async fn an_invitation_gives_the_role_that_the_member_has_now(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let place = Place { workspace, member: member(&app, workspace, EVA, MemberRole::Owner).await };
    let invite = NewLink::Invitation(place, accounts::Email::parse(EVA).unwrap());
    let path = format!("/invite/{}", link(&app, invite).await.reveal());
    let mut browser = Browser::new(&app);
    browser.get(&path).await.expect(200).expect_text("with the role <strong>owner</strong>").expect_text(EVA);
    let demoted = app.db().write(move |tx| {
        let patch = MemberPatch { role: Some(MemberRole::Viewer), ..MemberPatch::default() };
        team::set(tx, workspace, place.member, patch, &team::Editor::command_line("test"))
    });
    demoted.await.unwrap();
    // Neither a role nor an address of the form counts.
    let fields = [("name", "Eva"), ("password", PASSWORD), ("role", "owner"), ("email", "evil@example.com")];
    browser.fill(&path, &path, &fields).await.expect_redirect("/app/");
    browser.get("/account").await.expect_text("Your role: viewer").expect_text(EVA);
    browser.get(&path).await.expect(410);
}

#[testkit::both]
async fn an_invitation_is_for_the_account_that_is_invited(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (first, second) = (app.bare_workspace("scale", 0).await, app.bare_workspace("scale", 0).await);
    joined(&app, first, EVA, MemberRole::Agent).await;
    account(&app, "other@example.com", false).await;
    let place = Place { workspace: second, member: member(&app, second, EVA, MemberRole::Admin).await };
    let invite = NewLink::Invitation(place, accounts::Email::parse("Eva@Example.com").unwrap());
    let path = format!("/invite/{}", link(&app, invite).await.reveal());

    let mut stranger = Browser::new(&app);
    stranger.sign_in("other@example.com", PASSWORD).await.expect_redirect("/app/");
    let page = stranger.get(&path).await;
    page.expect(200).expect_text("The invitation is for");
    stranger.post(&path, &[("form_token", page.token().unwrap())]).await.expect(403);

    let mut browser = Browser::new(&app);
    browser.get(&path).await.expect(200).expect_text("Sign in with it to join.");
    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    app.data.clock.advance(Duration::minutes(11));
    browser.get(&path).await.expect(303);
    browser
        .fill("/reauthenticate", "/reauthenticate", &[("password", PASSWORD)])
        .await
        .expect_redirect("/app/");
    let before = browser.session().unwrap().clone();
    browser.fill(&path, &path, &[]).await.expect_redirect("/app/");
    assert_ne!(browser.session(), Some(&before), "more rights, another cookie");
    let page = browser.get("/account").await;
    page.expect_text("Your role: agent").expect_text("Your role: admin");
}
