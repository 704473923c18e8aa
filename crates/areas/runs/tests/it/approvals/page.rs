//! What stands under the link: the page for people, its form, and all that is refused.

use crate::approvals::{answer, asking, path_of, set_up};
use crate::{ask, awaited, check_books, read};
use serde_json::json;
use testkit::{Answer, Kind, Script, TestApp};

async fn submit(app: &TestApp, path: &str, form: &[(&str, &str)]) -> Answer {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    app.ask_beside("POST", path).bytes("application/x-www-form-urlencoded", body.as_bytes()).send().await
}

/// The heading of a page.
fn heading(page: &Answer) -> &str {
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    page.text.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap()
}

#[testkit::both]
async fn the_page_shows_the_request_and_changes_nothing(kind: Kind) {
    let (app, key, _, server) = set_up(kind, "always").await;
    let run = asking(&app, &key, &[5, 6], json!({})).await;
    let before = read(&app, &key, &run).await;
    for _ in 0..2 {
        let page = app.ask_beside("GET", &path_of(&run)).send().await;
        assert_eq!((page.status, heading(&page)), (200, "Approval needed"));
        for shown in [
            "<b>Assistant</b>",
            "<b>Workspace 0</b>",
            "Does pay.",
            "POST",
            "\n  &quot;sum&quot;: 5\n",
            "<pre>Pay</pre>",
            " UTC",
        ] {
            assert!(page.text.contains(shown), "{shown}: {}", page.text);
        }
        assert!(page.text.contains(&server.address.to_string()) && !page.text.contains("<script"));
        for (header, value) in [
            (
                "content-security-policy",
                "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
            ),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("x-robots-tag", "noindex"),
        ] {
            assert_eq!(page.headers[header], value);
        }
    }
    let head = app.ask_beside("HEAD", &path_of(&run)).send().await;
    assert_eq!(
        (head.status, head.text.as_str(), head.headers["cache-control"].as_str()),
        (200, "", "no-store")
    );
    let escaped = path_of(&run).replace('.', "%2E");
    assert_eq!(app.ask_beside("GET", &escaped).send().await.status, 200);
    assert_eq!((read(&app, &key, &run).await, server.requests()), (before, 0));
}

