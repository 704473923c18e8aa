//! Signing in and out, the account's page, step-up, and the tokens of sessions.

use crate::browser::Browser;
use crate::people::{PASSWORD, account, joined, sign_in};
use chrono::Duration;
use model::{Env, MemberRole, WorkspaceId};
use serde_json::json;
use testkit::{Kind, TestApp};

const EVA: &str = "eva@example.com";

#[testkit::both]
async fn signing_in_sets_a_new_cookie_and_leads_on(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mut browser = Browser::new(&app);
    let shown = browser.get("/sign-in?next=%2Fapps").await;
    shown.expect(200).expect_text("name=\"next\" value=\"/apps\"");
    assert!(!shown.text.contains("svc operator link"));
    let page =
        browser.fill("/sign-in?next=%2Fapps", "/sign-in", &[("email", EVA), ("password", PASSWORD)]).await;
    // Without the hidden field, the form leads to the account.
    page.expect_redirect("/app/");
    let cookies = page.set_cookies();
    let session = cookies.iter().find(|cookie| cookie.starts_with("__Host-svc_session=")).unwrap();
    for rule in ["; Path=/", "; HttpOnly", "; SameSite=Lax", "; Secure"] {
        assert!(session.contains(rule), "{session}");
    }
    assert!(cookies.iter().any(|cookie| cookie.starts_with("__Host-svc_device=")));
    assert!(cookies.iter().any(|cookie| cookie.starts_with("__Host-svc_form=;")));
    browser.get("/account").await.expect(200).expect_text(EVA).expect_text("Chrome on Linux");
    browser.get("/sign-in?next=/apps").await.expect_redirect("/apps");
    browser.get("/apps").await.expect(200).expect_text("No app is connected.");

    let first = browser.session().unwrap().clone();
    browser.fill("/account", "/sign-out", &[]).await.expect_redirect("/sign-in");
    assert_eq!(browser.session(), None);
    browser.cookies.insert("__Host-svc_session".to_owned(), first.clone());
    browser.get("/account").await.expect_redirect("/sign-in?next=%2Faccount");
    browser.cookies.remove("__Host-svc_session");
    let shown = browser.get("/sign-in?next=/apps").await;
    let fields =
        [("email", EVA), ("password", PASSWORD), ("next", "/apps"), ("form_token", shown.token().unwrap())];
    browser.post("/sign-in", &fields).await.expect_redirect("/apps");
    assert_ne!(browser.session(), Some(&first));
}

#[testkit::both]
async fn a_wrong_password_and_an_unknown_address_are_told_apart_by_nobody(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mut texts = Vec::new();
    for email in [EVA, "nobody@example.com", "no address"] {
        let mut browser = Browser::new(&app);
        let page = browser.sign_in(email, "wrong password").await;
        page.expect(400).expect_text("The e-mail address or the password is wrong.");
        page.expect_text("aria-invalid=\"true\"").expect_text("role=\"alert\"");
        assert_eq!(browser.session(), None);
        let token = page.token().unwrap().to_owned();
        assert!(!page.text.contains("wrong password\""), "the password is not sent back");
        texts.push(page.text.replace(&token, "").replace(email, ""));
    }
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
}

#[testkit::both]
async fn an_empty_installation_says_how_to_get_in(kind: Kind) {
    let app = TestApp::new(kind).await;
    let mut browser = Browser::new(&app);
    browser.get("/sign-in").await.expect(200).expect_text("svc operator link").expect_text("href=\"/start\"");
    browser.sign_in(EVA, PASSWORD).await.expect(400);
    account(&app, EVA, true).await;
    assert!(!browser.get("/sign-in").await.text.contains("svc operator link"));
}

