//! Hostile attempts on accounts and sessions, as tables.

use crate::browser::{Browser, Page, form};
use crate::people::{PASSWORD, account, joined};
use business::team::{self, MemberPatch};
use model::MemberRole;
use serde_json::json;
use testkit::{Kind, TestApp};

const EVA: &str = "eva@example.com";
const MALLORY: &str = "mallory@example.com";

/// The endpoints that read the cookie and change something, with the fields of their forms.
const FORMS: [(&str, &[(&str, &str)]); 8] = [
    ("/sign-in", &[("email", EVA), ("password", PASSWORD)]),
    ("/sign-out", &[]),
    ("/start", &[("code", "x")]),
    ("/account/password", &[("current", PASSWORD), ("password", "another good one")]),
    ("/account/sessions", &[("session", "others")]),
    ("/apps", &[("key", "key_x")]),
    ("/reauthenticate", &[("password", PASSWORD)]),
    ("/oauth/authorize", &[("decision", "allow")]),
];

async fn signed_in(app: &TestApp, email: &str) -> Browser {
    let mut browser = Browser::new(app);
    browser.sign_in(email, PASSWORD).await.expect_redirect("/app/");
    browser
}

async fn is_signed_in(browser: &Browser) -> bool {
    browser.clone().get("/account").await.status == 200
}

#[testkit::both]
async fn planted_sessions_are_never_adopted(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    account(&app, MALLORY, false).await;
    let mallory = signed_in(&app, MALLORY).await;
    let foreign = mallory.session().unwrap().clone();
    let plants = [
        "A".repeat(43),
        "ses_00000000000000000000000000".to_owned(),
        foreign.clone(),
        format!("{foreign}x"),
        "' OR 1=1 --".to_owned(),
        "%00".to_owned(),
        "\"quoted\"".to_owned(),
        "x".repeat(4_000),
    ];
    for plant in &plants {
        let mut browser = Browser::new(&app);
        browser.cookies.insert("__Host-svc_session".to_owned(), plant.clone());
        if *plant != foreign {
            browser.get("/account").await.expect(303);
        } else {
            browser.cookies.insert("__Host-svc_session".to_owned(), String::new());
        }
        browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
        assert_ne!(browser.session(), Some(plant));
        let mut victim = Browser::new(&app);
        victim.cookies.insert("__Host-svc_session".to_owned(), plant.clone());
        assert!(!victim.get("/account").await.text.contains(EVA), "{plant}");
    }
    // A cookie without the prefix is one that a neighbour can plant.
    for name in ["svc_session", "__host-svc_session", "__Secure-svc_session"] {
        let mut browser = Browser::new(&app);
        browser.cookies.insert(name.to_owned(), foreign.clone());
        browser.get("/account").await.expect(303);
    }
    // Two cookies of the same name: nobody knows which of them is ours.
    let twice = format!("__Host-svc_session={foreign}; __Host-svc_session={foreign}");
    Browser::new(&app).with("cookie", Some(&twice)).get("/account").await.expect(303);
}

