//! Workers that break the rules of their messages: the call fails, and neither the parent nor another call notices.

use crate::support::{function, key, run, settings, within};
use async_trait::async_trait;
use sandbox::{Call, Failure, Host, HostError, NoHost, Outcome, Program, Sandbox};
use serde_json::Value;

/// A sandbox whose workers are this fake.
fn fake(name: &str) -> Sandbox {
    let mut settings = settings();
    settings.arguments = vec![name.into()];
    Sandbox::new(settings)
}

/// Never answers.
struct Silent;

#[async_trait]
impl Host for Silent {
    async fn kv_get(&self, _key: String) -> Result<Value, HostError> {
        std::future::pending().await
    }
}

async fn call(sandbox: &Sandbox, host: &dyn Host) -> Outcome {
    sandbox.call(&key("1"), &Program::new(""), &within(3_000), host).await.unwrap()
}

#[tokio::test]
async fn what_breaks_the_rules_ends_the_call() {
    for name in [
        "huge",
        "huge-log",
        "huge-host",
        "empty",
        "unknown-kind",
        "kind-of-the-parent",
        "no-fields",
        "length-beyond",
        "too-many-fields",
        "no-json",
        "two-values",
        "no-text",
        "too-deep",
        "too-large",
        "twice",
        "garbage-after",
        "unknown-failure",
        "failure-of-the-parent",
        "unknown-output",
        "log-of-unknown-level",
        "log-without-end",
        "empty-logs-without-end",
        "log-after-the-last",
        "host-out-of-order",
        "host-twice",
        "done-before-the-answer",
    ] {
        let sandbox = fake(name);
        assert_eq!(call(&sandbox, &Silent).await.result, Err(Failure::Protocol), "{name}");
        // Its process is not used again.
        assert_eq!(sandbox.stats().idle, 0, "{name}");
    }
    let endless = call(&fake("host-without-end"), &NoHost).await;
    assert_eq!((endless.result, endless.host_calls), (Err(Failure::Protocol), 1_000));
}

#[tokio::test]
async fn what_says_nothing_ends_with_the_deadline() {
    for name in ["silent", "half"] {
        assert_eq!(call(&fake(name), &NoHost).await.result, Err(Failure::Timeout), "{name}");
    }
    assert_eq!(call(&fake("gone"), &NoHost).await.result, Err(Failure::Crashed));
    // Without answers the parent reads only as many host calls as it answers at a time.
    let waiting = call(&fake("host-without-end"), &Silent).await;
    assert_eq!((waiting.result, waiting.host_calls), (Err(Failure::Timeout), 10));
}

#[tokio::test]
async fn an_answer_that_comes_late_is_no_answer_to_the_next_call() {
    let sandbox = fake("late");
    for _ in 0..20 {
        let outcome = call(&sandbox, &NoHost).await;
        // Where both answers come at once, that breaks the rules.
        assert!(
            matches!(outcome.result.as_deref(), Ok("\"first\"") | Err(Failure::Protocol)),
            "{:?}",
            outcome.result
        );
        // The second answer is written by now or soon: the process is never fit for another call once it is there.
        sandbox.protection().await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_program_that_is_no_sandbox_is_said_to_be_so() {
    let mut settings = settings();
    for program in ["/bin/true", "/nonexistent/svc"] {
        settings.program = program.into();
        let error =
            Sandbox::new(settings.clone()).call(&key("1"), &Program::new(""), &Call::new("1"), &NoHost).await;
        assert!(matches!(error, Err(sandbox::Error::Unavailable(_))), "{error:?}");
    }
    let honest = Sandbox::new(crate::support::settings());
    assert_eq!(run(&honest, &function("return 1;"), "null").await.result, Ok("1".to_owned()));
}
