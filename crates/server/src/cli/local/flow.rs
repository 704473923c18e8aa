//! `svc flow`: finds what is wrong with a flow in a file, and shows what it would do.

use crate::cli::output;
use anyhow::{Context, anyhow, ensure};
use clap::{Args, Subcommand};
use flow_graphs::{Anything, Graph, Issue, Severity, check};
use flow_machine::{Ending, Program, Simulation, Values};
use model::{Clock, SystemClock};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(in crate::cli) enum FlowCommand {
    /// Find everything that is wrong with the nodes and edges of a flow in a file. It needs no service: whether the objects that
    /// nodes name exist is not checked.
    Check(Check),
    /// Show what the flow of a file would do. Nodes that act or wait do neither: they give their `pinned_output`, or a note that
    /// nothing was done.
    Run(Run),
}

#[derive(Args)]
pub(in crate::cli) struct Check {
    /// JSON with the `nodes`, `edges` and `variables` of a flow.
    file: PathBuf,
    /// Print the issues as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(in crate::cli) struct Run {
    /// JSON with the `nodes`, `edges` and `variables` of a flow.
    file: PathBuf,
    /// `$input`.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    input: String,
    /// `$contact`.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    contact: String,
    /// What the contact answers. Can be given several times.
    #[arg(long, value_name = "TEXT")]
    reply: Vec<String>,
}

pub(in crate::cli) fn run(command: FlowCommand) -> anyhow::Result<()> {
    match command {
        FlowCommand::Check(arguments) => check_file(&arguments),
        FlowCommand::Run(arguments) => run_file(&arguments),
    }
}

fn check_file(arguments: &Check) -> anyhow::Result<()> {
    let issues = check(&read(&arguments.file)?, &Anything);
    let rows: Vec<Value> = issues.iter().map(|issue| json!(issue)).collect();
    output::rows(&rows, arguments.json)?;
    expect_no_error(&issues)
}

fn run_file(arguments: &Run) -> anyhow::Result<()> {
    let graph = read(&arguments.file)?;
    expect_no_error(&check(&graph, &Anything)).context("see `svc flow check`")?;
    let program = Program::compile(graph).map_err(|mistake| anyhow!("{}", mistake.message))?;
    let input: Value = serde_json::from_str(&arguments.input).context("--input is no JSON")?;
    let contact: Value = serde_json::from_str(&arguments.contact).context("--contact is no JSON")?;
    let roots = [("input", input.clone()), ("trigger", input.clone()), ("contact", contact)];
    let roots = roots.map(|(name, value)| (name.to_owned(), value));
    let values = Values::new("test", roots, SystemClock.now());
    let simulation = Simulation { replies: arguments.reply.iter().cloned().collect() };
    let (steps, ending) = simulation.run(&program, &input, &values);
    output::object(&json!({ "steps": steps, "ending": ending }), true)?;
    ensure!(matches!(ending, Some(Ending::Completed { .. })), "the run has not completed");
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<Graph> {
    let text = std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let graph = input::parse_json(&text, "flow").and_then(Graph::read);
    graph.map_err(|error| anyhow!("{}", error.message()))
}

fn expect_no_error(issues: &[Issue]) -> anyhow::Result<()> {
    let errors = issues.iter().filter(|issue| issue.severity == Severity::Error).count();
    ensure!(errors == 0, "the flow has {errors} errors");
    Ok(())
}
