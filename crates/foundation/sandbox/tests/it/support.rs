//! Shorthands.

use sandbox::{Call, Effect, Failure, Host, Key, NoHost, Outcome, Program, Sandbox, Settings};
use std::time::Duration;

/// Settings with the fixture as the zygote.
pub fn settings() -> Settings {
    Settings::new(env!("CARGO_BIN_EXE_sandbox-fixture").into())
}

/// A sandbox with small limits.
pub fn sandbox() -> Sandbox {
    let mut settings = settings();
    settings.limits.memory = 32 << 20;
    Sandbox::new(settings)
}

pub fn key(version: &str) -> Key {
    Key { workspace: "ws".to_owned(), version: version.to_owned() }
}

/// Calls a program that has no outside.
pub async fn run(sandbox: &Sandbox, source: &str, input: &str) -> Outcome {
    run_with(sandbox, source, &Call::new(input), &NoHost).await
}

pub async fn run_with(sandbox: &Sandbox, source: &str, call: &Call, host: &dyn Host) -> Outcome {
    sandbox.call(&key(source), &Program::new(source), call, host).await.unwrap()
}

/// The output of a function with this body.
pub async fn output(sandbox: &Sandbox, body: &str) -> Result<String, Failure> {
    run(sandbox, &function(body), "null").await.result
}

pub fn function(body: &str) -> String {
    format!("export default async function (ctx) {{ {body} }}")
}

/// A call that writes, with this deadline.
pub fn within(deadline: u64) -> Call {
    Call { deadline: Some(Duration::from_millis(deadline)), effect: Effect::Write, ..Call::new("null") }
}