#[testkit::both]
async fn a_session_ends_when_it_is_idle_and_after_thirty_days(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mut browser = Browser::new(&app);
    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    for _ in 0..60 {
        app.data.clock.advance(Duration::hours(11));
        browser.get("/account").await.expect(200);
    }
    // 660 hours have passed. Sixty more are over the thirty days.
    for _ in 0..5 {
        app.data.clock.advance(Duration::hours(11));
        browser.get("/account").await.expect(200);
    }
    app.data.clock.advance(Duration::hours(6));
    browser.get("/account").await.expect_redirect("/sign-in?next=%2Faccount");
    let mut idle = Browser::new(&app);
    idle.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    app.data.clock.advance(Duration::hours(12));
    idle.get("/account").await.expect_redirect("/sign-in?next=%2Faccount");
}

#[testkit::both]
async fn changing_the_password_ends_all_other_sessions(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let (mut here, mut there) = (Browser::new(&app), Browser::new(&app));
    here.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    there.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    let before = here.session().unwrap().clone();
    let change = async |browser: &mut Browser, current: &str, new: &str| {
        browser.fill("/account", "/account/password", &[("current", current), ("password", new)]).await
    };
    change(&mut here, "wrong password", "another good one")
        .await
        .expect(400)
        .expect_text("The current password is wrong.");
    change(&mut here, PASSWORD, "short")
        .await
        .expect(400)
        .expect_text("The password must have 10 to 256 bytes.");
    there.get("/account").await.expect(200);
    change(&mut here, PASSWORD, "another good one").await.expect_redirect("/account?done=password");
    assert_ne!(here.session(), Some(&before));
    here.get("/account?done=password").await.expect(200).expect_text("Your password is changed.");
    there.get("/account").await.expect_redirect("/sign-in?next=%2Faccount");
    let mut old = Browser::new(&app);
    old.cookies.insert("__Host-svc_session".to_owned(), before);
    old.get("/account").await.expect_redirect("/sign-in?next=%2Faccount");
    Browser::new(&app).sign_in(EVA, PASSWORD).await.expect(400);
    Browser::new(&app).sign_in(EVA, "another good one").await.expect_redirect("/app/");
}

#[testkit::both]
async fn browsers_are_listed_and_signed_out(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let (mut here, mut phone) = (Browser::new(&app), Browser::new(&app));
    phone =
        phone.with("user-agent", Some("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0) Version/19.0 Safari/604.1"));
    let mut tablet = phone.with("user-agent", Some("<script>alert(1)</script>"));
    for browser in [&mut here, &mut phone, &mut tablet] {
        browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    }
    let page = here.get("/account").await;
    page.expect_text("Safari on iPhone").expect_text("(this browser)").expect_text("&lt;script&gt;alert(1)");
    let (_, rest) = page.text.split_once("Safari on iPhone").unwrap();
    let (_, rest) = rest.split_once("name=\"session\" value=\"").unwrap();
    let id = rest.split('"').next().unwrap().to_owned();
    here.fill("/account", "/account/sessions", &[("session", &id)])
        .await
        .expect_redirect("/account?done=sessions");
    phone.get("/account").await.expect_redirect("/sign-in?next=%2Faccount");
    tablet.get("/account").await.expect(200);
    here.fill("/account", "/account/sessions", &[("session", "others")])
        .await
        .expect_redirect("/account?done=sessions");
    tablet.get("/account").await.expect_redirect("/sign-in?next=%2Faccount");
    here.get("/account").await.expect(200);
    for unknown in ["", "ses_unknown", "../../x"] {
        here.fill("/account", "/account/sessions", &[("session", unknown)]).await.expect(404);
    }
}

