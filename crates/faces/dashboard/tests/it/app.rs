//! The dashboard at `/app/`: its page, its files, and what it learns about the session.

use crate::browser::Browser;
use crate::people::{PASSWORD, account, joined};
use model::MemberRole;
use serde_json::json;
use testkit::{Kind, TestApp};

const EVA: &str = "eva@example.com";

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    style-src-attr 'unsafe-hashes' 'sha256-tcbDxjMo+xKqM21aCGYbs/QAJqB7yUXC06oPWDapBgc='; img-src 'self' data: blob:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

/// The addresses of the files that a page loads.
fn files(page: &str) -> Vec<String> {
    let attributes = page.split(['=', ' ']).filter_map(|part| part.strip_prefix('"'));
    let paths = attributes.filter_map(|part| part.split('"').next());
    paths.filter(|path| path.contains("/assets/")).map(ToOwned::to_owned).collect()
}

#[testkit::both]
async fn every_address_below_app_is_the_page_of_who_is_signed_in(kind: Kind) {
    let app = TestApp::new(kind).await;
    account(&app, EVA, true).await;
    let mut browser = Browser::new(&app);
    let asked = "/app/1/developers/events?type=contact.*&mode=live";
    let signed_out = browser.get(asked).await;
    signed_out
        .expect_redirect("/sign-in?next=%2Fapp%2F1%2Fdevelopers%2Fevents%3Ftype%3Dcontact.*%26mode%3Dlive");
    assert_eq!(signed_out.header("cache-control"), Some("no-store"));

    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    for path in ["/app/", asked, "/app/nothing/of/the/kind", "/app/1/settings/billing"] {
        let page = browser.get(path).await;
        page.expect(200).expect_text("<div id=\"app\">");
        assert_eq!(page.header("content-security-policy"), Some(POLICY), "{path}");
        for (name, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
        ] {
            assert_eq!(page.header(name), Some(value), "{path}: {name}");
        }
    }
    browser.get("/app").await.expect_redirect("/app/");
    browser.get("/billing").await.expect_redirect("/app/settings/billing");
    browser.post("/app/", &[]).await.expect(405);
    browser.fill("/account", "/sign-out", &[]).await.expect_redirect("/sign-in");
    browser.get("/app/").await.expect_redirect("/sign-in?next=%2Fapp%2F");
}

#[testkit::both]
async fn files_are_kept_by_browsers_for_ever_under_the_digest_of_all(kind: Kind) {
    let app = TestApp::with_base_url(kind, "https://svc.example/bots", false).await;
    account(&app, EVA, true).await;
    let mut browser = Browser::new(&app);
    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/bots/app/");
    let page = browser.get("/app/").await;
    let paths = files(&page.text);
    assert!(
        paths.iter().any(|path| path.ends_with(".js")) && paths.iter().any(|path| path.ends_with(".css"))
    );
    // Files are no secret, so they are sent to everybody. The proxy takes the path of the base URL away.
    let mut stranger = Browser::new(&app);
    for path in &paths {
        let path = path.strip_prefix("/bots").unwrap();
        let plain = stranger.get(path).await;
        plain.expect(200);
        assert_eq!(plain.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert_eq!(plain.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(plain.header("vary"), Some("accept-encoding"));
        assert_eq!(plain.header("content-encoding"), None);
        let of_type = if path.ends_with(".js") { "text/javascript" } else { "text/css" };
        assert!(plain.header("content-type").unwrap().starts_with(of_type), "{path}");
        let size: usize = plain.header("content-length").unwrap().parse().unwrap();
        let mut modern = stranger.with("accept-encoding", Some("gzip, deflate, br"));
        let head = modern.send(("HEAD", path), "", b"").await;
        assert_eq!(head.header("content-encoding"), Some("gzip"), "{path}");
        let compressed: usize = head.header("content-length").unwrap().parse().unwrap();
        assert!(compressed < size, "{path}: {compressed} of {size}");
    }
    let (digest, name) = paths[0].strip_prefix("/bots/app/assets/").unwrap().split_once('/').unwrap();
    for path in [
        format!("/app/assets/{name}"),
        format!("/app/assets/AAAAAAAAAAAAAAAA/{name}"),
        format!("/app/assets/{digest}/nothing.js"),
        format!("/app/assets/{digest}/../{digest}/{name}"),
        format!("/app/assets/{digest}/%2e%2e/index.html"),
        format!("/app/assets/{digest}/"),
    ] {
        let missing = stranger.get(&path).await;
        missing.expect(404);
        assert_eq!(missing.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[testkit::both]
async fn the_page_learns_who_is_signed_in_and_which_workspaces_there_are(kind: Kind) {
    let app = TestApp::new(kind).await;
    let mut browser = Browser::new(&app);
    let refused = browser.get("/session").await;
    refused.expect(401);
    assert_eq!(refused.json()["error"]["code"], "session_required");

    let workspace = app.bare_workspace("scale", 0).await;
    joined(&app, workspace, EVA, MemberRole::Manager).await;
    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/app/");
    let read = browser.get("/session").await;
    read.expect(200);
    let expected = json!({
        "object": "session",
        "name": "Marta Ruiz",
        "email": EVA,
        "operator": false,
        "workspaces": [{ "id": workspace, "name": "Workspace 0", "role": "manager" }],
    });
    assert_eq!(read.json()["data"], expected);
    assert_eq!(read.header("cache-control"), Some("no-store"));
    // The version that answers name is that of the files, so a page knows that it is outdated.
    let version = read.header("x-dashboard-version").unwrap().to_owned();
    let page = browser.get("/app/").await;
    assert!(files(&page.text).iter().all(|path| path.starts_with(&format!("/app/assets/{version}/"))));
    let token = browser.exchange(&json!({ "workspace": workspace, "env": "live" })).await;
    assert_eq!(token.expect(200).header("x-dashboard-version"), Some(version.as_str()));

    for site in ["cross-site", "same-site"] {
        let refused = browser.with("sec-fetch-site", Some(site)).get("/session").await;
        assert_eq!(refused.expect(401).json()["error"]["code"], "session_required", "{site}");
    }
    let mut plain = browser.with("sec-fetch-site", None);
    plain.get("/session").await.expect(200);
    assert_eq!(
        plain
            .with("origin", Some("https://evil.example"))
            .get("/session")
            .await
            .header("access-control-allow-origin"),
        None
    );
    browser.post("/session", &[]).await.expect(405);
}

#[testkit::both]
async fn the_address_of_the_service_leads_browsers_to_the_dashboard(kind: Kind) {
    let app = TestApp::new(kind).await;
    let browser = Browser::new(&app);
    let page = browser.with("accept", Some("text/html,application/xhtml+xml,*/*;q=0.8")).get("/").await;
    assert_eq!((page.status, page.header("location")), (302, Some("app/")));
    assert_eq!(page.header("vary"), Some("accept"));
    for accepted in [None, Some("*/*"), Some("application/json")] {
        let page = browser.with("accept", accepted).get("/").await;
        page.expect(200).expect_text("API reference");
    }
}
