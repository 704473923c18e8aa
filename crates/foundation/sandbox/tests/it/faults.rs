//! Faults of the engine and its binding that were published: what they would do here. Each ends at most the worker, as its own fault,
//! and the next call works.

use crate::support::{function, run, run_with, sandbox, within};
use async_trait::async_trait;
use sandbox::{Call, Failure, Host, HostError, Sandbox};
use serde_json::Value;

/// A host that answers with the key.
struct Answers;

#[async_trait]
impl Host for Answers {
    async fn kv_get(&self, key: String) -> Result<Value, HostError> {
        if key == "no" { Err(HostError::new("No", "no")) } else { Ok(serde_json::json!({ "key": key })) }
    }
}

/// An honest call works, and the zygote is still the first.
async fn still_works(sandbox: &Sandbox) {
    assert_eq!(run(sandbox, &function("return 1 + 1"), "null").await.result.as_deref(), Ok("2"));
    assert_eq!(sandbox.stats().zygotes, 1);
}

/// CVE-2025-69654 (bellard/quickjs#468): with a limit of memory the engine aborts where an allocation fails that it does not check.
/// Here an allocation that fails ends the process before the engine sees it. Programs of all kinds meet the limit at many sizes.
#[tokio::test]
async fn cve_2025_69654_abort_under_a_memory_limit() {
    let sandbox = sandbox();
    let bodies = [
        "let a = []; for (;;) a = [a, a.slice(), { a }];",
        "let s = 'x'; for (;;) s = s + s + s.length;",
        "const m = new Map(); for (let n = 0; ; n++) m.set(n, { n });",
        "for (let all = []; ; ) all.push(new Error('x'));",
        "let f = () => 0; for (;;) { const g = f; f = () => g; f.f = f; }",
        "for (let n = 1n; ; ) n = n * n + 3n;",
        "const all = []; for (;;) all.push(/(a+)+$/.exec('a'.repeat(1000)));",
        "const all = []; for (;;) all.push(Promise.resolve().then(() => all));",
        "class A { #a = this; } const all = []; for (;;) all.push(new A());",
        "const o = {}; for (let n = 0; ; n++) o['key' + n] = JSON.stringify({ n });",
    ];
    for memory in [1 << 20, (1 << 20) + 4_096, 1_234_567, 2 << 20, 4 << 20] {
        for body in bodies {
            let call = Call { memory: Some(memory), ..within(5_000) };
            let result = run_with(&sandbox, &function(body), &call, &Answers).await.result;
            let is_limit = matches!(result, Err(Failure::Memory | Failure::Timeout));
            // The longest text and the largest number are limits of the language.
            let is_range = matches!(&result, Err(Failure::Thrown { name, .. }) if name == "RangeError" || name == "InternalError");
            assert!(is_limit || is_range, "{body} with {memory}: {result:?}");
        }
    }
    still_works(&sandbox).await;
}

/// DelSkayn/rquickjs#663: an interrupt in the middle of a job, a getter or a finally block left the engine in a state in which it
/// aborted. Here an interrupt ends the process in place.
#[tokio::test]
async fn rquickjs_663_abort_on_interrupt() {
    let sandbox = sandbox();
    for body in [
        "await null; for (;;);",
        "for (;;) await null;",
        "try { for (;;); } finally { for (;;); }",
        "Promise.resolve().then(() => { for (;;); }); await new Promise(() => 0);",
        "return { get a() { for (;;); } };",
        "return { toJSON() { for (;;); } };",
        "async function* g() { for (;;) yield 1; } for await (const _ of g());",
        "function* g() { try { yield 1; } finally { for (;;); } } for (const _ of g()) break;",
        "[1, 2].sort(() => { for (;;); });",
        "'a'.replace(/a/, () => { for (;;); });",
        "class A { static { for (;;); } }",
        "JSON.parse('[1]', () => { for (;;); });",
        "new Proxy({}, { get() { for (;;); } }).a;",
        "for (;;) { try { throw 1 } catch { continue } }",
    ] {
        let result = run_with(&sandbox, &function(body), &within(50), &Answers).await.result;
        assert_eq!(result, Err(Failure::Timeout), "{body}");
    }
    still_works(&sandbox).await;
}

/// caido/caido#2211: a runtime that lives long and makes many calls of its host aborts on a miscounted reference. Here each call has
/// a runtime of its own, and none makes more than a thousand calls of the host.
#[tokio::test]
async fn caido_2211_references_after_many_host_calls() {
    let sandbox = sandbox();
    let body = "
        let sum = 0, refused = 0;
        for (let n = 0; n < 99; n++) {
          const some = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8, 9].map((key) => ctx.kv.get(key + ' ' + n)));
          sum += some.filter((one, place) => one.key === `${place + 1} ${n}`).length;
          try { await ctx.kv.get('no') } catch { refused++ }
        }
        return [sum, refused];";
    for _ in 0..20 {
        let result = run_with(&sandbox, &function(body), &Call::new("null"), &Answers).await.result;
        assert_eq!(result.as_deref(), Ok("[891,99]"));
    }
    assert_eq!(sandbox.stats().workers, 1, "no process was lost");
    still_works(&sandbox).await;
}

/// CVE-2025-62495 and quickjs-ng#1399: native functions that run for long without asking whether to go on, or that shrink what they go
/// through. The parent's deadline ends them from outside.
#[tokio::test]
async fn cve_2025_62495_and_native_loops_that_never_ask() {
    let sandbox = sandbox();
    for body in [
        "return new Array(1e9).join()",
        "const a = { length: 2 ** 53 - 1 }; Array.prototype.reverse.call(a)",
        "return (2n ** 1000000n).toString().length",
        "const a = []; a.length = 4e9; a.sort(() => 0)",
    ] {
        let result = run_with(&sandbox, &function(body), &within(100), &Answers).await.result;
        assert!(matches!(result, Err(Failure::Timeout | Failure::Memory)), "{body}: {result:?}");
    }
    let body = "
        const a = Array.from({ length: 1000 }, (_, n) => n), b = new Uint8Array(new ArrayBuffer(64, { maxByteLength: 64 }));
        a.sort((x, y) => { a.length = 0; return x - y; });
        b.buffer.resize(0);
        return [a.length <= 1000, b.length, b.fill(1).length];";
    let result = run(&sandbox, &function(body), "null").await.result;
    assert_eq!(result.as_deref(), Ok("[true,0,0]"));
    still_works(&sandbox).await;
}
