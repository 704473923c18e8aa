//! Programs that want more than their share.
//!
//! Each row of the table has the body of a function, and its end. All run with a short deadline; a call with an honest program
//! after each row shows that nothing is left over.

use crate::support::{function, run, run_with, sandbox, within};
use sandbox::{Failure, NoHost, Sandbox};
use std::time::{Duration, Instant};

/// How a hostile program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The deadline passes.
    Timeout,
    /// The memory is not enough.
    Memory,
    /// The deadline passes or the memory is not enough, whichever is first.
    Cut,
    /// The stack is not enough.
    Stack,
    /// It throws: the engine refused.
    Throws,
    /// It gives an output that harms nobody.
    Fine,
    /// Its output is refused.
    Output,
    /// It waits for nothing.
    NeverSettles,
}

use Ends::{Cut, Fine, Memory, NeverSettles, Output, Stack, Throws, Timeout};

const LOOPS: &[(&str, Ends)] = &[
    // In the program's own code.
    ("for (;;) {}", Timeout),
    ("while (true) try { for (;;) {} } catch {} finally { continue }", Timeout),
    ("do { try { throw 1 } finally { continue } } while (true)", Timeout),
    ("const f = () => { for (;;) {} }; [1, 2].sort(f)", Timeout),
    ("[1].map(() => { for (;;) {} })", Timeout),
    ("'x'.replace(/x/, () => { for (;;) {} })", Timeout),
    ("JSON.parse('[1]', () => { for (;;) {} })", Timeout),
    ("JSON.stringify({ toJSON() { for (;;) {} } })", Timeout),
    ("(function* () { for (;;) yield 1 })().toArray?.() ?? [...(function* () { for (;;) yield })()]", Cut),
    ("for (const x of { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) }) {}", Timeout),
    ("label: for (;;) { for (;;) continue label }", Timeout),
    ("class A { static { for (;;) {} } }", Timeout),
    // In getters, conversions and proxies, also while the sandbox reads the output or the error.
    ("return { get x() { for (;;) {} } }", Timeout),
    ("return { toJSON() { for (;;) {} } }", Timeout),
    ("return new Proxy({}, { ownKeys() { for (;;) {} } })", Timeout),
    ("return new Proxy({ a: 1 }, { get() { for (;;) {} } })", Timeout),
    ("throw { get name() { for (;;) {} } }", Timeout),
    ("throw { get message() { for (;;) {} } }", Timeout),
    ("throw { name: { toString() { for (;;) {} } } }", Timeout),
    ("throw new Proxy(new Error(), { get() { for (;;) {} } })", Timeout),
    ("`${{ toString() { for (;;) {} } }}`", Timeout),
    ("+{ valueOf() { for (;;) {} } }", Timeout),
    ("new Proxy({}, { has() { for (;;) {} } }).x; 'x' in new Proxy({}, { has() { for (;;) {} } })", Timeout),
    ("ctx.log({ toJSON() { for (;;) {} } })", Timeout),
    // In jobs.
    ("const f = () => Promise.resolve().then(f); await f()", Cut),
    ("for (;;) await 0", Timeout),
    ("await { then() { for (;;) {} } }", Timeout),
    ("return { then(resolve) { resolve(this) } }", Timeout),
    ("Promise.resolve().then(() => { for (;;) {} }); await new Promise(() => {})", Timeout),
    // In functions of the engine that never ask whether to go on. A fast machine runs out of memory before the deadline.
    ("new Array(2 ** 32 - 1).join()", Cut),
    ("new Array(1e9) + ''", Cut),
    ("Array.prototype.join.call({ length: 2 ** 53 - 1 })", Cut),
    ("Array.prototype.reverse.call({ length: 2 ** 53 - 1 })", Cut),
    ("new Array(2 ** 32 - 1).sort()", Cut),
    ("Array.prototype.sort.call({ length: 2 ** 40 })", Cut),
    ("Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", Cut),
    ("Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)", Cut),
    ("Array.prototype.lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)", Cut),
    ("Array.prototype.fill.call({ length: 2 ** 53 - 1 }, 1)", Cut),
    ("Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 1)", Cut),
    ("Array.prototype.unshift.call({ length: 2 ** 53 - 2 }, 1)", Cut),
    ("Array.prototype.splice.call({ length: 2 ** 53 - 2 }, 0, 1)", Cut),
    ("Array.prototype.forEach.call({ length: 2 ** 53 - 1 }, () => 1)", Cut),
    ("new Array(2 ** 32 - 1).toLocaleString()", Cut),
    (
        "Array.prototype.at.call({ length: 2 ** 53 - 1 }, 0); new Array(2 ** 32 - 1).findLastIndex(() => 0)",
        Cut,
    ),
    ("for (;;) (2n ** 1000000n).toString()", Cut),
    ("for (let a = 7n; ; a = a * a % (2n ** 60000n)) {}", Cut),
    ("/^(a+)+$/.test('a'.repeat(50) + 'b')", Cut),
    ("/(?=(a+))*b/.test('a'.repeat(30000)); /(x+x+)+y/.test('x'.repeat(50))", Cut),
    ("/(.*)*\\1x/.test('ab'.repeat(50))", Cut),
    ("'a'.repeat(1e5).split('').map((_, i, all) => all.join('')).length", Cut),
    ("'x'.repeat(2e6).replaceAll('x', m => m + '').replaceAll(/(?:x*)*y/g, '')", Cut),
    ("let s = 'ab'.repeat(5e6); for (;;) s.lastIndexOf('ba'.repeat(2e6) + 'c')", Cut),
    ("let s = 'é'.repeat(2e6); for (;;) s.normalize('NFD').normalize('NFC')", Cut),
];