#[testkit::both]
async fn no_other_site_can_send_forms(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let browser = signed_in(&app, EVA).await;
    let token = browser.clone().get("/account").await.token().unwrap().to_owned();
    // Where a request comes from: both headers as they are sent.
    let origins: [(Option<&str>, Option<&str>); 9] = [
        (Some("cross-site"), Some("https://evil.example")),
        (Some("same-site"), Some("https://neighbour.svc.example")),
        (Some("none"), None),
        (Some("cross-site"), Some("https://svc.example")),
        (None, Some("https://evil.example")),
        (None, Some("https://svc.example.evil.example")),
        (None, Some("http://svc.example")),
        (None, Some("null")),
        (None, None),
    ];
    for (path, fields) in FORMS {
        for (site, origin) in origins {
            let mut forged = browser.with("sec-fetch-site", site).with("origin", origin);
            let all: Vec<(&str, &str)> =
                fields.iter().copied().chain([("form_token", token.as_str())]).collect();
            let page = forged.post(path, &all).await;
            assert!(matches!(page.status, 400 | 403), "{path} {site:?} {origin:?}: {}", page.status);
            assert!(page.set_cookies().is_empty(), "{path} {site:?} {origin:?}");
        }
        // From this site, but without the token, with that of another browser, and as another type.
        let other = Browser::new(&app).get("/sign-in").await.token().unwrap().to_owned();
        for wrong in ["", "x", &other] {
            let all: Vec<(&str, &str)> = fields.iter().copied().chain([("form_token", wrong)]).collect();
            let page = browser.clone().post(path, &all).await;
            assert!(matches!(page.status, 400 | 403), "{path} {wrong}: {}", page.status);
        }
        for content_type in ["text/plain", "multipart/form-data; boundary=x", "application/json", ""] {
            let body = form(&[("form_token", &token)]);
            let page = browser.clone().send(("POST", path), content_type, body.as_bytes()).await;
            assert!(matches!(page.status, 400 | 415), "{path} {content_type}: {}", page.status);
        }
        assert!(is_signed_in(&browser).await, "{path}");
    }
    let wanted = json!({ "workspace": 1, "env": "live" }).to_string();
    for (site, origin) in origins {
        let mut forged = browser.with("sec-fetch-site", site).with("origin", origin);
        let page = forged.send(("POST", "/session/token"), "application/json", wanted.as_bytes()).await;
        assert_eq!(page.expect(401).json()["error"]["code"], "session_required");
        assert_eq!(page.header("access-control-allow-origin"), None);
    }
    for content_type in ["text/plain", "application/x-www-form-urlencoded", ""] {
        browser.clone().send(("POST", "/session/token"), content_type, wanted.as_bytes()).await.expect(415);
    }
    for method in ["GET", "HEAD", "OPTIONS", "PUT"] {
        browser.clone().send((method, "/session/token"), "", b"").await.expect(405);
    }
}

#[testkit::both]
async fn nobody_is_signed_in_as_somebody_else(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    account(&app, MALLORY, false).await;
    // Login CSRF: Mallory sends her own form with her own token to the browser of the victim.
    let mut mallory = Browser::new(&app);
    let token = mallory.get("/sign-in").await.token().unwrap().to_owned();
    let fields = [("email", MALLORY), ("password", PASSWORD), ("form_token", token.as_str())];
    let mut victim = Browser::new(&app);
    victim.get("/sign-in").await.expect(200);
    victim.post("/sign-in", &fields).await.expect(403).expect_text("This form is out of date");
    assert_eq!(victim.session(), None);
    Browser::new(&app).post("/sign-in", &fields).await.expect(403);
    // The token of a browser is worth nothing once there is a session, and the reverse.
    mallory.post("/sign-in", &fields).await.expect_redirect("/app/");
    mallory.post("/account/sessions", &[("session", "others"), ("form_token", &token)]).await.expect(403);
    let of_session = mallory.get("/account").await.token().unwrap().to_owned();
    let mut eva = signed_in(&app, EVA).await;
    eva.post("/account/sessions", &[("session", "others"), ("form_token", &of_session)]).await.expect(403);
    // The sessions of others cannot be ended.
    let page = mallory.get("/account").await;
    let own = page
        .text
        .split("name=\"session\" value=\"")
        .nth(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned());
    assert_eq!(own, None, "one session needs no list of others");
    let theirs = eva_session(&app).await;
    mallory.fill("/account", "/account/sessions", &[("session", &theirs)]).await.expect(404);
    assert!(is_signed_in(&eva).await);
    mallory.fill("/apps", "/apps", &[("key", "key_unknown")]).await.expect(404);
}

async fn eva_session(app: &TestApp) -> String {
    let found = app.db().read(|read| {
        let email = accounts::Email::parse(EVA)?;
        let eva = accounts::account::by_email(read, &email)?.unwrap();
        Ok(accounts::sessions::of_account(read, &eva.id)?[0].id.to_string())
    });
    found.await.unwrap()
}

