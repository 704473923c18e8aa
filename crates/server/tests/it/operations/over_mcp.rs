//! Every operation over MCP: it gives what it gives over REST.
//!
//! The walk is that of the contract's examples, so a new operation is in it without a line here.

use crate::operations::document::Op;
use crate::operations::examples::{Answered, send_examples};
use crate::operations::sweep::Sweep;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use diesel::{QueryDsl, RunQueryDsl};
use model::Env;
use operation::schema::request_logs;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use testkit::{Answer, Key, Kind, TestApp};

/// Sends a message of the era with `initialize`, which needs none before it.
pub async fn rpc(app: &TestApp, key: &Key, query: &str, method: &str, params: Value) -> Answer {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let asking = app.ask("POST", &format!("/mcp{query}")).key(key);
    let asking = asking.header("accept", "application/json, text/event-stream");
    asking.header("mcp-protocol-version", "2025-11-25").json(&message).send().await
}

/// Calls a tool and returns the result of the call.
pub async fn call(app: &TestApp, key: &Key, name: &str, arguments: Value) -> Value {
    let answer = rpc(app, key, "", "tools/call", json!({ "name": name, "arguments": arguments })).await;
    assert_eq!(answer.status, 200, "{name}: {}", answer.text);
    answer.body["result"].clone()
}

/// An id or the name of a parameter in snake case.
pub fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The arguments of a tool for a request over REST.
fn arguments(op: &Op, path: &str, body: Option<&[u8]>) -> Map<String, Value> {
    let mut arguments: Map<String, Value> = match (op.streamed.as_deref(), body) {
        (Some("multipart/form-data"), _) => {
            let bytes = STANDARD.encode("Hello");
            json!({ "content_base64": bytes, "media_type": "text/x-declared", "name": "a.txt" })
                .as_object()
                .cloned()
                .unwrap()
        }
        (Some(_), _) => Map::from_iter([("content_base64".to_owned(), STANDARD.encode("Hello").into())]),
        (None, Some(body)) => serde_json::from_slice(body).unwrap(),
        (None, None) => Map::new(),
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let decode = |text: &str| operation::query_pairs(&format!("x={text}")).remove(0).1;
    let (mut given, mut names) = (path.split('/'), op.path.split('/'));
    while let (Some(name), Some(part)) = (names.next(), given.next()) {
        let Some(name) = name.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else { continue };
        let rest = if name == "path" { given.by_ref().collect::<Vec<_>>() } else { Vec::new() };
        let value = std::iter::once(part).chain(rest).collect::<Vec<_>>().join("/");
        if name != "workspaceId" {
            let name = if op.id == "moveItem" && name == "collectionId" {
                "path_collection_id".to_owned()
            } else {
                snake(name)
            };
            arguments.insert(name, decode(&value.replace('+', "%2B")).into());
        }
    }
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let (name, value) = (decode(name), Value::from(decode(value)));
        let mut parts = name.split('[').map(|part| part.trim_end_matches(']'));
        let (base, first, second) = (parts.next().unwrap(), parts.next(), parts.next());
        match (first, second) {
            (None, _) => {
                arguments.insert(base.to_owned(), value);
            }
            (Some(field), operator) => {
                let condition = operator.map_or(value.clone(), |operator| json!({ operator: value }));
                let conditions = arguments.entry(base).or_insert_with(|| json!({}));
                conditions[field] = condition;
            }
        }
    }
    arguments
}