#[testkit::both]
async fn the_form_answers(kind: Kind) {
    let (app, key, _, server) = set_up(kind, "always").await;
    let run = asking(&app, &key, &[5, 6], json!({})).await;
    let path = path_of(&run);
    // Nothing that is checked is not everything.
    let none = submit(&app, &path, &[("decision", "approve"), ("note", "")]).await;
    assert_eq!((none.status, heading(&none)), (400, "That did not work"));
    let second = run["required_action"]["calls"][1]["step_id"].as_str().unwrap();
    let page =
        submit(&app, &path, &[("decision", "approve"), ("calls", second), ("note", "Only\r\nthis")]).await;
    assert_eq!((page.status, heading(&page)), (200, "Approved"));
    assert!(
        page.text.contains("<b>pay</b>: refused") && page.text.contains("<b>pay</b>: approved"),
        "{}",
        page.text
    );
    let done = awaited(&app, &key, &run, "completed").await;
    assert_eq!(server.bodies(), [json!({ "sum": 6 })]);
    assert_eq!(done["steps"][1]["input"]["approval"]["note"], "Only\nthis");
    let late = submit(&app, &path, &[("decision", "deny")]).await;
    assert_eq!((late.status, heading(&late)), (409, "Answered already"));

    let run = asking(&app, &key, &[7], json!({})).await;
    let call = run["required_action"]["calls"][0]["step_id"].as_str().unwrap();
    // The box is checked still when somebody refuses.
    let page = submit(&app, &path_of(&run), &[("decision", "deny"), ("calls", call)]).await;
    assert_eq!((page.status, heading(&page)), (200, "Refused"));
    awaited(&app, &key, &run, "completed").await;
    assert_eq!(server.requests(), 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn bad_answers_are_named_and_change_nothing(kind: Kind) {
    let (app, key, _, _) = set_up(kind, "always").await;
    let run = asking(&app, &key, &[5], json!({})).await;
    let path = path_of(&run);
    let step = &run["required_action"]["calls"][0]["step_id"];
    let other = asking(&app, &key, &[6], json!({})).await;
    let foreign = &other["required_action"]["calls"][0]["step_id"];
    for (body, param) in [
        (json!({}), "decision"),
        (json!({ "decision": "yes" }), "decision"),
        (json!({ "decision": true }), "decision"),
        (json!({ "decision": null }), "decision"),
        (json!({ "decision": "approve", "who": "me" }), "who"),
        (json!({ "decision": "approve", "calls": [] }), "calls"),
        (json!({ "decision": "approve", "calls": "all" }), "calls"),
        (json!({ "decision": "approve", "calls": [step, 7] }), "calls[1]"),
        (json!({ "decision": "approve", "calls": [step, foreign] }), "calls[1]"),
        (json!({ "decision": "approve", "calls": ["step_\u{0}"] }), "calls[0]"),
        (json!({ "decision": "deny", "calls": [step] }), "calls"),
        (json!({ "decision": "deny", "note": ["a"] }), "note"),
        (json!({ "decision": "deny", "note": "a\u{0}b" }), "note"),
        (json!({ "decision": "deny", "note": "ä".repeat(1001) }), "note"),
        (json!([]), "body"),
    ] {
        let refused = answer(&app, &path, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    for (bytes, param) in
        [(&b""[..], "body"), (b"{", "body"), (b"\xff", "body"), (b"{\"decision\":1e999}", "decision")]
    {
        let refused = app.ask_beside("POST", &path).bytes("application/json", bytes).send().await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    for form in [
        "",
        "decision=approve&decision=deny",
        "decision=deny&x=1",
        "decision=deny&note=%00",
        "%ff=%ff&&=",
        "note=a",
    ] {
        let refused = app
            .ask_beside("POST", &path)
            .bytes("application/x-www-form-urlencoded", form.as_bytes())
            .send()
            .await;
        assert_eq!((refused.status, heading(&refused)), (400, "That did not work"), "{form}");
    }
    let refused = app.ask_beside("POST", &path).bytes("text/plain", b"decision=approve").send().await;
    refused.expect_error(415, "unsupported_media_type");
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
        let refused = app.ask_beside(method, &path).send().await;
        assert_eq!((refused.status, refused.headers["allow"].as_str()), (405, "GET, HEAD, POST"));
    }
    let large = app.ask_beside("POST", &path).bytes("application/json", &vec![b' '; 65 * 1024]).send().await;
    assert_eq!(large.status, 413);
    assert_eq!(read(&app, &key, &run).await["status"], "requires_action");
    answer(&app, &path, json!({ "decision": "deny", "note": "ä".repeat(1000), "calls": null }))
        .await
        .expect(200);
    awaited(&app, &key, &run, "completed").await;
}

#[testkit::both]
async fn only_links_that_were_made_here_open(kind: Kind) {
    let (app, key, _, _) = set_up(kind, "always").await;
    let run = asking(&app, &key, &[5], json!({})).await;
    let path = path_of(&run);
    let token = path.strip_prefix("/approvals/").unwrap();
    let (text, signature) = token.rsplit_once('.').unwrap();
    let parts: Vec<&str> = text.split('.').collect();
    let (workspace, run_id, from) = (parts[0], parts[1], parts[2]);
    // A service with another key.
    let seal = auth::Seal::new(&[8; 32]).unwrap();
    let foreign = base64::Engine::encode(
        &base64::engine::general_purpose::URL_SAFE_NO_PAD,
        seal.sign("approval", text),
    );
    let turned: String = signature.chars().rev().collect();
    for wrong in [
        format!("{workspace}.{run_id}.3.{signature}"),
        format!("2.{run_id}.{from}.{signature}"),
        format!("{workspace}.run_01m7y8an2p5m2teq0797qtbymd.{from}.{signature}"),
        format!("{text}.{foreign}"),
        format!("{text}.{turned}"),
        format!("{text}."),
        text.to_owned(),
        signature.to_owned(),
        format!("{token}/x"),
        format!("{token}%00"),
        "%ff".to_owned(),
        "x".repeat(1900),
        String::new(),
    ] {
        let page = app.ask_beside("GET", &format!("/approvals/{wrong}")).send().await;
        assert_eq!((page.status, heading(&page)), (404, "Not found"), "{wrong}");
        let refused = answer(&app, &format!("/approvals/{wrong}"), json!({ "decision": "approve" })).await;
        refused.expect_error(404, "not_found");
    }
    assert_eq!(read(&app, &key, &run).await["status"], "requires_action");
}

#[testkit::both]
async fn hostile_texts_stay_texts(kind: Kind) {
    let (app, key, agent, server) = set_up(kind, "always").await;
    let hostile = "</pre><script>alert(1)</script><img src=x onerror='a'>\"&quot;";
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "name": "<b>Bold</b>" })).await.expect(200);
    let put = json!({ "type": "http", "description": hostile, "approval": "always",
        "http": { "url": format!("http://{}/x", server.address) } });
    app.put(&format!("/agents/{}/tools/pay", agent["id"]), &key, put).await.expect(200);
    app.model.then(Script::Call(vec![("pay".into(), json!({ hostile: hostile, "hidden": "a\u{202e}b" }))]));
    let run = ask(&app, &key, json!({ "input": hostile })).await.expect(200);
    let page = app.ask_beside("GET", &path_of(&run)).send().await;
    assert_eq!(page.status, 200);
    for raw in ["<script", "<img", "<b>Bold", "\u{202e}"] {
        assert!(!page.text.contains(raw), "{raw}: {}", page.text);
    }
    assert!(
        page.text.contains("&lt;b&gt;Bold&lt;/b&gt;") && page.text.contains("a\\u202eb"),
        "{}",
        page.text
    );
    assert_eq!(page.text.matches("&lt;script&gt;alert(1)").count(), 4, "description, input, name and value");
    // So do those of whoever answers.
    let refused = submit(&app, &path_of(&run), &[("decision", "deny"), (hostile, "x")]).await;
    assert!(refused.status == 400 && !refused.text.contains("<script"), "{}", refused.text);
}
