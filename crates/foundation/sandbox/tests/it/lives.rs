//! Processes: when they are used again, and when they end.

use crate::support::{function, key, output, run, run_with, sandbox, settings, within};
use async_trait::async_trait;
use sandbox::{Call, Effect, Error, Failure, Host, HostError, Key, NoHost, Program, Sandbox};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// Waits until `condition` holds.
async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen within 30 seconds");
}

fn children(process: u32) -> Vec<u32> {
    let children =
        std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    children.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Whether a process runs: one that has ended and is not yet collected does not.
fn runs(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
}

#[tokio::test]
async fn the_next_call_finds_nothing_of_the_last() {
    let sandbox = sandbox();
    let source = function(
        "const before = [globalThis.left, Object.prototype.left, [].left, Math.left, ctx.left, typeof Array.prototype.map,
             JSON.stringify({}), module.left].map((x) => x ?? null);
         globalThis.left = Object.prototype.left = Math.left = ctx.left = module.left = 'left';
         Array.prototype.map = undefined; JSON.stringify = () => 'tampered'; Array.prototype.left = 1;
         Object.freeze(Object.prototype);
         return before;",
    );
    let source = format!("const module = {{}};\n{source}");
    for _ in 0..20 {
        let outcome = run(&sandbox, &source, "null").await;
        assert_eq!(outcome.result, Ok(r#"[null,null,null,null,null,"function","{}",null]"#.to_owned()));
    }
    assert_eq!(sandbox.stats().workers, 1);
}

#[tokio::test]
async fn two_keys_never_share_a_process() {
    let sandbox = sandbox();
    let program = Program::new("export default (ctx) => ctx.input");
    let keys = [("a", "1"), ("a", "2"), ("b", "1")];
    for round in 0..50 {
        for (workspace, version) in keys {
            let key = Key { workspace: workspace.to_owned(), version: version.to_owned() };
            let mark = format!("\"{workspace}{version}{round}\"");
            let outcome = sandbox.call(&key, &program, &Call::new(&mark), &NoHost).await.unwrap();
            assert_eq!(outcome.result, Ok(mark));
        }
    }
    assert_eq!((sandbox.stats().workers, sandbox.stats().idle), (3, 3));
}

#[tokio::test]
async fn one_key_with_another_program_gets_another_process() {
    let sandbox = sandbox();
    for n in ["1", "2", "1"] {
        let program = Program::new(&format!("export default () => {n}"));
        let outcome = sandbox.call(&key("1"), &program, &Call::new("null"), &NoHost).await.unwrap();
        assert_eq!(outcome.result, Ok(n.to_owned()));
    }
    assert_eq!(sandbox.stats().workers, 3);
}

#[tokio::test]
async fn a_process_ends_after_its_calls_and_strict_calls_share_none() {
    let mut settings = settings();
    settings.calls_per_worker = 3;
    let sandbox = Sandbox::new(settings.clone());
    for _ in 0..7 {
        output(&sandbox, "return 1;").await.unwrap();
    }
    assert_eq!((sandbox.stats().workers, sandbox.stats().idle), (3, 1));
    let strict = Call { strict: true, ..Call::new("null") };
    for _ in 0..3 {
        run_with(&sandbox, &function("return 1;"), &strict, &NoHost).await.result.unwrap();
    }
    assert_eq!((sandbox.stats().workers, sandbox.stats().idle), (6, 1));
    settings.calls_per_worker = 1;
    let sandbox = Sandbox::new(settings);
    for _ in 0..3 {
        output(&sandbox, "return 1;").await.unwrap();
    }
    assert_eq!((sandbox.stats().workers, sandbox.stats().idle), (3, 0));
}

#[tokio::test]
async fn a_process_ends_after_an_unclean_end_and_not_after_a_clean_one() {
    let sandbox = sandbox();
    for (body, stays) in [
        ("return 1;", 1),
        ("throw new Error('x');", 1),
        ("return undefined;", 1),
        ("await new Promise(() => {});", 1),
        ("for (;;) {}", 0),
        ("new Uint8Array(1e9);", 0),
        ("const f = () => f() + 1; f();", 0),
        ("new Array(2 ** 32 - 1).sort();", 0),
    ] {
        let key = key(body);
        let before = sandbox.stats().idle;
        let _ = sandbox.call(&key, &Program::new(&function(body)), &within(2_000), &NoHost).await.unwrap();
        assert_eq!(sandbox.stats().idle - before, stays, "{body}");
    }
}

#[tokio::test]
async fn a_process_without_calls_ends() {
    let mut settings = settings();
    settings.idle = Duration::from_millis(100);
    let sandbox = Sandbox::new(settings);
    for _ in 0..2 {
        output(&sandbox, "return 1;").await.unwrap();
        let zygote = sandbox.zygote_process().await.unwrap();
        eventually("the worker's end", || {
            sandbox.stats().idle == 0 && !children(zygote).into_iter().any(runs)
        })
        .await;
    }
    assert_eq!(sandbox.stats().zygotes, 1);
}

#[tokio::test]
async fn no_more_than_so_many_processes_wait() {
    let mut settings = settings();
    settings.idle_workers = 2;
    let sandbox = Sandbox::new(settings);
    for n in 0..5 {
        output(&sandbox, &format!("return {n};")).await.unwrap();
    }
    assert_eq!((sandbox.stats().workers, sandbox.stats().idle), (5, 2));
    // The latest stayed.
    output(&sandbox, "return 4;").await.unwrap();
    assert_eq!(sandbox.stats().workers, 5);
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_its_process() {
    let sandbox = sandbox();
    output(&sandbox, "return 1;").await.unwrap();
    let zygote = sandbox.zygote_process().await.unwrap();
    let call = {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { output(&sandbox, "for (;;) {}").await })
    };
    eventually("the second worker's start", || children(zygote).len() == 2).await;
    call.abort();
    eventually("its end", || children(zygote).into_iter().filter(|one| runs(*one)).count() == 1).await;
    assert_eq!(sandbox.stats().running, 0);
}

#[tokio::test]
async fn processes_end_with_the_sandbox() {
    let sandbox = sandbox();
    output(&sandbox, "return 1;").await.unwrap();
    let zygote = sandbox.zygote_process().await.unwrap();
    let workers = children(zygote);
    assert_eq!(workers.len(), 1);
    drop(sandbox);
    eventually("the end of all", || !runs(zygote) && !workers.iter().any(|one| runs(*one))).await;
}

#[tokio::test]
async fn processes_end_with_a_parent_that_is_killed() {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_sandbox-fixture"))
        .arg("parent")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let zygote: u32 = line.trim().parse().unwrap();
    let workers = children(zygote);
    assert_eq!(workers.len(), 1, "a worker runs");
    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually("the end of all", || !runs(zygote) && !workers.iter().any(|one| runs(*one))).await;
}

#[tokio::test]
async fn places_are_few_and_waiting_ends() {
    let mut settings = settings();
    (settings.workspace_calls, settings.patience) = (1, Duration::from_millis(50));
    let sandbox = Sandbox::new(settings);
    let looping = {
        let sandbox = sandbox.clone();
        tokio::spawn(
            async move { run_with(&sandbox, &function("for (;;) {}"), &within(20_000), &NoHost).await },
        )
    };
    eventually("the start", || sandbox.stats().running == 1).await;
    let program = Program::new("export default () => 1");
    let busy = sandbox.call(&key("2"), &program, &Call::new("1"), &NoHost).await;
    assert_eq!(busy.unwrap_err(), Error::Busy);
    let other = Key { workspace: "other".to_owned(), version: "1".to_owned() };
    assert!(sandbox.call(&other, &program, &Call::new("1"), &NoHost).await.unwrap().result.is_ok());
    looping.abort();
}

#[tokio::test]
async fn endless_loops_of_one_workspace_do_not_hold_up_another() {
    let sandbox = sandbox();
    let mut looping = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let sandbox = sandbox.clone();
        looping.spawn(async move {
            let key = Key { workspace: "loops".to_owned(), version: "1".to_owned() };
            let program = Program::new("export default () => { for (;;) {} }");
            sandbox.call(&key, &program, &within(30_000), &NoHost).await.map(|outcome| outcome.result)
        });
    }
    eventually("the loops' start", || sandbox.stats().running == 20 && sandbox.stats().waiting == 80).await;
    for _ in 0..20 {
        assert_eq!(output(&sandbox, "return 1;").await, Ok("1".to_owned()));
    }
    // Still only the loops' share.
    assert_eq!(sandbox.stats().running, 20);
    looping.shutdown().await;
    assert_eq!(sandbox.stats().running, 0);
}

/// Counts what each call did.
#[derive(Default)]
struct Counting(Mutex<Vec<String>>);

#[async_trait]
impl Host for Counting {
    async fn kv_set(&self, key: String, _value: Value) -> Result<(), HostError> {
        self.0.lock().unwrap().push(key);
        Ok(())
    }
}

/// A call that leaves its mark once, and gives it back, or ends as lost.
async fn marked(sandbox: Sandbox, host: std::sync::Arc<Counting>, number: usize) {
    let source = function("await ctx.kv.set(ctx.input, 1); return ctx.input;");
    let input = format!("\"call-{number}-\"");
    let call = Call { effect: Effect::Write, ..Call::new(&input) };
    match sandbox.call(&key("1"), &Program::new(&source), &call, &*host).await {
        Ok(outcome) => match outcome.result {
            Ok(mark) => assert_eq!(mark, input),
            Err(failure) => assert_eq!(failure, Failure::Crashed),
        },
        Err(error) => assert_eq!(error, Error::Interrupted),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zygote_and_workers_are_killed_and_no_call_is_lost_or_made_twice() {
    const CALLS: usize = 400;
    let sandbox = sandbox();
    let host = std::sync::Arc::new(Counting::default());
    let mut calls = tokio::task::JoinSet::new();
    let (mut good, mut ended) = (0, 0);
    for number in 0..CALLS {
        if calls.len() >= 8 {
            calls.join_next().await.unwrap().unwrap_or_else(|error| panic!("{error}"));
        }
        calls.spawn(marked(sandbox.clone(), host.clone(), number));
        // Each tenth call, a worker or the zygote is killed.
        if number % 10 == 9
            && let Some(zygote) = sandbox.zygote_process().await
        {
            let workers = children(zygote);
            kill(if number % 30 == 29 { zygote } else { workers.get(number % 7).copied().unwrap_or(zygote) });
        }
    }
    while let Some(one) = calls.join_next().await {
        one.unwrap();
    }
    for number in 0..CALLS {
        let mark = format!("call-{number}-");
        match host.0.lock().unwrap().iter().filter(|one| **one == mark).count() {
            0 => ended += 1,
            1 => good += 1,
            more => panic!("{mark} was done {more} times"),
        }
    }
    assert_eq!(good + ended, CALLS);
    assert!(sandbox.stats().zygotes > 1);
    assert_eq!(sandbox.stats().running, 0);
    assert_eq!(output(&sandbox, "return 1;").await, Ok("1".to_owned()));
}

#[tokio::test]
async fn a_call_may_have_less_memory_and_workers_of_its_own() {
    let sandbox = sandbox();
    let body =
        "const all = []; while (all.length < ctx.input) all.push(new Uint8Array(1 << 20)); return all.length";
    let source = function(body);
    let call = |memory| Call { memory, ..Call::new("12") };
    for (memory, fits) in
        [(None, true), (Some(8 << 20), false), (Some(16 << 20), true), (Some(1 << 40), true)]
    {
        let outcome = run_with(&sandbox, &source, &call(memory), &NoHost).await;
        let expected = if fits { Ok("12".to_owned()) } else { Err(Failure::Memory) };
        assert_eq!(outcome.result, expected, "{memory:?}");
    }
    // A worker with another limit is not used.
    assert_eq!(sandbox.stats().workers, 4);
}
