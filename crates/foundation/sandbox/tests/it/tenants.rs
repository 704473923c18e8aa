//! Calls of two tenants that share a pool of workers: what one leaves behind, the other never sees.

use crate::support::{function, sandbox};
use futures::StreamExt;
use sandbox::{Call, Key, NoHost, Program, Sandbox};

/// Calls of both tenants together. A million with `SVC_TEST_MARKED_CALLS=1000000`.
fn calls() -> usize {
    std::env::var("SVC_TEST_MARKED_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(1_000)
}

/// Leaves its mark wherever something might outlive a call, and returns all that it finds there.
const BODY: &str = "
    const mark = ctx.input, found = [];
    const look = (value) => { if (value !== undefined) found.push(String(value)); };
    look(globalThis.mark); look(Array.prototype.mark); look(Object.prototype.mark); look(kept.mark);
    look(Math.mark); look(Promise.mark); look(fetch.mark); look(console.mark);
    for (const one of [globalThis, Array.prototype, Object.prototype, kept, Math, Promise, fetch, console]) {
      try { Object.defineProperty(one, 'mark', { value: mark, configurable: true }); } catch {}
    }
    // Memory that was another call's, if it were not cleared.
    for (let size = 16; size <= 65536; size *= 4) {
      if (new Uint8Array(size).some((byte) => byte !== 0)) found.push('memory of ' + size);
    }
    const text = (mark + '|').repeat(64);
    return { mark, found, text: text.length };";

async fn call(sandbox: &Sandbox, program: &Program, number: usize) {
    let tenant = if number.is_multiple_of(2) { "first" } else { "second" };
    let key = Key { workspace: tenant.to_owned(), version: "the same function".to_owned() };
    let mark = format!("mark of {tenant} {number}");
    let input = format!("\"{mark}\"");
    let outcome = sandbox.call(&key, program, &Call::new(&input), &NoHost).await.unwrap();
    let length = (mark.len() + 1) * 64;
    let expected = format!(r#"{{"mark":{input},"found":[],"text":{length}}}"#);
    assert_eq!(outcome.result.unwrap(), expected);
    assert!(outcome.logs.is_empty());
}

#[tokio::test]
async fn marks_of_one_tenant_are_never_seen_by_the_other() {
    let sandbox = sandbox();
    let program = Program::new(&format!("const kept = {{}};\n{}", function(BODY)));
    let calls = futures::stream::iter(0..calls()).map(|number| call(&sandbox, &program, number));
    calls.buffer_unordered(16).collect::<Vec<()>>().await;
    let stats = sandbox.stats();
    assert_eq!((stats.zygotes, stats.running, stats.waiting), (1, 0, 0));
    // They did share processes with earlier calls of their own.
    assert!(stats.workers < stats.calls / 10, "{stats:?}");
}