/// Sends a request of an operation as a call of its tool. The answer has the status and the body that REST would give, as
/// far as a result tells them.
pub async fn send(sweep: &Sweep, op: &Op, path: &str, key: &Key, body: Option<&[u8]>) -> Answer {
    let name = format!("svc_{}", snake(&op.id));
    let params = json!({ "name": name, "arguments": arguments(op, path, body) });
    let mut answer = rpc(&sweep.app, key, "", "tools/call", params).await;
    assert_eq!(answer.status, 200, "{}: {}", op.id, answer.text);
    let result = answer.body["result"].clone();
    assert!(result.is_object(), "{}: {}", op.id, answer.text);
    if result["isError"] == true {
        let meta = &result["_meta"];
        let find = |name: &str| find(meta, name).cloned().unwrap_or(Value::Null);
        answer.status = u16::try_from(find("status").as_u64().unwrap()).unwrap();
        answer.body = json!({ "error": { "code": find("code"), "param": find("param") } });
        assert!(result.get("structuredContent").is_none(), "{}: {result}", op.id);
    } else {
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"], "{}: the text is the structured content", op.id);
        answer.body = text;
    }
    answer
}

/// A member of `_meta` by the end of its name, which may have a prefix.
fn find<'a>(meta: &'a Value, name: &str) -> Option<&'a Value> {
    meta.as_object()?.iter().find(|(key, _)| key.rsplit('/').next() == Some(name)).map(|(_, value)| value)
}

/// Parts of addresses with a port or a token.
const RANDOM: [&str; 2] = ["127.0.0.1:", "://svc.example/f/"];

/// A value without what two installations do not share: ids, tokens, signatures and ports, how long something took, the order of
/// rows of one moment, and the requests of the month, which are counted in memory and written after a while.
pub fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) if RANDOM.iter().any(|part| text.contains(part)) => json!("*"),
        Value::String(text) => {
            let is_random = text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| {
                let digits = word.bytes().filter(u8::is_ascii_digit).count();
                word.len() >= 12 && (digits > 0 || word.len() >= 24)
            });
            // Tokens in base64, whose marks may leave short words only.
            let is_mark = |letter: char| letter.is_ascii_alphanumeric() || "-_+/=".contains(letter);
            let has_token = text.split(|letter| !is_mark(letter)).any(|word| {
                let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
                word.len() >= 40 && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
            });
            if is_random || has_token { json!("*") } else { value.clone() }
        }
        Value::Array(rows) => {
            let mut rows: Vec<Value> = rows.iter().map(masked).collect();
            if rows.iter().all(Value::is_object) {
                rows.sort_by_cached_key(Value::to_string);
            }
            Value::Array(rows)
        }
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| {
                let is_measured = ["latency", "duration", "_ms", "took", "digest", "public_key", "requests"]
                    .iter()
                    .any(|word| name.contains(word));
                (name.clone(), if is_measured { json!("*") } else { masked(member) })
            });
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// The rows of the request log by request: all columns that do not differ from one request to the next.
async fn logged(app: TestApp) -> (BTreeMap<String, Value>, BTreeMap<String, Option<String>>) {
    use request_logs as l;
    type Row = (
        String,
        Option<String>,
        String,
        String,
        i64,
        Option<String>,
        Option<String>,
        Option<bool>,
        i64,
        bool,
        Option<String>,
    );
    // The database lasts as long as its guard.
    let data = app.stop().await;
    let rows: Vec<Row> = data
        .db
        .read(|read| {
            Ok(l::table
                .select((
                    l::id,
                    l::operation,
                    l::method,
                    l::path,
                    l::status,
                    l::code,
                    l::gate,
                    l::livemode,
                    l::energy,
                    l::replayed,
                    l::interface,
                ))
                .load(read.connection())?)
        })
        .await
        .unwrap();
    let interfaces = rows.iter().map(|row| (row.0.clone(), row.10.clone())).collect();
    let rows = rows.into_iter().map(
        |(id, operation, method, path, status, code, gate, live, energy, replayed, _)| {
            (id, masked(&json!([operation, method, path, status, code, gate, live, energy, replayed])))
        },
    );
    (rows.collect(), interfaces)
}

