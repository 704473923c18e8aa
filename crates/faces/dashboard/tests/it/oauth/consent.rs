//! The consent page: who may decide, what is shown, and forms that are sent twice, late or by others.

use super::bed::{BASE, Bed, REDIRECT, form_token, parameter, sign_in};
use chrono::TimeDelta;
use model::MemberRole;
use testkit::{Kind, assert_absent, both};

#[both]
async fn the_page_asks_for_a_recent_sign_in(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let query = Bed::query(&client, &[]);
    let next = form_urlencoded(&format!("/oauth/authorize?{query}"));
    let answer = bed.open_as("x=y", &query).await;
    assert_eq!(
        (answer.status, answer.headers["location"].as_str()),
        (303, format!("/sign-in?next={next}").as_str())
    );
    let page = bed.open(&query).await;
    bed.app.data.clock.advance(TimeDelta::seconds(601));
    let late = format!("/reauthenticate?next={next}");
    let answer = bed.open(&query).await;
    assert_eq!((answer.status, &answer.headers["location"]), (303, &late));
    let answer = bed.post(&query, &form_token(&page), "allow").await;
    assert_eq!((answer.status, &answer.headers["location"]), (303, &late));
}

fn form_urlencoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[both]
async fn only_owners_and_admins_decide_and_only_for_their_workspaces(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let query = Bed::query(&client, &[]);
    for role in MemberRole::ALL {
        let member = bed.app.member(bed.workspace, role).await;
        let cookie = sign_in(&bed.app, &member).await;
        let page = bed.open_as(&cookie, &query).await;
        let may = matches!(role, MemberRole::Owner | MemberRole::Admin);
        assert_eq!(page.text.contains("value=\"allow\""), may, "{role:?}: {}", page.text);
        let token = form_token(&page);
        let workspace = bed.workspace.to_string();
        let allow = [
            ("form_token", token.as_str()),
            ("workspace", &workspace),
            ("env", "live"),
            ("decision", "allow"),
        ];
        let answer = bed.post_fields(&cookie, &query, &allow).await;
        assert_eq!(answer.status, if may { 303 } else { 404 }, "{role:?}: {}", answer.text);
        let deny = [("form_token", token.as_str()), ("decision", "deny")];
        let answer = bed.post_fields(&cookie, &query, &deny).await;
        assert_eq!(parameter(&answer.headers["location"], "error").as_deref(), Some("access_denied"));
    }
    let foreign = bed.app.bare_workspace("scale", 0).await.to_string();
    let token = form_token(&bed.open(&query).await);
    let fields =
        [("form_token", token.as_str()), ("workspace", &foreign), ("env", "live"), ("decision", "allow")];
    assert_eq!(bed.post_fields(&bed.cookie, &query, &fields).await.status, 404);
}

#[both]
async fn forms_of_others_change_nothing(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let query = Bed::query(&client, &[]);
    let token = form_token(&bed.open(&query).await);
    let stranger = bed.app.bare_workspace("scale", 0).await;
    let stranger = bed.app.member(stranger, MemberRole::Owner).await;
    let stranger = sign_in(&bed.app, &stranger).await;
    let foreign = form_token(&bed.open_as(&stranger, &query).await);
    for (token, header, value) in [
        (token.as_str(), "sec-fetch-site", "cross-site"),
        (token.as_str(), "sec-fetch-site", "same-site"),
        (token.as_str(), "sec-fetch-site", "none"),
        (token.as_str(), "origin", "https://evil.example"),
        (token.as_str(), "origin", "null"),
        (token.as_str(), "x", "y"),
        (foreign.as_str(), "sec-fetch-site", "same-origin"),
        ("", "sec-fetch-site", "same-origin"),
    ] {
        let workspace = bed.workspace.to_string();
        let body = super::bed::form(&[
            ("form_token", token),
            ("workspace", &workspace),
            ("env", "live"),
            ("decision", "allow"),
        ]);
        let ask =
            bed.app.ask_beside("POST", &format!("/oauth/authorize?{query}")).header("cookie", &bed.cookie);
        let answer = ask
            .header(header, value)
            .bytes("application/x-www-form-urlencoded", body.as_bytes())
            .send()
            .await;
        assert_eq!(answer.status, 403, "{header} {value}: {}", answer.text);
        assert!(!answer.headers.contains_key("location"));
    }
    let ask = bed.app.ask_beside("POST", &format!("/oauth/authorize?{query}")).header("cookie", &bed.cookie);
    let ask = ask.header("origin", BASE).bytes("application/json", b"{}");
    assert_eq!(ask.send().await.status, 415);
}

