//! `svc function run`: calls a function of a file, in the sandbox that the service uses.

use crate::cli::output;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use functions::host::FixtureHost;
use functions::network::Fixture;
use sandbox::{Call, Failure, Fixed, Host, Key, NoHost, Outcome, Program, Sandbox, Settings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Subcommand)]
pub(in crate::cli) enum FunctionCommand {
    /// Call the function of a file once, in the sandbox that the service uses. It needs no service and no database. `items`
    /// and `kv` are refused, and so is `fetch` without `--fixtures`.
    Run(Run),
}

#[derive(Args)]
pub(in crate::cli) struct Run {
    /// An ECMAScript module with a function as its default export.
    file: PathBuf,
    /// `ctx.input`.
    #[arg(long, value_name = "JSON", default_value = "null")]
    input: String,
    /// `ctx.vars`.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    vars: String,
    /// Let the clock stand still at this time, in milliseconds since 1970, and let random numbers repeat.
    #[arg(long, value_name = "MILLISECONDS", value_parser = crate::values::whole::<i64, 0, { i64::MAX }>, allow_negative_numbers = true)]
    at: Option<i64>,
    /// Answer `fetch` with the fixtures of a JSON file: an array of objects with `url` (in which `*` stands for any characters),
    /// and if wanted `method`, `status`, `headers` and `body`.
    #[arg(long, value_name = "FILE")]
    fixtures: Option<PathBuf>,
    /// Print the output, the log and what the call used as JSON.
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) async fn run(command: FunctionCommand) -> anyhow::Result<()> {
    let FunctionCommand::Run(arguments) = command;
    let source = std::fs::read_to_string(&arguments.file)
        .with_context(|| format!("{} cannot be read", arguments.file.display()))?;
    let call = Call {
        vars: arguments.vars.clone(),
        livemode: false,
        fixed: arguments.at.map(|now| Fixed { now, seed: 1 }),
        strict: true,
        ..Call::new(&arguments.input)
    };
    let sandbox = Sandbox::new(Settings::default());
    let key = Key { workspace: "command".to_owned(), version: String::new() };
    let host: Box<dyn Host> = match &arguments.fixtures {
        Some(file) => Box::new(FixtureHost(fixtures(file)?)),
        None => Box::new(NoHost),
    };
    let outcome = sandbox.call(&key, &Program::new(&source), &call, &*host).await?;
    if arguments.json {
        output::object(&described(&outcome), true)?;
    } else {
        for line in &outcome.logs {
            output::aside(&line.text);
        }
    }
    match &outcome.result {
        Ok(_) if arguments.json => Ok(()),
        Ok(json) => Ok(output::object(&serde_json::from_str(json)?, true)?),
        Err(failure) => bail!("{}", explained(failure)),
    }
}

fn fixtures(file: &Path) -> anyhow::Result<Vec<Fixture>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} has no fixtures", file.display()))
}

/// A failure with the lines of the program that were active.
fn explained(failure: &Failure) -> String {
    match failure {
        Failure::Thrown { stack, .. } if !stack.is_empty() => {
            format!("{failure}\n    {}", stack.replace('\n', "\n    "))
        }
        other => other.to_string(),
    }
}

fn described(outcome: &Outcome) -> Value {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (status, output, error) = match &outcome.result {
        Ok(json) => ("completed", serde_json::from_str(json).unwrap_or_default(), Value::Null),
        Err(failure) => ("failed", Value::Null, explained(failure).into()),
    };
    let logs: Vec<&str> = outcome.logs.iter().map(|line| line.text.as_str()).collect();
    json!({
        "status": status,
        "output": output,
        "error": error,
        "logs": logs,
        "duration_ms": milliseconds(outcome.duration),
        "peak_memory": outcome.peak_memory,
    })
}