#[testkit::both]
async fn the_api_reads_no_cookie(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    joined(&app, workspace, EVA, MemberRole::Owner).await;
    let mut browser = signed_in(&app, EVA).await;
    let secret = browser.session().unwrap().clone();
    for (method, path) in
        [("GET", "/me"), ("GET", "/contacts"), ("POST", "/contacts"), ("DELETE", "/contacts/1")]
    {
        let path = format!("/api/v1{path}");
        let page = browser.send((method, &path), "application/json", b"{}").await;
        assert_eq!(page.expect(401).json()["error"]["code"], "missing_api_key", "{method} {path}");
    }
    // The secret of a session, its id and a form token are no credentials of the API.
    for credential in
        [secret, eva_session(&app).await, browser.get("/account").await.token().unwrap().to_owned()]
    {
        let mut other = Browser::new(&app).with("authorization", Some(&format!("Bearer {credential}")));
        assert_eq!(other.get("/api/v1/me").await.expect(401).json()["error"]["code"], "invalid_api_key");
    }
}

#[testkit::both]
async fn next_leads_to_no_other_site(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mut browser = signed_in(&app, EVA).await;
    let tricks = [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "/%2Fevil.example",
        "/%5Cevil.example",
        "%2F%2Fevil.example",
        "/\t/evil.example",
        "/\r\nset-cookie: evil=1",
        "/account/..//evil.example",
        "@evil.example",
        " //evil.example",
    ];
    for trick in tricks {
        let query = form(&[("next", trick)]);
        browser.get(&format!("/sign-in?{query}")).await.expect_redirect("/app/");
        for page in ["/sign-in", "/reauthenticate"] {
            let mut other = if page == "/sign-in" { Browser::new(&app) } else { browser.clone() };
            let shown = other.get(&format!("{page}?{query}")).await;
            assert!(!shown.text.contains("evil.example"), "{trick}: {}", shown.text);
            let fields = [
                ("email", EVA),
                ("password", PASSWORD),
                ("next", trick),
                ("form_token", shown.token().unwrap()),
            ];
            let after = other.post(page, &fields).await;
            after.expect_redirect("/app/");
            assert!(after.set_cookies().iter().all(|cookie| !cookie.starts_with("evil")), "{trick}");
            if page == "/reauthenticate" {
                browser = other;
            }
        }
    }
}

#[testkit::both]
async fn pages_are_in_no_frame_cache_or_index(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mut guest = Browser::new(&app);
    let mut member = signed_in(&app, EVA).await;
    let mut pages: Vec<(&str, Page)> = Vec::new();
    for path in [
        "/sign-in",
        "/start",
        "/start/x",
        "/invite/x",
        "/reset/x",
        "/account",
        "/sign-in?next=/oauth/authorize",
    ] {
        pages.push((path, guest.get(path).await));
    }
    for path in ["/account", "/apps", "/sign-out", "/reauthenticate", "/account/nothing"] {
        pages.push((path, member.get(path).await));
    }
    pages.push(("POST /sign-in", guest.post("/sign-in", &[]).await));
    pages.push(("PUT /sign-in", guest.send(("PUT", "/sign-in"), "", b"").await));
    for (path, page) in &pages {
        assert_eq!(page.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"), "{path}");
        if page.text.is_empty() {
            continue;
        }
        let policy = page.header("content-security-policy").unwrap();
        for rule in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "style-src 'sha256-"]
        {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("'unsafe") && !policy.contains("script-src "), "{path}: {policy}");
        let leads_out = path.contains("next=/oauth/");
        assert_eq!(policy.contains("form-action 'self'"), !leads_out, "{path}: {policy}");
        assert!(!page.text.contains("<script") && !page.text.contains(" style="), "{path}");
    }
}

