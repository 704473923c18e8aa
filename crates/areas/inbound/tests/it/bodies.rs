//! Bodies as senders write them: long numbers, other encodings, JSON that is called something else.

use crate::webhooks::{at, bare, log, made, path};
use serde_json::{Value, json};
use testkit::{Answer, Kind, MessageSent, Receiver, TestApp};

/// Posts a body a moment later, so that it is the newest of the log.
async fn post(app: &TestApp, webhook: &Value, content_type: &str, body: &[u8]) -> Answer {
    app.data.clock.advance(chrono::Duration::milliseconds(1));
    app.ask_beside("POST", &path(webhook)).bytes(content_type, body).send().await
}

#[testkit::both]
async fn long_numbers_keep_their_digits(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let dedupe = json!({ "by": "json_path", "path": "$.id" });
    let vars = json!({
        "id": { "from": "$.id" }, "text": { "from": "$.id", "type": "string" }, "number": { "from": "$.id", "type": "number" },
        "whole": { "from": "$.id", "type": "integer" }, "rate": { "from": "$.rate" },
    });
    let webhook = made(&app, &key, json!({ "dedupe": dedupe, "mapping": { "vars": vars } })).await;
    for id in
        ["12345678901234567890123", "12345678901234567890124", "18446744073709551616", "18446744073709551615"]
    {
        let body = format!(r#"{{"id":{id},"rate":0.1234567890123456789}}"#);
        assert_eq!(post(&app, &webhook, "application/json", body.as_bytes()).await.status, 202, "{id}");
        assert_eq!(post(&app, &webhook, "application/json", body.as_bytes()).await.status, 200, "{id}");
        let row =
            log(&app, &key, &webhook).await.into_iter().find(|row| row["status"] == "processed").unwrap();
        let vars = &row["result"]["vars"];
        for name in ["id", "text", "number", "whole"] {
            assert_eq!(vars[name].to_string().trim_matches('"'), id, "{name}");
        }
        assert_eq!(vars["rate"], "0.1234567890123456789");
        app.deliver().await;
        let event =
            app.get(&format!("/events/{}", row["event_id"].as_str().unwrap()), &key).await.expect(200);
        assert_eq!(event["data"]["body"]["id"].to_string().trim_matches('"'), id);
        assert_eq!(event["data"]["vars"], *vars);
    }
}

#[testkit::both]
async fn one_number_is_one_key_however_it_is_written(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({ "dedupe": { "by": "json_path", "path": "$.id" } })).await;
    for (body, status) in [
        (r#"{"id":1}"#, 202),
        (r#"{"id":1.0}"#, 200),
        (r#"{"id":1e0}"#, 200),
        (r#"{"id":"1"}"#, 202),
        (r#"{"id":1.5}"#, 202),
        (r#"{"id":[1.0,2]}"#, 202),
        (r#"{"id":[1,2.0]}"#, 200),
        (r#"{"id":0.1234567890123456789}"#, 202),
        (r#"{"id":0.1234567890123456788}"#, 202),
    ] {
        assert_eq!(post(&app, &webhook, "application/json", body.as_bytes()).await.status, status, "{body}");
    }
}

#[testkit::both]
async fn conditions_compare_all_digits(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    for (op, wanted, number, holds) in [
        ("eq", json!(u64::MAX), "18446744073709551615", true),
        ("eq", json!(u64::MAX), "18446744073709551614", false),
        ("eq", json!(u64::MAX), "\"18446744073709551614\"", false),
        ("eq", json!(1), "1.0", true),
        ("eq", json!([1]), "[1.0]", true),
        ("gt", json!(u64::MAX), "18446744073709551616", true),
        ("lt", json!(u64::MAX), "18446744073709551616", false),
        ("gte", json!(9_007_199_254_740_993_i64), "9007199254740992", false),
        ("eq", json!("12345678901234567890123"), "12345678901234567890123", true),
    ] {
        let condition = json!({ "from": "$.n", "op": op, "value": wanted });
        let webhook = made(&app, &key, json!({ "mapping": { "conditions": [condition] } })).await;
        assert_eq!(
            post(&app, &webhook, "application/json", format!("{{\"n\":{number}}}").as_bytes()).await.status,
            202
        );
        let status = if holds { "processed" } else { "unmatched" };
        assert_eq!(log(&app, &key, &webhook).await[0]["status"], status, "{number} {op} {wanted}");
    }
}

#[testkit::both]
async fn json_that_is_not_quite_right_makes_an_event(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let mapping = json!({
        "conditions": [{ "from": "$.status", "op": "eq", "value": "paid" }], "vars": { "name": { "from": "$.name" } },
    });
    let webhook = made(&app, &key, json!({ "mapping": mapping })).await;
    let wide: Vec<u8> = "\u{feff}{\"name\":\"Ana ñ\",\"status\":\"paid\"}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (content_type, body, name) in [
        ("application/json", &b"\xef\xbb\xbf{\"name\":\"Ana\",\"status\":\"paid\"}"[..], "Ana"),
        ("application/json", &wide, "Ana ñ"),
        ("application/json", br#"{"name":"Ana \ud83d","status":"paid"}"#, "Ana \u{fffd}"),
        ("application/json", br#"{"name":"Ana \ude00","status":"paid"}"#, "Ana \u{fffd}"),
        ("application/json", br#"{"name":"Ana \ud83d\ude00","status":"paid"}"#, "Ana 😀"),
        ("application/json", b"{\"name\":\"Mu\xf1oz\",\"status\":\"paid\"}", "Mu\u{fffd}oz"),
        ("application/json; charset=iso-8859-1", b"{\"name\":\"Mu\xf1oz\",\"status\":\"paid\"}", "Muñoz"),
        ("text/plain; charset=UTF-8", b"{\"name\":\"SNS\",\"status\":\"paid\"}", "SNS"),
        ("application/x-www-form-urlencoded", b"{\"name\":\"curl\",\"status\":\"paid\"}", "curl"),
        ("application/x-www-form-urlencoded", b"name=Mu%F1oz&charset=windows-1252&status=paid", "Muñoz"),
        (
            "application/x-www-form-urlencoded; charset=windows-1252",
            b"name=%80+Mu%F1oz&status=paid",
            "€ Muñoz",
        ),
        ("application/x-www-form-urlencoded", b"_charset_=iso-8859-15&name=%A4&status=paid", "€"),
    ] {
        assert_eq!(post(&app, &webhook, content_type, body).await.status, 202);
        let row = log(&app, &key, &webhook).await.remove(0);
        assert_eq!(
            (&row["status"], &row["result"]["vars"]["name"]),
            (&json!("processed"), &json!(name)),
            "{content_type} {row}"
        );
    }
    // Without a content type.
    app.data.clock.advance(chrono::Duration::milliseconds(1));
    let request = format!(
        "POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: 31\r\nconnection: close\r\n\r\n{{\"name\":\"bare\",\"status\":\"paid\"}}",
        path(&webhook)
    );
    assert_eq!(app.raw(request.as_bytes()).await.status, 202);
    assert_eq!(log(&app, &key, &webhook).await[0]["result"]["vars"]["name"], "bare");
    // What is no JSON says so in the log.
    for body in [&b"{\"status\":\"paid\",}"[..], b"{\"status\":\"paid\"", b"{'status':'paid'}"] {
        assert_eq!(post(&app, &webhook, "application/json", body).await.status, 202);
        let row = log(&app, &key, &webhook).await.remove(0);
        assert_eq!((&row["status"], &row["error"]["param"]), (&json!("unmatched"), &json!("body")));
    }
    // A stored body is read as it was read when it came.
    let form = "application/x-www-form-urlencoded; charset=windows-1252";
    assert_eq!(post(&app, &webhook, form, b"name=%80+Mu%F1oz&status=paid").await.status, 202);
    let preview =
        app.patch(&format!("{}?dry_run=true", at(&webhook)), &key, json!({ "mapping": mapping })).await;
    assert!(preview.expect(200)["preview"].to_string().contains("€ Muñoz"), "{}", preview.text);
}

#[testkit::both]
async fn filters_compare_numbers_by_value(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let receiver = Receiver::start().await;
    let conditions = [
        (r"7.0", true),
        (r#"{"$eq":7.0}"#, true),
        (r#"{"$in":[7e0]}"#, true),
        (r#"{"$ne":7.0}"#, false),
        (r#"{"$nin":[1,7.0]}"#, false),
        (r#"{"$gte":7.0,"$lte":7.0}"#, true),
        (r#""7""#, false),
    ];
    for (number, (condition, _)) in conditions.iter().enumerate() {
        let condition: Value = serde_json::from_str(condition).unwrap();
        let more = json!({ "filter": { "data.contact_id": condition } });
        app.subscribe(&key, &receiver.url(&format!("/{number}")), more).await;
    }
    app.emit(key.workspace, MessageSent::new(7, "a")).await;
    app.deliver().await;
    let mut paths: Vec<String> = receiver.delivered().into_iter().map(|sent| sent.path).collect();
    paths.sort();
    let wanted: Vec<String> = conditions
        .iter()
        .enumerate()
        .filter(|(_, (_, passes))| *passes)
        .map(|(number, _)| format!("/{number}"))
        .collect();
    assert_eq!(paths, wanted);
}