const BOMBS: &[(&str, Ends)] = &[
    // Memory.
    ("const a = []; for (;;) a.push(a.slice())", Memory),
    ("const a = []; for (;;) a.push({})", Memory),
    ("let o = {}; for (;;) o = { o }", Memory),
    ("const m = new Map(); for (let i = 0; ; i++) m.set(i, i)", Memory),
    ("for (let i = 0, o = {}; ; i++) o['k' + i] = i", Memory),
    ("for (let i = 0; ; i++) globalThis['g' + i] = Symbol.for('s' + i)", Memory),
    ("new Uint8Array(1e9)", Memory),
    ("new ArrayBuffer(2 ** 31)", Throws),
    ("new ArrayBuffer(8, { maxByteLength: 2 ** 30 }).resize(2 ** 30)", Memory),
    ("new Array(1e8).fill(0)", Memory),
    ("try { new Uint8Array(1e9) } catch { for (;;) {} }", Memory),
    ("const keep = []; for (;;) try { keep.push(new Uint8Array(1 << 20)) } catch {}", Memory),
    ("return structuredClone(new Array(3e7))", Output),
    ("Array.from({ length: 1e9 })", Memory),
    ("[...'x'.repeat(2e7)]", Memory),
    ("'x,'.repeat(1e7).split(',')", Memory),
    ("JSON.parse('[' + '0,'.repeat(1e7) + '0]')", Memory),
    ("const p = []; for (;;) p.push(new Promise(() => {}))", Memory),
    ("for (;;) Promise.resolve().then(() => 1)", Memory),
    ("new Function.prototype.constructor('')", Throws),
    ("const a = 2n ** 500000000n; return 1", Throws),
    ("1n << (1n << 40n)", Throws),
    // Texts.
    ("'x'.repeat(2 ** 30)", Throws),
    ("'x'.padEnd(2 ** 30)", Throws),
    ("let s = 'x'; for (;;) s += s", Throws),
    ("let s = '€'.repeat(1e6); for (;;) s = s + s.split('').reverse().join('')", Memory),
    ("'x'.repeat(3e7).toUpperCase()", Memory),
    ("btoa('x'.repeat(1e7))", Memory),
    ("escape('€'.repeat(5e6)) + encodeURIComponent('€'.repeat(5e6))", Memory),
    ("return 'x'.repeat(1e6)", Output),
    ("return Array(1e6).fill(1)", Output),
    ("return Array(256).fill('\\u0000'.repeat(256))", Output),
    // Stack.
    ("const f = () => f() + 1; f()", Stack),
    ("const f = () => [1].map(f); f()", Stack),
    ("const o = { get x() { return this.x } }; o.x", Stack),
    ("const o = { toString() { return '' + this } }; '' + o", Stack),
    ("const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.x", Stack),
    ("class A { constructor() { new A() } } new A()", Stack),
    ("let f = () => {}; for (let i = 0; i < 3e4; i++) f = f.bind(); f()", Memory),
    ("JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))", Stack),
    ("let o = []; for (let i = 0; i < 1e5; i++) o = [o]; JSON.stringify(o)", Stack),
    ("let o = []; for (let i = 0; i < 1e5; i++) o = [o]; o.flat(Infinity)", Stack),
    ("let o = []; for (let i = 0; i < 1e5; i++) o = [o]; return o", Output),
    ("let o = []; for (let i = 0; i < 1e5; i++) o = [o]; return 1", Fine),
    ("let p = Promise.resolve(); for (let i = 0; i < 1e4; i++) p = p.then(() => p); return 1", Fine),
    ("new RegExp('('.repeat(1e5) + ')'.repeat(1e5))", Throws),
    ("new RegExp('(?:'.repeat(20000) + 'a' + ')*'.repeat(20000)).test('a'.repeat(100))", Throws),
    (
        "/(?:(?=a)){0,65535}/.test('a'); new RegExp('(?:a{0,1000}){0,1000}'.repeat(20)).test('a'.repeat(1000)); return 1",
        Fine,
    ),
    // Promises.
    ("async function f() { await f() } await f()", Stack),
    ("await new Promise(() => {})", NeverSettles),
    ("await Promise.race([])", NeverSettles),
    ("BigInt('9'.repeat(3000000)) % 7n", Throws),
    // The engine's own inner life.
    ("Error.prepareStackTrace = () => { throw 1 }; throw new Error('x')", Throws),
    (
        "Error.stackTraceLimit = 1e9; const f = (n) => n ? f(n - 1) : new Error('x').stack.length; return f(500) > 0",
        Fine,
    ),
    ("Object.prototype.then = function (resolve) { resolve(5) }; return 1", Fine),
    ("Array.prototype[Symbol.iterator] = () => { throw new Error('x') }; const [a] = [1]", Throws),
    ("Promise.prototype.then = () => { throw new Error('x') }; await 1; return Promise.resolve(1)", Throws),
    (
        "Object.defineProperty(Object.prototype, 'toJSON', { get() { throw new Error('x') } }); return {}",
        Throws,
    ),
    ("JSON.stringify = () => { throw new Error('x') }; ctx.log({ a: 1 }); return 1", Fine),
    ("String.prototype.toWellFormed = () => 5; ctx.log('x'); return 1", Throws),
    ("String.prototype.toWellFormed = () => '\\ud800'; ctx.log('x'); return 1", Throws),
    ("globalThis.Promise = undefined; globalThis.Object = null; return [await 1]", Fine),
    (
        "delete globalThis.globalThis; for (const k of Reflect.ownKeys(this ?? {})) delete this[k]; return 1",
        Fine,
    ),
    ("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", Throws),
    (
        "const b = new ArrayBuffer(8); const a = new Uint8Array(b); b.transfer?.(); crypto.digest('SHA-256', a); return 1",
        Throws,
    ),
    (
        "const b = new ArrayBuffer(8, { maxByteLength: 16 }); const a = new Uint8Array(b, 4); b.resize(2); return [a.length, a[0] ?? null]",
        Fine,
    ),
    ("const a = [1, 2, 3]; a.sort(() => { a.length = 0; return 1 }); return a", Output),
    (
        "const a = [1, 2, 3]; Object.defineProperty(a, 1, { get() { a.length = 0; return 9 } }); return a",
        Output,
    ),
    ("const o = { get a() { delete o.b; return 1 }, b: 2 }; return o", Fine),
    (
        "const m = new Map([[1, 1]]); m.forEach((v, k) => { m.delete(k); if (k < 1e5) m.set(k + 1, 1) }); return m.size",
        Fine,
    ),
];

