//! What programs ask of the outside.

use crate::support::{function, run_with, sandbox, settings, within};
use async_trait::async_trait;
use sandbox::{Call, Failure, FetchRequest, FetchResponse, Host, HostError, NoHost, Sandbox};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Barrier;

/// Answers from memory, and keeps what it was asked.
#[derive(Default)]
struct Memory {
    requests: Mutex<Vec<FetchRequest>>,
    kept: Mutex<BTreeMap<String, Value>>,
    together: AtomicUsize,
    most_together: AtomicUsize,
    /// Where set, fetches answer when this many have come.
    barrier: Option<Barrier>,
}

#[async_trait]
impl Host for Memory {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, HostError> {
        let together = self.together.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_together.fetch_max(together, Ordering::SeqCst);
        if let Some(barrier) = &self.barrier {
            barrier.wait().await;
        }
        self.together.fetch_sub(1, Ordering::SeqCst);
        let url = request.url.clone();
        if url.contains("denied") {
            return Err(HostError::new("NetworkDenied", "the host is not in the list"));
        }
        let body = if url.contains("large") { vec![b'x'; 6 << 20] } else { request.body.clone() };
        self.requests.lock().unwrap().push(request);
        let headers =
            vec![("content-type".to_owned(), "text/plain".to_owned()), ("x".to_owned(), "ä".to_owned())];
        Ok(FetchResponse { status: 201, url, headers, body })
    }

    async fn find_items(&self, collection: String, query: Value) -> Result<Value, HostError> {
        Ok(json!([{ "collection": collection, "query": query }]))
    }

    async fn get_item(&self, collection: String, id: String) -> Result<Value, HostError> {
        if id == "none" {
            return Err(HostError::new("NotFound", "there is no such item"));
        }
        Ok(json!({ "id": id, "collection": collection }))
    }

    async fn kv_get(&self, key: String) -> Result<Value, HostError> {
        Ok(self.kept.lock().unwrap().get(&key).cloned().unwrap_or(Value::Null))
    }

    async fn kv_set(&self, key: String, value: Value) -> Result<(), HostError> {
        self.kept.lock().unwrap().insert(key, value);
        Ok(())
    }

    async fn kv_delete(&self, key: String) -> Result<(), HostError> {
        self.kept.lock().unwrap().remove(&key);
        Ok(())
    }
}

async fn ask(sandbox: &Sandbox, body: &str, host: &dyn Host) -> Result<Value, Failure> {
    let outcome = run_with(sandbox, &function(body), &Call::new("null"), host).await;
    outcome.result.map(|json| serde_json::from_str(&json).unwrap())
}

#[tokio::test]
async fn a_fetch_goes_through_the_host() {
    let (sandbox, host) = (sandbox(), Memory::default());
    let body = "const r = await ctx.fetch('https://a.example/x', { method: 'post', headers: { 'X-Key': 'é' }, body: 'grüße' });
        return [r.status, r.ok, r.url, r.headers.get('Content-Type'), r.headers.has('nope'), r.headers.get('x'), await r.text()];";
    let answer = ask(&sandbox, body, &host).await.unwrap();
    assert_eq!(answer, json!([201, true, "https://a.example/x", "text/plain", false, "ä", "grüße"]));
    let requests = host.requests.lock().unwrap().clone();
    assert_eq!(
        requests,
        [FetchRequest {
            method: "POST".to_owned(),
            url: "https://a.example/x".to_owned(),
            headers: vec![("x-key".to_owned(), "é".to_owned())],
            body: "grüße".into(),
        }]
    );
}

#[tokio::test]
async fn bodies_are_bytes_and_texts() {
    let (sandbox, host) = (sandbox(), Memory::default());
    for (body, seen) in [
        ("new Uint8Array([0, 255, 1])", json!([0, 255, 1])),
        ("new Uint8Array([1, 2, 3, 4]).subarray(1, 3)", json!([2, 3])),
        ("new Uint16Array([513]).buffer", json!([1, 2])),
        ("new URLSearchParams({ a: 'b' })", json!([97, 61, 98])),
        ("undefined", json!([])),
        ("''", json!([])),
    ] {
        let body = format!(
            "return [...await (await fetch(new URL('https://a.example'), {{ method: 'PUT', body: {body} }})).bytes()];"
        );
        assert_eq!(ask(&sandbox, &body, &host).await, Ok(seen), "{body}");
    }
    let json = "return (await (await fetch('https://a.example', { body: JSON.stringify({ a: [1] }) })).json()).a[0];";
    assert_eq!(ask(&sandbox, json, &host).await, Ok(json!(1)));
    let object = ask(&sandbox, "await fetch('https://a.example', { body: { a: 1 } });", &host).await;
    assert!(matches!(object, Err(Failure::Thrown { name, .. }) if name == "TypeError"));
}

