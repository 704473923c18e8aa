//! What the address of the service means for cookies and passwords.

use crate::browser::Browser;
use crate::people::{PASSWORD, account};
use testkit::{Kind, TestApp};

const EVA: &str = "eva@example.com";

#[testkit::both]
async fn on_this_machine_cookies_need_no_encryption(kind: Kind) {
    let app = TestApp::with_base_url(kind, "http://localhost:8080", false).await;
    account(&app, EVA, true).await;
    let mut browser = Browser::new(&app).with("host", Some("localhost:8080"));
    let page = browser.sign_in(EVA, PASSWORD).await;
    page.expect_redirect("/app/");
    let cookies = page.set_cookies();
    assert!(cookies.iter().any(|cookie| cookie.starts_with("svc_session=")), "{cookies:?}");
    assert!(cookies.iter().all(|cookie| cookie.starts_with("svc_")), "{cookies:?}");
    assert!(cookies.iter().all(|cookie| !cookie.contains("; Secure")), "{cookies:?}");
    browser.get("/account").await.expect(200);
    // The same service, reached from another machine.
    for host in ["192.168.1.7:8080", "svc.example", "localhost.evil.example", "evil@localhost.evil.example"] {
        let mut other = Browser::new(&app).with("host", Some(host));
        other
            .get("/sign-in")
            .await
            .expect(403)
            .expect_text("You cannot sign in here")
            .expect_text("SVC_BASE_URL");
        other.get("/start/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").await.expect(403);
    }
}

#[testkit::both]
async fn plain_http_elsewhere_is_refused_unless_it_is_accepted(kind: Kind) {
    let app = TestApp::with_base_url(kind, "http://svc.example", false).await;
    account(&app, EVA, true).await;
    let mut browser = Browser::new(&app);
    browser.get("/sign-in").await.expect(403).expect_text("SVC_INSECURE_SIGN_IN=true");
    // Also for a form that has been kept.
    let fields = [("email", EVA), ("password", PASSWORD), ("form_token", "x")];
    browser.post("/sign-in", &fields).await.expect(403).expect_text("SVC_INSECURE_SIGN_IN=true");
    assert!(browser.cookies.keys().all(|name| name == "svc_form"));

    let app = TestApp::with_base_url(kind, "http://svc.example", true).await;
    account(&app, EVA, true).await;
    // Browsers send no Sec-Fetch-Site over plain http. The origin takes its place.
    let mut browser =
        Browser::new(&app).with("sec-fetch-site", None).with("origin", Some("http://svc.example"));
    browser.get("/sign-in").await.expect(200).expect_text("This connection is not encrypted.");
    let page = browser.sign_in(EVA, PASSWORD).await;
    page.expect_redirect("/app/");
    assert!(page.set_cookies().iter().any(|cookie| cookie.starts_with("svc_session=")));
    browser.get("/account").await.expect(200).expect_text("This connection is not encrypted.");
}

#[testkit::both]
async fn links_keep_the_configured_path_and_host(kind: Kind) {
    let app = TestApp::with_base_url(kind, "https://svc.example/bots", false).await;
    account(&app, EVA, true).await;
    let mut browser = Browser::new(&app);
    for (name, value) in
        [("host", "evil.example"), ("x-forwarded-host", "evil.example"), ("forwarded", "host=evil.example")]
    {
        let mut browser = browser.with(name, Some(value));
        let page = browser.get("/sign-in").await;
        page.expect(200).expect_text("action=\"/bots/sign-in\"");
        assert!(!page.text.contains("evil.example"), "{}", page.text);
        browser.get("/account").await.expect_redirect("/bots/sign-in?next=%2Faccount");
    }
    browser.sign_in(EVA, PASSWORD).await.expect_redirect("/bots/app/");
}