#[testkit::both]
async fn stepping_up_renews_the_session_in_place(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mut browser = Browser::new(&app);
    browser.get("/reauthenticate?next=/apps").await.expect_redirect("/sign-in?next=%2Fapps");
    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    app.data.clock.advance(Duration::minutes(20));
    let before = browser.session().unwrap().clone();
    let page = "/reauthenticate?next=%2Fapps";
    let wrong = browser.fill(page, "/reauthenticate", &[("password", "wrong password")]).await;
    wrong.expect(400).expect_text("The password is wrong.");
    assert_eq!(browser.session(), Some(&before));
    let shown = browser.get(page).await;
    let fields = [("password", PASSWORD), ("next", "/apps"), ("form_token", shown.token().unwrap())];
    browser.post("/reauthenticate", &fields).await.expect_redirect("/apps");
    assert_ne!(browser.session(), Some(&before));
    let mut old = Browser::new(&app);
    old.cookies.insert("__Host-svc_session".to_owned(), before);
    old.get("/account").await.expect_redirect("/sign-in?next=%2Faccount");
    // A form that was opened before still works: it is bound to the session, not to its secret.
    browser
        .post("/account/sessions", &[("session", "others"), ("form_token", shown.token().unwrap())])
        .await
        .expect(303);
}

#[testkit::both]
async fn a_session_is_exchanged_for_a_token_of_five_minutes(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let foreign = app.bare_workspace("scale", 0).await;
    joined(&app, workspace, EVA, MemberRole::Manager).await;
    let mut browser = Browser::new(&app);
    let wanted = json!({ "workspace": workspace, "env": "live" });
    let refused = browser.exchange(&wanted).await;
    refused.expect(401);
    assert_eq!(refused.json()["error"]["code"], "session_required");
    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    browser.get("/account").await.expect_text("Workspace 0").expect_text("Your role: manager");
    for env in Env::ALL {
        let page = browser.exchange(&json!({ "workspace": workspace, "env": env })).await;
        let data = page.expect(200).json()["data"].clone();
        assert_eq!(page.header("cache-control"), Some("no-store"));
        assert_eq!(data["expires_at"], json!(app.db().now().plus_seconds(300)));
        let token = format!("Bearer {}", data["token"].as_str().unwrap());
        let me = app.ask("GET", "/me").header("authorization", &token).send().await.expect(200);
        assert_eq!(me["workspace"]["id"], json!(workspace), "{me}");
        assert_eq!(me["livemode"], json!(env == Env::Live), "{me}");
    }
    // A foreign workspace looks like one that does not exist.
    let answers =
        [foreign, WorkspaceId(4_711_000)].map(|workspace| json!({ "workspace": workspace, "env": "live" }));
    let mut texts = Vec::new();
    for wanted in &answers {
        let page = browser.exchange(wanted).await;
        assert_eq!(page.expect(403).json()["error"]["code"], "not_a_member");
        texts.push(page.json()["error"].to_string());
    }
    assert_eq!(texts[0], texts[1]);
    for body in [
        json!({}),
        json!([]),
        json!({ "workspace": "1", "env": "live" }),
        json!({ "workspace": 1, "env": "x" }),
    ] {
        assert_eq!(browser.exchange(&body).await.expect(400).json()["error"]["param"], "body", "{body}");
    }
    let page = browser.exchange(&wanted).await;
    let token = format!("Bearer {}", page.json()["data"]["token"].as_str().unwrap());
    browser.fill("/account", "/sign-out", &[]).await.expect_redirect("/sign-in");
    app.ask("GET", "/me").header("authorization", &token).send().await.expect_error(401, "invalid_api_key");
}

#[testkit::both]
async fn a_disabled_account_is_signed_out_and_cannot_sign_in(kind: Kind) {
    let app = TestApp::new(kind).await;
    let id = account(&app, EVA, true).await;
    let mut browser = Browser::new(&app);
    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    let disabled =
        app.db().write(move |tx| accounts::account::disable(tx, &id, &accounts::Actor::CommandLine));
    disabled.await.unwrap();
    browser.get("/account").await.expect_redirect("/sign-in?next=%2Faccount");
    browser
        .sign_in(EVA, PASSWORD)
        .await
        .expect(400)
        .expect_text("The e-mail address or the password is wrong.");
    assert!(
        sign_in(&app)
            .passwords()
            .hash("short".to_owned(), &accounts::Email::parse(EVA).unwrap())
            .await
            .is_err()
    );
}
