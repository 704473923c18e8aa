//! The history of calls, repetitions and crashes.

use crate::{body, create, invoke, with};
use auth::keys;
use chrono::Duration;
use model::{Caller, FunctionId, JsonText, Principal, RequestId, RunId, StepId};
use ports::{FunctionCall, FunctionCaller, Uncallable, WorkspaceFunctions};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{Key, Kind, TestApp};

/// A program that counts its calls in `ctx.kv`.
const COUNT: &str = "export default async (ctx) => {\n  const n = ((await ctx.kv.get('n')) ?? 0) + 1;\n  \
                     await ctx.kv.set('n', n);\n  return n;\n}";

async fn counter(app: &TestApp, key: &Key) -> String {
    create(app, key, with(body("counter", COUNT), json!({ "effect": "write", "publish": true }))).await
}

/// Makes the last calls look as if their processes had ended in the middle of them.
async fn forget_ends(app: &TestApp) {
    app.sql("UPDATE function_invocations SET status = 'running', output = NULL, ended_at = NULL, lease_until = created_at").await;
}

fn id_of(path: &str) -> FunctionId {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// A caller with this key, as an agent's run would be one.
async fn caller(app: &TestApp, key: &Key) -> Caller {
    let id = key.id.clone();
    let stored = app.db().read(move |read| keys::by_id(read, &id)).await.unwrap();
    let workspace = app.service.pipeline.directory.workspace(key.workspace).await.unwrap().unwrap();
    Caller {
        request: RequestId::new(app.db().now(), &*app.db().random()),
        key: Arc::new(stored.key),
        principal: Principal::Key,
        workspace,
        idempotency_key: None,
        trace: None,
        actor: None,
        answering: None,
        chain: None,
    }
}

fn call(caller: &Caller, path: &str, once: &str) -> FunctionCall {
    let now = model::Timestamp::from_millis(1_800_000_000_000);
    let random = model::SeededRandom::new(1);
    FunctionCall {
        caller: caller.clone(),
        function: id_of(path),
        version: None,
        input: JsonText::of(&json!({})),
        hidden: Vec::new(),
        by: FunctionCaller::Run { run: RunId::new(now, &random), step: StepId::new(now, &random) },
        contact: None,
        once: once.to_owned(),
        patience: std::time::Duration::from_secs(20),
    }
}

#[testkit::both]
async fn a_call_whose_process_is_gone_ends_as_interrupted(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let path = counter(&app, &key).await;
    let made = invoke(&app, &key, &path, json!({})).await.expect(200);
    assert_eq!(made["output"], json!(1));
    forget_ends(&app).await;
    let one = format!("{path}/invocations/{}", made["id"].as_str().unwrap());
    assert_eq!(app.get(&one, &key).await.expect(200)["status"], json!("running"));
    app.data.clock.advance(Duration::minutes(2));
    app.service.jobs.run_due().await.unwrap();
    let ended = app.get(&one, &key).await.expect(200);
    assert_eq!((&ended["status"], &ended["output"]), (&json!("failed"), &Value::Null));
    assert_eq!(ended["error"]["code"], json!("function_interrupted"));
}

#[testkit::both]
async fn a_resend_after_a_crash_calls_nothing_twice(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let path = counter(&app, &key).await;
    let invoke = format!("{path}/invoke");
    let ask = async || {
        app.ask("POST", &invoke).key(&key).header("Idempotency-Key", "once").json(&json!({})).send().await
    };
    let first = ask().await.expect(200);
    assert_eq!(ask().await.expect(200), first);
    // The server died before it answered: the call had ended.
    let died =
        "UPDATE idempotency_keys SET state = 'claimed', status = NULL, body = NULL, lease_until = expires_at";
    app.sql(died).await;
    app.sql("UPDATE idempotency_keys SET lease_until = '2020-01-01 00:00:00'").await;
    assert_eq!(ask().await.expect(200), first);
    // It died before the call had ended.
    app.sql(died).await;
    app.sql("UPDATE idempotency_keys SET lease_until = '2020-01-01 00:00:00'").await;
    forget_ends(&app).await;
    let second = ask().await.expect(200);
    assert_eq!((&second["id"], &second["status"]), (&first["id"], &json!("failed")));
    assert_eq!(second["error"]["code"], json!("function_interrupted"));
    let next = crate::invoke(&app, &key, &path, json!({})).await.expect(200);
    assert_eq!(next["output"], json!(2));
}

#[testkit::both]
async fn a_step_of_a_run_calls_once(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let path = counter(&app, &key).await;
    let functions: WorkspaceFunctions = app.service.pipeline.services.cloned().unwrap();
    let caller = caller(&app, &key).await;
    let first = functions.call(call(&caller, &path, "step")).await.unwrap();
    assert_eq!(first.result.unwrap().as_str(), "1");
    let again = functions.call(call(&caller, &path, "step")).await.unwrap();
    assert_eq!((again.invocation, again.result.unwrap().as_str()), (first.invocation.clone(), "1"));
    let other = functions.call(call(&caller, &path, "other")).await.unwrap();
    assert_eq!(other.result.unwrap().as_str(), "2");
    let shown = app.get(&format!("{path}/invocations/{}", first.invocation), &key).await.expect(200);
    assert_eq!((&shown["caller"]["type"], &shown["depth"]), (&json!("run"), &json!(0)));
    // The process of the second call is gone.
    forget_ends(&app).await;
    let interrupted = functions.call(call(&caller, &path, "other")).await.unwrap();
    assert_eq!(interrupted.result.unwrap_err().code, "function_interrupted");
    // A day later the key is forgotten.
    app.data.clock.advance(Duration::hours(25));
    let later = functions.call(call(&caller, &path, "step")).await.unwrap();
    assert_eq!(later.result.unwrap().as_str(), "3");
    let once = create(
        &app,
        &key,
        with(body("read", "export default () => Math.random()"), json!({ "publish": true })),
    )
    .await;
    let first = functions.call(call(&caller, &once, "step")).await.unwrap();
    let again = functions.call(call(&caller, &once, "step")).await.unwrap();
    assert_eq!((again.invocation, again.result.unwrap()), (first.invocation, first.result.unwrap()));
}

#[testkit::both]
async fn agents_see_what_can_be_called(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let functions: WorkspaceFunctions = app.service.pipeline.services.cloned().unwrap();
    let path =
        create(&app, &key, with(body("f", "export default () => 1"), json!({ "description": "One." }))).await;
    let callable = async |version| {
        let (functions, id, workspace) = (functions.clone(), id_of(&path), key.workspace);
        app.db().read(move |read| functions.callable(read, workspace, id, version)).await.unwrap()
    };
    assert_eq!(callable(None).await.unwrap_err(), Uncallable::NotPublished);
    app.post(&format!("{path}/publish"), &key, json!({})).await.expect(200);
    let published = callable(None).await.unwrap();
    assert_eq!(
        (published.version, published.name.as_str(), published.description.as_str()),
        (1, "f", "One.")
    );
    assert!(!published.is_test_only);
    assert_eq!(callable(Some(2)).await.unwrap_err(), Uncallable::NotPublished);
    app.patch(&path, &key, json!({ "status": "inactive" })).await.expect(200);
    assert_eq!(callable(Some(1)).await.unwrap_err(), Uncallable::Inactive);
    app.delete(&path, &key).await.expect(200);
    assert_eq!(callable(None).await.unwrap_err(), Uncallable::Missing);
}

#[testkit::both]
async fn the_sizes_of_the_log_are_counted(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let path = counter(&app, &key).await;
    for _ in 0..3 {
        invoke(&app, &key, &path, json!({ "input": "x".repeat(1000) })).await.expect(200);
    }
    invoke(&app, &key, &path, json!({ "input": "x".repeat(1000), "mode": "test" })).await.expect(200);
    let logs = app.service.logs.clone();
    let sizes = app.db().read(move |read| logs.sizes(read)).await.unwrap();
    let size = sizes.into_iter().find(|size| size.log == "function_invocations").unwrap();
    assert_eq!(size.size.rows, 4);
    let log = functions::INVOCATION_LOG;
    let bytes = app.db().read(move |read| {
        use diesel::RunQueryDsl;
        let sql =
            format!("SELECT CAST(sum({}) AS BIGINT) AS n FROM function_invocations", log.bytes_of_row(read));
        Ok(diesel::sql_query(sql).get_result::<Number>(read.connection())?.n)
    });
    assert_eq!(bytes.await.unwrap(), size.size.bytes);
    // Two weeks later the log is empty.
    app.data.clock.advance(Duration::days(15));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(app.get(&format!("{path}/invocations"), &key).await.expect(200), json!([]));
}

#[derive(diesel::QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

#[testkit::both]
async fn secrets_are_not_in_the_history(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let secret = "a-long-secret-of-the-shop";
    let variable = json!({ "key": "shop.token", "type": "secret", "value": secret });
    app.post("/variables", &key, variable).await.expect(201);
    let listed = json!({
        "effect": "write", "publish": true, "variables": ["shop.token"],
        "network": { "mode": "allowlist", "hosts": ["api.example.com"] },
    });
    let function = create(&app, &key, with(body("echo", crate::ECHO), listed)).await;
    let answer = invoke(&app, &key, &function, json!({ "input": { "said": secret } })).await.expect(200);
    let masked = json!({ "said": "[secret]" });
    assert_eq!((&answer["input"], &answer["output"]["got"]), (&masked, &masked));
    let call = format!("{function}/invocations/{}", answer["id"].as_str().unwrap());
    assert_eq!(app.get(&call, &key).await.expect(200)["input"], masked);
}
