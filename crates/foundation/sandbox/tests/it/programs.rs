//! What programs get and give.

use crate::support::{function, output, run, run_with, sandbox};
use sandbox::{
    BadOutput, BadValue, Call, Error, Failure, Fixed, Key, Landlock, Level, NoHost, Program, Secret,
};

#[tokio::test]
async fn a_function_gets_its_input_and_gives_its_output() {
    let sandbox = sandbox();
    let source = "export default async function (ctx) { return { sum: ctx.input.numbers.reduce((a, b) => a + b, 0) }; }";
    for _ in 0..3 {
        let outcome = run(&sandbox, source, r#"{"numbers":[1,2,3.5]}"#).await;
        assert_eq!(outcome.result, Ok(r#"{"sum":6.5}"#.to_owned()));
        assert!(outcome.peak_memory > 10_000);
    }
    let stats = sandbox.stats();
    assert_eq!((stats.zygotes, stats.workers, stats.calls, stats.idle), (1, 1, 3, 1));
}

#[tokio::test]
async fn the_system_of_the_tests_has_all_protection() {
    let protection = sandbox().protection().await.unwrap();
    assert_eq!((protection.landlock, protection.seccomp), (Landlock::Full, true));
}

#[tokio::test]
async fn values_of_every_kind_come_out_as_json() {
    let sandbox = sandbox();
    for (value, json) in [
        ("null", "null"),
        ("true", "true"),
        ("-0", "0"),
        ("1.5e300", "1.5e300"),
        ("1e21", "1e21"),
        ("123456789012345680000", "123456789012345680000"),
        ("5e-324", "5e-324"),
        ("2**53", "9007199254740992"),
        (r#""a\"\n\u2028é😀""#, "\"a\\\"\\n\u{2028}é😀\""),
        (r#""\ud800x""#, "\"\u{fffd}x\""),
        ("[1,[],{}]", "[1,[],{}]"),
        ("({a:undefined,b:1,[Symbol()]:2})", r#"{"b":1}"#),
        ("new Date(0)", r#""1970-01-01T00:00:00.000Z""#),
        ("({toJSON(){return [1]}})", "[1]"),
        ("Object.create({inherited:1},{own:{value:2,enumerable:true}})", r#"{"own":2}"#),
        ("(()=>{const o={};return [o,o]})()", "[{},{}]"),
        ("({then(resolve){resolve(7)}})", "7"),
    ] {
        assert_eq!(output(&sandbox, &format!("return {value};")).await, Ok(json.to_owned()), "{value}");
    }
}

#[tokio::test]
async fn an_output_that_is_none_says_why() {
    let sandbox = sandbox();
    for (value, why) in [
        ("undefined", BadOutput::Undefined),
        ("[undefined]", BadOutput::Undefined),
        ("[,1]", BadOutput::Undefined),
        ("NaN", BadOutput::NotFinite),
        ("{a:[Infinity]}", BadOutput::NotFinite),
        ("1n", BadOutput::BigInt),
        ("()=>1", BadOutput::Function),
        ("{a:class {}}", BadOutput::Function),
        ("Symbol()", BadOutput::Symbol),
        ("(()=>{const o={};o.o=[o];return o})()", BadOutput::Cycle),
        ("JSON.parse('['.repeat(1000)+']'.repeat(1000))", BadOutput::Depth),
        ("'x'.repeat(256*1024+1)", BadOutput::Size),
        ("Array(300000).fill(0)", BadOutput::Size),
    ] {
        let source = function(&format!("return ({value});"));
        assert_eq!(run(&sandbox, &source, "null").await.result, Err(Failure::Output(why)), "{value}");
    }
}

#[tokio::test]
async fn what_does_not_compile_names_line_and_column() {
    let sandbox = sandbox();
    for (source, place) in [
        ("export default function () {\n  return 1 +;\n}", (2, 13)),
        ("let a = 1; let a = 2;", (1, 0)),
        ("await 1; export default () => { await 2 }", (1, 0)),
        ("with (Math) {}", (1, 0)),
        ("\u{0}", (0, 0)),
        ("import x from 'y'; export default () => x", (0, 0)),
        ("import * as os from 'os'; export default () => 1", (0, 0)),
        ("export { default } from './other.js'", (0, 0)),
    ] {
        let failure = sandbox.compile("ws", &Program::new(source)).await.unwrap().unwrap_err();
        let Failure::Compile { message, line, column } = &failure else { panic!("{source}: {failure:?}") };
        assert!(!message.is_empty(), "{source}");
        assert_eq!(*line, place.0, "{source}: {failure:?}");
        if place.1 > 0 {
            assert_eq!(*column, place.1, "{source}: {failure:?}");
        }
    }
}

#[tokio::test]
async fn a_check_finds_what_is_no_function() {
    let sandbox = sandbox();
    for (source, failure) in [
        ("", Failure::NoDefaultExport),
        ("export const a = 1;", Failure::NoDefaultExport),
        ("export default 5", Failure::DefaultIsNoFunction),
        ("export default { call() {} }", Failure::DefaultIsNoFunction),
        ("await new Promise(() => {}); export default () => 1", Failure::NeverSettles),
        ("for (;;) {} export default () => 1", Failure::Timeout),
    ] {
        assert_eq!(sandbox.compile("ws", &Program::new(source)).await.unwrap(), Err(failure), "{source}");
    }
    for source in [
        "export default () => 1",
        "export default class { }",
        "const f = async () => 2; export { f as default }",
    ] {
        assert_eq!(sandbox.compile("ws", &Program::new(source)).await.unwrap(), Ok(()), "{source}");
    }
}

#[tokio::test]
async fn a_program_that_throws_names_the_authors_lines() {
    let sandbox = sandbox();
    let source = "function inner() {\n  throw new TypeError('no');\n}\nexport default async function outer() {\n  await 1;\n  inner();\n}";
    let Err(Failure::Thrown { name, message, stack, retry_after }) =
        run(&sandbox, source, "null").await.result
    else {
        panic!()
    };
    assert_eq!((name.as_str(), message.as_str(), retry_after), ("TypeError", "no", None));
    let lines: Vec<&str> = stack.lines().collect();
    assert!(lines[0].contains("inner") && lines[0].contains("function.js:2:"), "{stack}");
    assert!(lines[1].contains("outer") && lines[1].contains("function.js:6:"), "{stack}");
    assert_eq!(lines.len(), 2, "{stack}");
}

#[tokio::test]
async fn anything_can_be_thrown() {
    let sandbox = sandbox();
    for (thrown, name, message) in [
        ("'text'", "Error", "text"),
        ("null", "Error", "null"),
        ("undefined", "Error", "undefined"),
        ("Symbol('x')", "Error", ""),
        ("({})", "Error", ""),
        ("({name:'A',message:'b'})", "A", "b"),
        ("({get name(){throw 1},get message(){throw 2},get stack(){throw 3}})", "Error", ""),
        ("new Proxy({},{get(){throw 1}})", "Error", ""),
        ("new Error('\\ud800')", "Error", ""),
    ] {
        let outcome = output(&sandbox, &format!("throw {thrown};")).await;
        let Err(Failure::Thrown { name: n, message: m, .. }) = outcome else {
            panic!("{thrown}: {outcome:?}")
        };
        assert_eq!((n.as_str(), m.as_str()), (name, message), "{thrown}");
    }
    let long = output(&sandbox, "throw new Error('é'.repeat(100000));").await;
    let Err(Failure::Thrown { message, .. }) = long else { panic!("{long:?}") };
    assert_eq!(message.chars().count(), 500);
    let retry = output(&sandbox, "throw new RetryableError(1500);").await;
    assert!(matches!(retry, Err(Failure::Thrown { retry_after: Some(1500), .. })), "{retry:?}");
}

#[tokio::test]
async fn a_promise_that_nothing_settles_ends_the_call() {
    let sandbox = sandbox();
    assert_eq!(output(&sandbox, "await new Promise(() => {});").await, Err(Failure::NeverSettles));
}

#[tokio::test]
async fn an_input_is_exact_or_refused() {
    let sandbox = sandbox();
    let source = function("return ctx.input;");
    assert_eq!(
        run(&sandbox, &source, "[9007199254740992,0.1]").await.result,
        Ok("[9007199254740992,0.1]".to_owned())
    );
    let key = Key { workspace: "ws".to_owned(), version: "1".to_owned() };
    for (input, why) in [
        ("9007199254740993", BadValue::Number("9007199254740993".to_owned())),
        ("{", BadValue::NotJson),
        (&*format!("\"{}\"", "x".repeat(256 << 10)), BadValue::TooLarge(256 << 10)),
        (&*format!("{}{}", "[".repeat(101), "]".repeat(101)), BadValue::TooDeep(100)),
    ] {
        let refused =
            sandbox.call(&key, &Program::new(&source), &Call::new(input), &NoHost).await.unwrap_err();
        assert_eq!(refused, Error::Given { what: "input", why });
    }
    let long = Program::new(&" ".repeat((256 << 10) + 1));
    let refused = sandbox.call(&key, &long, &Call::new("1"), &NoHost).await.unwrap_err();
    assert_eq!(refused, Error::Given { what: "code", why: BadValue::TooLarge(256 << 10) });
}

#[tokio::test]
async fn the_context_has_what_the_call_gives() {
    let sandbox = sandbox();
    let call = Call {
        vars: r#"{"shop":"Bö"}"#.to_owned(),
        secrets: vec![Secret { name: "TOKEN".to_owned(), placeholder: "secret-1".to_owned() }],
        contact: Some(r#"{"id":"con_1"}"#.to_owned()),
        run: Some(r#"{"id":"run_1"}"#.to_owned()),
        idempotency_key: Some("key".to_owned()),
        livemode: false,
        ..Call::new("1")
    };
    let source = function(
        "return [ctx.input, ctx.vars.shop, ctx.secrets.TOKEN, ctx.contact.id, ctx.run.id, ctx.idempotencyKey, ctx.livemode];",
    );
    let outcome = run_with(&sandbox, &source, &call, &NoHost).await;
    assert_eq!(outcome.result, Ok(r#"[1,"Bö","secret-1","con_1","run_1","key",false]"#.to_owned()));
    let source = function("return [ctx.contact, ctx.run, ctx.idempotencyKey, ctx.livemode];");
    assert_eq!(run(&sandbox, &source, "1").await.result, Ok("[null,null,null,true]".to_owned()));
}

#[tokio::test]
async fn the_log_is_kept_and_cut() {
    let sandbox = sandbox();
    let outcome = run(
        &sandbox,
        &function("ctx.log('a', 1, {b:[2]}); console.error(new Error('c')); console.debug(); console.warn('\\ud800'); return 1;"),
        "null",
    )
    .await;
    let lines: Vec<_> = outcome.logs.iter().map(|line| (line.level, line.text.as_str())).collect();
    assert_eq!(
        lines,
        [
            (Level::Info, r#"a 1 {"b":[2]}"#),
            (Level::Error, "Error: c"),
            (Level::Debug, ""),
            (Level::Warn, "\u{fffd}"),
        ]
    );
    assert!(!outcome.logs_truncated);
    let outcome = run(
        &sandbox,
        &function("for (let i = 0; i < 100; i++) ctx.log('x'.repeat(5000)); return 1;"),
        "null",
    )
    .await;
    assert_eq!(outcome.result, Ok("1".to_owned()));
    assert!(outcome.logs_truncated);
    let bytes: usize = outcome.logs.iter().map(|line| line.text.len()).sum();
    assert!(bytes <= 64 << 10 && bytes > 60_000, "{bytes}");
    // What was logged before the end is there although the process is not.
    let outcome = run(&sandbox, &function("ctx.log('before'); new Uint8Array(1e9);"), "null").await;
    assert_eq!((outcome.result, outcome.logs.len()), (Err(Failure::Memory), 1));
}

#[tokio::test]
async fn a_test_has_a_fixed_clock_and_seed() {
    let sandbox = sandbox();
    let source = function(
        "return [Date.now(), new Date().toISOString(), new Date(5).getTime(), Math.random(), crypto.randomUUID(), \
         Date.UTC(1970, 0), new Date() instanceof Date, Date() === new Date(Date.now()).toString()];",
    );
    let call = Call { fixed: Some(Fixed { now: 1_700_000_000_000, seed: 7 }), ..Call::new("null") };
    let first = run_with(&sandbox, &source, &call, &NoHost).await.result.unwrap();
    let second = run_with(&sandbox, &source, &call, &NoHost).await.result.unwrap();
    assert_eq!(first, second);
    assert!(first.starts_with(r#"[1700000000000,"2023-11-14T22:13:20.000Z",5,0."#), "{first}");
    assert!(first.ends_with(",0,true,true]"), "{first}");
    let other = Call { fixed: Some(Fixed { now: 1_700_000_000_000, seed: 8 }), ..Call::new("null") };
    assert_ne!(first, run_with(&sandbox, &source, &other, &NoHost).await.result.unwrap());
}

#[tokio::test]
async fn the_globals_of_the_web_work() {
    let sandbox = sandbox();
    for (code, json) in [
        (
            "new URL('../b?x=1#h', 'https://u:p@example.com:8443/a/c').href",
            r#""https://u:p@example.com:8443/b?x=1#h""#,
        ),
        (
            "(()=>{const u=new URL('https://a.example/?q=1');u.searchParams.set('q','ä &');u.hash='z';return u.href})()",
            r#""https://a.example/?q=%C3%A4+%26#z""#,
        ),
        ("new URL('https://a.example/?a=1&b=%20+').searchParams.get('b')", "\"  \""),
        ("[...new URLSearchParams({a:1,b:'é'})].join()", r#""a,1,b,é""#),
        ("URL.canParse('nope')", "false"),
        ("(()=>{try{new URL('nope')}catch(e){return e.name}})()", r#""TypeError""#),
        ("[...new TextEncoder().encode('é😀')]", "[195,169,240,159,152,128]"),
        ("new TextDecoder().decode(new Uint8Array([0xef,0xbb,0xbf,0xc3,0xa9,0xff]))", "\"é\u{fffd}\""),
        (
            "(()=>{try{new TextDecoder('utf-8',{fatal:true}).decode(new Uint8Array([255]))}catch(e){return e.name}})()",
            r#""TypeError""#,
        ),
        ("btoa('Hello')+atob(' SGVsbG8 ')", r#""SGVsbG8=Hello""#),
        (
            "crypto.digest('sha256','abc')",
            r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#,
        ),
        (
            "crypto.hmac('SHA-256','key','The quick brown fox jumps over the lazy dog')",
            r#""f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8""#,
        ),
        (
            "new Uint8Array(await crypto.subtle.digest({name:'SHA-1'}, new TextEncoder().encode('abc'))).length",
            "20",
        ),
        (
            "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
            "true",
        ),
        ("crypto.getRandomValues(new Uint8Array(8)).length", "8"),
        (
            "(()=>{const a={d:new Date(1),m:new Map([[1,{}]]),s:new Set([2]),b:new Uint8Array([3]),r:/x/g};a.self=a;const c=structuredClone(a);return [c!==a,c.self===c,c.d.getTime(),c.m.get(1),c.s.has(2),c.b[0],c.r.flags]})()",
            r#"[true,true,1,{},true,3,"g"]"#,
        ),
        ("(()=>{try{structuredClone(()=>1)}catch(e){return e.name}})()", r#""DataCloneError""#),
        (
            "[typeof eval, typeof setTimeout, typeof require, typeof process, typeof WeakRef, typeof FinalizationRegistry, typeof performance].join()",
            r#""undefined,undefined,undefined,undefined,undefined,undefined,undefined""#,
        ),
        ("new Date(0).getTimezoneOffset()", "0"),
    ] {
        assert_eq!(output(&sandbox, &format!("return {code};")).await, Ok(json.to_owned()), "{code}");
    }
}

#[tokio::test]
async fn code_cannot_be_made_from_text() {
    let sandbox = sandbox();
    for code in [
        "new Function('return 1')()",
        "Function('return 1')()",
        "(()=>1).constructor('return 1')()",
        "(async()=>1).constructor('return 1')()",
        "(function*(){}).constructor('return 1')()",
        "(async function*(){}).constructor('return 1')()",
        "class A extends Function{}; new A('return 1')",
        "Reflect.construct((()=>1).constructor, ['return 1'])",
        "Object.getPrototypeOf((async()=>1).constructor)('return 1')()",
        "eval('1')",
        "globalThis.eval('1')",
        "await import('x')",
        "await import('data:text/javascript,export default 1')",
    ] {
        let result = output(&sandbox, &format!("{code}; return 'made';")).await;
        assert!(matches!(result, Err(Failure::Thrown { .. })), "{code}: {result:?}");
    }
    let ordinary = "return [(()=>1) instanceof Function, typeof (()=>1).call]";
    assert_eq!(output(&sandbox, ordinary).await, Ok(r#"[true,"function"]"#.to_owned()));
}