#[tokio::test]
async fn a_refusal_can_be_caught_and_names_the_line() {
    let (sandbox, host) = (sandbox(), Memory::default());
    let caught = "try { await fetch('https://denied.example') } catch (e) { return [e instanceof Error, e.name, e.message] }";
    assert_eq!(
        ask(&sandbox, caught, &host).await,
        Ok(json!([true, "NetworkDenied", "the host is not in the list"]))
    );
    let thrown = ask(&sandbox, "\nawait ctx.items.get('c', 'none');", &host).await;
    let Err(Failure::Thrown { name, .. }) = thrown else { panic!("{thrown:?}") };
    assert_eq!(name, "NotFound");
    let absent = "const no = async (f) => { try { await f() } catch (e) { return e.name } };
        return [await no(() => fetch('https://a.example')), await no(() => ctx.items.find('a')), await no(() => ctx.kv.get('a')),
                await no(() => ctx.kv.set('a', 1)), await no(() => ctx.kv.delete('a')), await no(() => ctx.items.get('a', 'b'))];";
    assert_eq!(ask(&sandbox, absent, &NoHost).await, Ok(json!(vec!["NotAvailable"; 6])));
}

#[tokio::test]
async fn items_and_kept_values_go_through_the_host() {
    let (sandbox, host) = (sandbox(), Memory::default());
    let body = "await ctx.kv.set('k', { n: 1, t: 'é' }); const before = await ctx.kv.get('k'); await ctx.kv.delete('k');
        return [before, await ctx.kv.get('k'), await ctx.items.find('orders', { limit: 2 }), await ctx.items.get('orders', 'itm_1')];";
    assert_eq!(
        ask(&sandbox, body, &host).await,
        Ok(json!([
            { "n": 1, "t": "é" },
            null,
            [{ "collection": "orders", "query": { "limit": 2 } }],
            { "id": "itm_1", "collection": "orders" }
        ]))
    );
}

#[tokio::test]
async fn host_calls_run_together_within_their_number() {
    // Each fetch waits for four others: one after the other they would never end.
    let (sandbox, host) = (sandbox(), Memory { barrier: Some(Barrier::new(5)), ..Memory::default() });
    let body = "const all = await Promise.all([1, 2, 3, 4, 5].map((n) => fetch('https://a.example/' + n))); return all.map((r) => r.url.at(-1));";
    assert_eq!(ask(&sandbox, body, &host).await, Ok(json!(["1", "2", "3", "4", "5"])));
    let mut settings = settings();
    settings.limits.parallel_host_calls = 2;
    settings.limits.fetches = 40;
    let (sandbox, host) =
        (Sandbox::new(settings), Memory { barrier: Some(Barrier::new(2)), ..Memory::default() });
    let body = "return (await Promise.all(Array.from({ length: 40 }, (_, n) => fetch('https://a.example/' + n)))).length;";
    assert_eq!(ask(&sandbox, body, &host).await, Ok(json!(40)));
    assert_eq!(host.most_together.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_was_asked_is_done_although_nobody_waits() {
    let (sandbox, host) = (sandbox(), Memory::default());
    assert_eq!(ask(&sandbox, "fetch('https://a.example/1'); return 1;", &host).await, Ok(json!(1)));
    assert_eq!(host.requests.lock().unwrap().len(), 1);
    assert!(ask(&sandbox, "fetch('https://a.example/2'); throw new Error('x');", &host).await.is_err());
    assert_eq!(host.requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn requests_answers_and_numbers_have_limits() {
    let mut settings = settings();
    settings.limits.host_calls = 30;
    let (sandbox, host) = (Sandbox::new(settings), Memory::default());
    for (body, name) in [
        ("await fetch('https://large.example')", "LimitError"),
        ("await fetch('https://a.example', { body: 'x'.repeat((1 << 20) + 1) })", "RangeError"),
        ("await ctx.kv.set('k', 'x'.repeat(1 << 20))", "RangeError"),
        ("for (let i = 0; i < 11; i++) await fetch('https://a.example')", "LimitError"),
        ("for (let i = 0; i < 31; i++) await ctx.kv.get('k')", "RangeError"),
        ("await ctx.kv.set('k', () => 1)", "TypeError"),
        ("await ctx.kv.set('k', undefined)", "TypeError"),
        ("await ctx.items.find('c', 1n)", "TypeError"),
        ("JSON.stringify = () => '{\"call\":\"shell\"}'; await ctx.kv.get('k')", "TypeError"),
        ("JSON.stringify = () => 'x'; await ctx.kv.get('k')", "TypeError"),
    ] {
        let result = ask(&sandbox, body, &host).await;
        assert!(matches!(&result, Err(Failure::Thrown { name: n, .. }) if n == name), "{body}: {result:?}");
    }
}

#[tokio::test]
async fn an_endless_loop_of_host_calls_ends() {
    let (sandbox, host) = (sandbox(), Memory::default());
    let source = function("for (;;) { try { await ctx.kv.get('k') } catch {} }");
    let outcome = run_with(&sandbox, &source, &within(3_000), &host).await;
    assert_eq!((outcome.result, outcome.host_calls), (Err(Failure::Timeout), 1_000));
}

#[tokio::test]
async fn a_host_that_never_answers_ends_with_the_deadline() {
    let (sandbox, host) = (sandbox(), Memory { barrier: Some(Barrier::new(2)), ..Memory::default() });
    let outcome =
        run_with(&sandbox, &function("await fetch('https://a.example');"), &within(1_000), &host).await;
    assert_eq!((outcome.result, outcome.host_calls), (Err(Failure::Timeout), 1));
}