#[testkit::both]
async fn every_operation_gives_over_mcp_what_it_gives_over_rest(kind: Kind) {
    let rest = Sweep::of_api(kind).await;
    let mut mcp = Sweep::of_api(kind).await;
    let expected = send_examples(&rest, async |op| rest.key(op, true).clone()).await;
    mcp.is_over_mcp = true;
    let given = send_examples(&mcp, async |op| mcp.key(op, true).clone()).await;
    assert_eq!(expected.len(), given.len());
    let mut wrong = Vec::new();
    let pairs: Vec<(&Answered, &Answered)> =
        expected.iter().zip(&given).filter(|(expected, _)| !expected.op.json_rpc).collect();
    for (Answered { op, path, answer: expected, .. }, Answered { answer: given, .. }) in &pairs {
        let code = |answer: &Answer| answer.body["error"]["code"].clone();
        if expected.status >= 400 {
            if (expected.status, code(expected)) != (given.status, code(given)) {
                wrong.push(format!("{} {path}: {} {}", op.id, expected.text, given.text));
            }
            continue;
        }
        // A single object is the result itself; everything else has the members of the envelope.
        let data = masked(&expected.body["data"]);
        let is_single = data.is_object() && expected.body.as_object().unwrap().len() == 2;
        let shown = masked(if is_single { &given.body } else { &given.body["data"] });
        // A long list is cut at whole rows.
        let is_same = match (shown.as_array(), data.as_array()) {
            (Some(shown), Some(rows)) if given.body.get("cut").is_some() => {
                !shown.is_empty() && shown.iter().all(|row| rows.contains(row))
            }
            _ => shown == data,
        };
        if given.status != 200 || !is_same {
            wrong.push(format!("{} {path}:\n  {}\n  {}", op.id, expected.text, given.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let requests: Vec<(String, String, String)> = pairs
        .iter()
        .map(|(expected, given)| {
            let id = |answer: &Answer| answer.headers["x-request-id"].clone();
            (expected.op.id.clone(), id(&expected.answer), id(&given.answer))
        })
        .collect();
    let ((expected, _), (given, interfaces)) = (logged(rest.app).await, logged(mcp.app).await);
    for (operation, first, second) in requests {
        assert_eq!(expected[&first], given[&second], "{operation}: the row of the log");
        assert_eq!(interfaces[&second].as_deref(), Some("mcp"), "{operation}");
    }
}

#[testkit::both]
async fn refusals_by_scope_and_mode_are_the_same(kind: Kind) {
    let sweep = Sweep::of_api(kind).await;
    let workspace = sweep.workspace.parse().unwrap();
    let poor = sweep.app.key(workspace, Env::Live, &["mcp:use"]).await;
    let listed = async |key: &Key| -> Vec<String> {
        let answer = rpc(&sweep.app, key, "?toolsets=all", "tools/list", json!({})).await;
        let tools = answer.body["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let (poor_list, test_list) = (listed(&poor).await, listed(&sweep.keys[&(false, false)]).await);
    let mut operations = 0;
    for (document, op) in sweep.enveloped() {
        let name = format!("svc_{}", snake(&op.id));
        let ids = document.ids(&op).into_iter().map(|name| (name, "1".to_owned())).collect();
        let path = crate::operations::valid::address(&op, document, &ids);
        let needs = op.scope.as_deref().filter(|scope| *scope != "mcp:use");
        let cases = [
            (&poor, needs.map(|_| "missing_scope"), &poor_list),
            (&sweep.keys[&(false, false)], op.restricted.then_some("test_mode_restricted"), &test_list),
        ];
        for (key, code, list) in cases.into_iter().filter(|_| !op.partner_only) {
            assert_eq!(list.contains(&name), code.is_none(), "{name} in the list");
            let Some(code) = code else { continue };
            sweep.app.data.clock.advance(chrono::Duration::seconds(61));
            let rest = sweep.app.ask(&op.method, &path).key(key).send().await;
            let mcp = send(&sweep, &op, &path, key, None).await;
            let refusal = |answer: &Answer| {
                (answer.status, answer.body["error"]["code"].clone(), answer.body["error"]["param"].clone())
            };
            assert_eq!(refusal(&rest), refusal(&mcp), "{name}");
            assert_eq!(rest.body["error"]["code"], code, "{name}");
            operations += 1;
        }
    }
    assert!(operations > 200, "{operations} refusals were compared");
}
