use crate::support::{Net, PHONE};
use egress::{Method, Request};
use serde_json::{Value, json};
use simulator::{Settings, Simulator, StartError};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

async fn ask(net: &Net, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let url = format!("{}/control{path}", net.sim.connection().page);
    let mut request = Request::new(method, url);
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let response = net.connector.send(request).await.unwrap();
    (response.status, serde_json::from_slice(&response.body).unwrap_or(Value::Null))
}

async fn post(net: &Net, path: &str, body: Value) -> Value {
    let (status, answer) = ask(net, Method::POST, path, Some(body)).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

#[tokio::test]
async fn it_listens_on_loopback_only() {
    let settings = Settings { listen: "0.0.0.0:0".parse().unwrap(), ..Settings::default() };
    assert!(matches!(Simulator::start(settings), Err(StartError::NotLoopback(_))));
}

#[tokio::test]
async fn a_conversation_over_http() {
    let net = Net::start().await;
    let user = post(&net, "/users", json!({ "name": "Sheena", "phone": PHONE })).await;
    let path = format!("/users/{}/actions", user["user_id"].as_str().unwrap());
    let written = post(&net, &path, json!({ "do": "text", "body": "Hello" })).await;
    assert_eq!(net.messages(1).await[0].provider_id, written["id"]);
    let id = net.accepted("Hi", "msg_1").await;
    net.statuses(2).await;
    let (_, chat) = ask(&net, Method::GET, &format!("/users/{PHONE}/chat?read=true"), None).await;
    assert_eq!(chat["data"][0]["text"], "Hello");
    assert_eq!((&chat["data"][1]["id"], &chat["data"][1]["status"]), (&json!(id), &json!("delivered")));
    net.statuses(3).await;
    let (_, transcript) = ask(&net, Method::GET, "/transcript", None).await;
    assert_eq!(transcript["data"][0]["reference"], "msg_1");
    let (_, rest) = ask(&net, Method::GET, "/transcript?after=1", None).await;
    assert_eq!(rest["data"], json!([]));
    let (_, state) = ask(&net, Method::GET, "/state", None).await;
    assert_eq!((&state["accepted"], &state["users"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn faults_clock_and_templates_over_http() {
    let net = Net::start().await;
    let before = ask(&net, Method::GET, "/clock", None).await.1;
    let after = post(&net, "/clock", json!({ "advance_ms": 86_400_000 })).await;
    assert_eq!(before["now"], "2026-03-01T12:00:00.000Z");
    assert_eq!(after["now"], "2026-03-02T12:00:00.000Z");
    let faults = json!({ "duplicate": 0.5, "media": { "not_found": 1 } });
    let (status, answer) = ask(&net, Method::PUT, "/faults", Some(faults)).await;
    assert_eq!((status, &answer["duplicate"], &answer["drop"]), (200, &json!(0.5), &json!(0.0)));
    post(&net, "/faults/next", json!([{ "fault": "timeout_after" }, { "fault": "refuse", "code": 131_048 }]))
        .await;
    let components = json!([{ "type": "BODY", "text": "x" }]);
    let template = json!({ "name": "a", "language": "en", "category": "UTILITY", "components": components });
    post(&net, "/templates", template).await;
    post(&net, "/templates/review", json!({ "name": "a", "language": "en", "verdict": "pause" })).await;
    let (_, templates) = ask(&net, Method::GET, "/templates", None).await;
    assert_eq!(templates["data"][0]["status"], "PAUSED");
    let id = &net.account.number_id;
    let (status, _) =
        ask(&net, Method::PUT, &format!("/numbers/{id}/token"), Some(json!({ "revoked": true }))).await;
    assert_eq!(status, 200);
    for (path, body, expected) in [
        ("/users", json!({}), 400),
        ("/users", json!({ "name": "A", "colour": "red" }), 400),
        ("/users/nobody/actions", json!({ "do": "text", "body": "x" }), 404),
        ("/templates/review", json!({ "name": "b", "language": "en", "verdict": "pause" }), 400),
        ("/faults/next", json!([{ "fault": "rain" }]), 400),
    ] {
        let (status, answer) = ask(&net, Method::POST, path, Some(body)).await;
        assert_eq!(status, expected, "{path}: {answer}");
        assert!(answer["error"]["message"].is_string());
    }
}

#[tokio::test]
async fn pages_of_other_origins_control_nothing() {
    let net = Net::start().await;
    let url = format!("{}/control/state", net.sim.connection().page);
    let from = |origin: &str| net.connector.send(Request::get(url.clone()).header("origin", origin));
    assert_eq!(from("https://evil.example").await.unwrap().status, 404);
    assert_eq!(from("null").await.unwrap().status, 404);
    assert_eq!(from(&net.sim.connection().page).await.unwrap().status, 200);
    let site = |site: &str| net.connector.send(Request::get(url.clone()).header("sec-fetch-site", site));
    for (value, status) in [("cross-site", 404), ("same-site", 404), ("same-origin", 200), ("none", 200)] {
        assert_eq!(site(value).await.unwrap().status, status, "{value}");
    }
    // Links from other sites may lead only to the page.
    let linked = Request::get(net.sim.connection().page).header("sec-fetch-site", "same-site");
    assert_eq!(net.connector.send(linked).await.unwrap().status, 200);
    // A hostile host name can begin like an address.
    let port = net.sim.address().port();
    for (host, status) in [("127.evil.example", 404), ("localhost", 200), ("127.0.0.1", 200)] {
        assert_eq!(status_for_host(port, host), status, "{host}");
    }
}

/// Returns the status of a request with this host.
fn status_for_host(port: u16, host: &str) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!("GET /control/state HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn without_a_service_the_business_has_no_side() {
    let net = Net::start().await;
    let user = post(&net, "/users", json!({ "name": "Sheena", "phone": PHONE })).await;
    assert_eq!(ask(&net, Method::GET, "/inbox", None).await.1, json!({ "connected": false }));
    let path = format!("/users/{}/inbox", user["user_id"].as_str().unwrap());
    let (status, answer) = ask(&net, Method::GET, &path, None).await;
    assert_eq!((status, answer["error"]["message"].is_string()), (400, true));
}

#[tokio::test]
async fn a_template_is_shown_with_its_header_and_footer() {
    let net = Net::start().await;
    post(&net, "/users", json!({ "name": "Sheena", "phone": PHONE })).await;
    let components = json!([
        { "type": "HEADER", "format": "TEXT", "text": "Order {{1}}", "example": { "header_text": ["7"] } },
        { "type": "BODY", "text": "Hello {{1}}, it was shipped.", "example": { "body_text": [["Ana"]] } },
        { "type": "FOOTER", "text": "Reply STOP to opt out" },
    ]);
    let template =
        json!({ "name": "shipped", "language": "en", "category": "UTILITY", "components": components });
    post(&net, "/templates", template).await;
    let connection = net.sim.connection();
    let value = |text: &str| json!([{ "type": "text", "text": text }]);
    let message = json!({
        "messaging_product": "whatsapp", "to": PHONE, "type": "template",
        "template": { "name": "shipped", "language": { "code": "en" }, "components": [
            { "type": "header", "parameters": value("4711") }, { "type": "body", "parameters": value("Sheena") },
        ] },
    });
    let url = format!("{}/{}/messages", connection.base_url, connection.number_id);
    let request = Request::post(url, message.to_string())
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", connection.access_token));
    assert_eq!(net.connector.send(request).await.unwrap().status, 200);
    let (_, chat) = ask(&net, Method::GET, &format!("/users/{PHONE}/chat"), None).await;
    let line = &chat["data"][0];
    assert_eq!(
        (&line["header"], &line["text"], &line["footer"]),
        (&json!("Order 4711"), &json!("Hello Sheena, it was shipped."), &json!("Reply STOP to opt out"))
    );
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let net = Net::start().await;
    let page = net.connector.send(Request::get(net.sim.connection().page)).await.unwrap();
    assert_eq!(page.status, 200);
    assert!(page.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(
        text.contains("<title>Chat simulator</title>")
            && !text.contains("http://")
            && !text.contains("https://")
    );
    for path in ["/page.js", "/page.css"] {
        let url = format!("{}{path}", net.sim.connection().page);
        assert_eq!(net.connector.send(Request::get(url)).await.unwrap().status, 200);
    }
}