#[testkit::both]
async fn enormous_and_odd_input_is_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mebibyte = "x".repeat(1 << 20);
    let mut browser = Browser::new(&app);
    let token = browser.get("/sign-in").await.token().unwrap().to_owned();
    let large = form(&[("email", EVA), ("password", &mebibyte), ("form_token", &token)]);
    let content_type = "application/x-www-form-urlencoded";
    browser.send(("POST", "/sign-in"), content_type, large.as_bytes()).await.expect(413);
    // Below the limit of the body, above that of passwords.
    for password in
        ["x".repeat(257), "x".repeat(60_000), String::new(), "\0".repeat(20), "\u{202e}".repeat(90)]
    {
        browser
            .sign_in(EVA, &password)
            .await
            .expect(400)
            .expect_text("The e-mail address or the password is wrong.");
        app.data.clock.advance(chrono::Duration::seconds(61));
    }
    let odd: [&[u8]; 5] = [b"", b"&&&&", b"====", b"%ff=%fe&%00", b"form_token=%F0%90%80"];
    for body in odd {
        browser.send(("POST", "/sign-in"), content_type, body).await.expect(403);
    }
    let mut member = signed_in(&app, EVA).await;
    let long = [("current", PASSWORD), ("password", &"x".repeat(50_000))];
    member
        .fill("/account", "/account/password", &long)
        .await
        .expect(400)
        .expect_text("must have 10 to 256 bytes");
    member.send(("POST", "/session/token"), "application/json", &[b'['; 60_000]).await.expect(400);
    member.send(("POST", "/session/token"), "application/json", mebibyte.as_bytes()).await.expect(413);
}

#[testkit::both]
async fn nobody_raises_themselves_and_the_last_owner_stays(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    joined(&app, workspace, EVA, MemberRole::Owner).await;
    joined(&app, workspace, MALLORY, MemberRole::Agent).await;
    let mut mallory = signed_in(&app, MALLORY).await;
    // Fields that no form has change nothing.
    for (page, path, more) in [
        ("/account", "/account/sessions", ("role", "owner")),
        ("/account", "/account/sessions", ("operator", "true")),
        ("/account", "/account/sessions", ("account", EVA)),
    ] {
        mallory
            .fill(page, path, &[("session", "others"), more])
            .await
            .expect_redirect("/account?done=sessions");
    }
    mallory.get("/account").await.expect_text("Your role: agent");
    for path in ["/account/role", "/account/operator", "/account/", "/account/password/x"] {
        mallory.fill("/account", path, &[("role", "owner")]).await.expect(404);
    }
    let operators = app.db().read(accounts::account::operators).await.unwrap();
    assert!(operators.is_empty());
    // The token has the scopes of the role, and no more.
    let page = mallory.exchange(&json!({ "workspace": workspace, "env": "live" })).await;
    let token = format!("Bearer {}", page.expect(200).json()["data"]["token"].as_str().unwrap());
    let agent = json!({ "name": "Own", "instructions": "Be evil." });
    let made = app.ask("POST", "/agents").header("authorization", &token).json(&agent).send().await;
    made.expect_error(403, "missing_scope");

    let eva = app.db().read(move |read| {
        Ok(team::list(read, workspace)?.into_iter().find(|one| one.email == EVA).unwrap().id)
    });
    let eva = eva.await.unwrap();
    let demoted = app.db().write(move |tx| {
        let patch = MemberPatch { role: Some(MemberRole::Agent), ..MemberPatch::default() };
        team::set(tx, workspace, eva, patch, &team::Editor::command_line("test"))
    });
    assert_eq!(demoted.await.unwrap_err().code(), model::Code::InvalidState);
    let removed =
        app.db().write(move |tx| team::remove(tx, workspace, eva, &team::Editor::command_line("test")));
    assert_eq!(removed.await.unwrap_err().code(), model::Code::InvalidState);
    signed_in(&app, EVA).await.get("/account").await.expect_text("Your role: owner");
}
