//! `svc flow check`: finds what is wrong with a flow in a file.

use crate::cli::output;
use anyhow::{Context, anyhow, ensure};
use clap::{Args, Subcommand};
use flow_graphs::{Anything, Graph, Severity, check};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Subcommand)]
pub(in crate::cli) enum FlowCommand {
    /// Find everything that is wrong with the nodes and edges of a flow in a file. It needs no service: whether the objects that
    /// nodes name exist is not checked.
    Check(Check),
}

#[derive(Args)]
pub(in crate::cli) struct Check {
    /// JSON with the `nodes`, `edges` and `variables` of a flow.
    file: PathBuf,
    /// Print the issues as JSON.
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(command: FlowCommand) -> anyhow::Result<()> {
    let FlowCommand::Check(arguments) = command;
    let text = std::fs::read(&arguments.file)
        .with_context(|| format!("{} cannot be read", arguments.file.display()))?;
    let graph = input::parse_json(&text, "flow").and_then(Graph::read);
    let graph = graph.map_err(|error| anyhow!("{}", error.message()))?;
    let issues = check(&graph, &Anything);
    let rows: Vec<Value> = issues.iter().map(|issue| json!(issue)).collect();
    output::rows(&rows, arguments.json)?;
    let errors = issues.iter().filter(|issue| issue.severity == Severity::Error).count();
    ensure!(errors == 0, "the flow has {errors} errors");
    Ok(())
}
