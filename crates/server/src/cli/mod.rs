//! The command line. Every command that prints rows takes `--json`.

mod admin;
mod contract;
mod events_document;
mod output;
mod partner;
mod tail;

pub use contract::table;
pub use events_document::events_document;

use crate::config::{Config, read_config};
use crate::serve;
use anyhow::Context;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::io::IsTerminal;
use std::process::ExitCode;
use store::Db;

#[derive(Parser)]
#[command(name = "svc", version = crate::VERSION, about = "The agent automation service", arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    config: Config,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API.
    Serve(Serve),
    /// Bring the database to the newest schema. `serve` does so by itself.
    Migrate {
        #[command(flatten)]
        json: admin::Json,
    },
    /// Print the contract.
    Openapi(contract::Openapi),
    /// Workspaces.
    #[command(subcommand)]
    Workspace(admin::WorkspaceCommand),
    /// Partners.
    #[command(subcommand)]
    Partner(partner::PartnerCommand),
    /// Plans.
    #[command(subcommand)]
    Plan(admin::PlanCommand),
    /// Energy.
    #[command(subcommand)]
    Energy(admin::EnergyCommand),
    /// API keys.
    #[command(subcommand)]
    Key(admin::KeyCommand),
    /// Events.
    #[command(subcommand)]
    Events(tail::EventsCommand),
}

#[derive(Args)]
struct Serve {
    /// Make a demo workspace with a plan, an agent, Energy and keys, unless there is one.
    #[arg(long)]
    demo: bool,
}

/// Runs the command line. The exit code is 1 when a command failed, 2 when it made no sense.
pub fn main() -> ExitCode {
    let command = match read_config(Cli::command()) {
        Ok(command) => command,
        Err(error) => return failed(&error),
    };
    let cli = match Cli::from_arg_matches(&command.get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match start_logging(&cli.config.log).and_then(|()| run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let config = cli.config;
    match cli.command {
        Command::Serve(arguments) => serve::run(config, arguments.demo),
        Command::Migrate { json } => {
            let applied = Db::migrate(&serve::backend(&config)?).map_err(serve::cause)?;
            let rows: Vec<_> = applied.iter().map(|name| serde_json::json!({ "migration": name })).collect();
            output::rows(&rows, json.json);
            Ok(())
        }
        Command::Openapi(arguments) => contract::print(&arguments),
        Command::Workspace(command) => admin::run(&config, |db| admin::workspace(db, command)),
        Command::Partner(command) => admin::run(&config, |db| partner::partner(db, command)),
        Command::Plan(command) => admin::run(&config, |db| admin::plan(db, command)),
        Command::Energy(command) => admin::run(&config, |db| admin::energy(db, command)),
        Command::Events(tail::EventsCommand::Tail(arguments)) => {
            actix_web::rt::System::new().block_on(tail::tail(arguments))
        }
        Command::Key(command) => admin::run(&config, |db| admin::key(db, command)),
    }
}

/// Readable on a terminal, JSON otherwise. On standard error, so that what a command prints can be piped.
fn start_logging(filter: &str) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(filter).context("SVC_LOG cannot be read")?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.init();
    } else {
        builder.json().init();
    }
    // A panic is a line of the log like any other fault.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, said = panic.payload_as_str(), "a panic");
    }));
    Ok(())
}

#[expect(clippy::print_stderr, reason = "an error of the command line is for the person who typed it")]
fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("svc: {error:#}");
    ExitCode::FAILURE
}