#[both]
async fn twice_back_and_in_two_tabs(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let query = Bed::query(&client, &[]);
    let token = form_token(&bed.open(&query).await);
    let (one, two) = tokio::join!(bed.post(&query, &token, "allow"), bed.post(&query, &token, "allow"));
    for answer in [&one, &two] {
        assert_eq!(answer.status, 303, "{}", answer.text);
        let code = parameter(&answer.headers["location"], "code").unwrap();
        assert_eq!(bed.exchange(&client, REDIRECT, &code).await.status, 200);
    }
    let grants = grants(&bed).await;
    assert_eq!(grants.len(), 1, "one grant: {grants:?}");
    // After the back button the page asks again; a second tab has its own request.
    let wider =
        Bed::query(&client, &[("scope", Some("contacts:read contacts:write")), ("state", Some("tab 2"))]);
    let page = bed.open(&wider).await;
    assert!(page.text.contains("may already use it"), "{}", page.text);
    assert_eq!(page.text.matches(">New<").count(), 1, "{}", page.text);
    let first = bed.decide(&query, "deny").await;
    assert_eq!(parameter(&first.headers["location"], "state").as_deref(), Some("a state"));
    let second = bed.post(&wider, &form_token(&page), "allow").await;
    assert_eq!(parameter(&second.headers["location"], "state").as_deref(), Some("tab 2"));
    let grants = self::grants(&bed).await;
    assert_eq!(grants, ["contacts:read,contacts:write,mcp:use"], "it is extended");
}

async fn grants(bed: &Bed) -> Vec<String> {
    let workspace = bed.workspace;
    let found = bed.app.db().read(move |read| oauth::grants_of_workspace(read, workspace));
    found.await.unwrap().iter().map(|grant| grant.scopes.to_string()).collect()
}

#[both]
async fn signed_out_midway(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let query = Bed::query(&client, &[]);
    let page = bed.open(&query).await;
    let (account, session) = (bed.owner.session.account.clone(), bed.cookie.clone());
    let secret = accounts::Secret::parse(session.split_once('=').unwrap().1).unwrap();
    let ended = bed.app.db().write(move |tx| {
        let open = accounts::sessions::by_secret(tx, &secret)?.unwrap();
        accounts::sessions::revoke(tx, &account, &open.id)
    });
    ended.await.unwrap();
    let answer = bed.post(&query, &form_token(&page), "allow").await;
    assert_eq!(answer.status, 303, "{}", answer.text);
    assert!(answer.headers["location"].starts_with("/sign-in?next=%2Foauth%2Fauthorize"));
    assert!(grants(&bed).await.is_empty());
}

#[both]
async fn a_grant_can_be_a_test(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let query = Bed::query(&client, &[("scope", Some("runs:read"))]);
    let token = form_token(&bed.open(&query).await);
    let workspace = bed.workspace.to_string();
    let fields =
        [("form_token", token.as_str()), ("workspace", &workspace), ("env", "test"), ("decision", "allow")];
    let answer = bed.post_fields(&bed.cookie, &query, &fields).await;
    let code = parameter(&answer.headers["location"], "code").unwrap();
    let tokens = bed.exchange(&client, REDIRECT, &code).await.body;
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let me = bed.app.ask("GET", "/me").header("authorization", &bearer).send().await.expect(200);
    assert_eq!(me["livemode"], false, "{me}");
    let incomplete = [("form_token", token.as_str()), ("env", "live"), ("decision", "allow")];
    let answer = bed.post_fields(&bed.cookie, &query, &incomplete).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("Choose the workspace"), "{}", answer.text);
}

#[both]
async fn the_page_is_in_no_frame_and_lets_forms_leave(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&["http://127.0.0.1/cb"]).await;
    let query = Bed::query(
        &client,
        &[
            ("redirect_uri", Some("http://127.0.0.1:9/cb")),
            ("scope", Some("contacts:write runs:execute contacts:read")),
        ],
    );
    let page = bed.open(&query).await;
    let policy = &page.headers["content-security-policy"];
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
    assert_absent(policy, "; form-action");
    assert_eq!(
        (page.headers["cache-control"].as_str(), page.headers["x-frame-options"].as_str()),
        ("no-store", "DENY")
    );
    for words in ["Nobody can verify which program", "Cannot be undone", "Spends Energy"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    assert_eq!(page.text.matches("Cannot be undone").count(), 1);
    for method in ["PUT", "DELETE", "OPTIONS"] {
        let answer = bed.app.ask_beside(method, &format!("/oauth/authorize?{query}")).send().await;
        assert_eq!((answer.status, answer.headers["allow"].as_str()), (405, "GET, HEAD, POST"), "{method}");
    }
}

#[both]
async fn a_name_is_text_and_not_markup(kind: Kind) {
    let bed = Bed::new(kind).await;
    let metadata = serde_json::json!({
        "client_name": "<script>alert(1)</script>\u{202e}", "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
    });
    let registered = bed.register(metadata).await;
    let client = registered.body["client_id"].as_str().unwrap();
    let page = bed.open(&Bed::query(client, &[])).await;
    assert_eq!(page.status, 200);
    assert!(!page.text.contains("<script>") && page.text.contains("&lt;script&gt;"), "{}", page.text);
    assert!(!page.text.contains('\u{202e}'));
}