fn ends(result: &Result<String, Failure>) -> Option<Ends> {
    Some(match result {
        Ok(_) => Fine,
        Err(Failure::Timeout) => Timeout,
        Err(Failure::Memory) => Memory,
        Err(Failure::Stack) => Stack,
        Err(Failure::Thrown { .. }) => Throws,
        Err(Failure::Output(_)) => Output,
        Err(Failure::NeverSettles) => NeverSettles,
        Err(_) => return None,
    })
}

/// Runs each row, and an honest program after it, with one sandbox.
async fn hold(sandbox: &Sandbox, table: &[(&str, Ends)], deadline: u64) {
    let honest = function("return 'honest';");
    let mut wrong = Vec::new();
    for (body, expected) in table {
        let started = Instant::now();
        let outcome = run_with(sandbox, &function(body), &within(deadline), &NoHost).await;
        let took = started.elapsed();
        let was = ends(&outcome.result);
        let as_expected = was == Some(*expected) || *expected == Cut && matches!(was, Some(Timeout | Memory));
        if !as_expected {
            wrong.push(format!("{body}\n    expected {expected:?}, was {:?} after {took:?}", outcome.result));
        }
        assert!(took < Duration::from_secs(30), "{body}: {took:?}");
        assert_eq!(run(sandbox, &honest, "null").await.result, Ok("\"honest\"".to_owned()), "after {body}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(sandbox.stats().zygotes, 1);
}

#[tokio::test]
async fn endless_loops_end() {
    hold(&sandbox(), LOOPS, 300).await;
}

#[tokio::test]
async fn bombs_do_not_explode() {
    hold(&sandbox(), BOMBS, 20_000).await;
}
