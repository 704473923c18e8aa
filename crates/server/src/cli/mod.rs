//! The command line. Every command that prints rows takes `--json`.

mod access;
mod admin;
mod api;
mod arguments;
mod backup;
mod business;
mod channel;
mod client;
mod completion;
mod conversation;
mod doctor;
mod documents;
mod init;
mod local;
mod login;
mod output;
mod partner;
mod plan;
mod profile;
mod secrets;
mod tail;

pub use documents::contract::table;
pub use documents::events_document::events_document;
pub use documents::formulas_document::formulas_document;
pub use documents::roles_document::roles_document;

pub(crate) use init::set_up;

use crate::config::{Config, is_in_file, read_config, unknown_variables};
use crate::demo::Given;
use crate::logging::Log;
use crate::{database, serve};
use access::{app, operator, team};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "svc",
    version = crate::VERSION,
    about = "The agent automation service",
    after_help = "`svc serve --help` lists the settings of the service. All commands that use its database take them too.",
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    config: Config,
    /// Print help with all settings of the service.
    #[arg(long, global = true, action = ArgAction::HelpLong)]
    help_all: Option<bool>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API.
    Serve(Serve),
    /// Make a workspace with a plan, an owner and a live key with all scopes. Changes nothing if it is there already.
    Init(init::Init),
    /// Bring the database to the newest schema. `serve` does so by itself.
    Migrate {
        #[command(flatten)]
        json: arguments::Json,
    },
    /// Copy the SQLite database to a new file while the service runs.
    Backup(backup::Backup),
    /// Check the configuration and everything that the service depends on. Changes nothing.
    Doctor {
        #[command(flatten)]
        json: arguments::Json,
    },
    /// Print the contract.
    Openapi(documents::contract::Openapi),
    /// Workspaces.
    #[command(subcommand)]
    Workspace(admin::WorkspaceCommand),
    /// Partners.
    #[command(subcommand)]
    Partner(partner::PartnerCommand),
    /// Plans.
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// Energy.
    #[command(subcommand)]
    Energy(admin::EnergyCommand),
    /// API keys.
    #[command(subcommand)]
    Key(admin::KeyCommand),
    /// The people who manage the installation.
    #[command(subcommand)]
    Operator(operator::OperatorCommand),
    /// OAuth apps.
    #[command(subcommand)]
    App(app::AppCommand),
    /// What members have allowed OAuth apps.
    #[command(subcommand)]
    Grant(app::GrantCommand),
    /// The team of a workspace.
    #[command(subcommand)]
    Team(team::TeamCommand),
    /// The profile of a workspace's business.
    #[command(subcommand)]
    Business(business::BusinessCommand),
    /// The numbers over which workspaces talk to their contacts.
    #[command(subcommand)]
    Channel(channel::ChannelCommand),
    /// The state of conversations with contacts.
    #[command(subcommand)]
    Conversation(conversation::ConversationCommand),
    /// The key under which secrets are encrypted.
    #[command(subcommand)]
    Secrets(secrets::SecretsCommand),
    /// Events.
    #[command(subcommand)]
    Events(tail::EventsCommand),
    /// Store the URL of a service and an API key, for `svc api` and `svc events tail`.
    Login(login::Login),
    /// Delete a stored URL and key.
    Logout(login::Logout),
    /// Send a request to the API of a service.
    Api(api::Api),
    /// Functions in files on this machine.
    #[command(subcommand)]
    Function(local::function::FunctionCommand),
    /// Flows in files on this machine.
    #[command(subcommand)]
    Flow(local::flow::FlowCommand),
    /// Packages of skills on this machine.
    #[command(subcommand)]
    Skill(local::skill::SkillCommand),
    /// Run a chat network on this machine, to try channels without an account. Ends with Ctrl-C.
    Chatnet(local::chatnet::Chatnet),
    /// Print a script that completes commands and flags in a shell.
    Completion(completion::Completion),
}

#[derive(Args)]
struct Serve {
    /// Make a demo workspace with a plan, an agent, Energy and keys, unless there is one. Unless models are set, its agent
    /// uses a model server on this machine, or the key in OPENAI_API_KEY. Unless SVC_ALLOW_OUTBOUND is set, webhooks and
    /// tools may reach loopback addresses.
    #[arg(long)]
    demo: bool,
}

/// The command line, with the settings of the service shown in the help of `serve` only, or everywhere.
fn command(command: clap::Command, help_all: bool) -> clap::Command {
    if help_all {
        return command;
    }
    let is_setting = |argument: &Arg| argument.is_global_set() && argument.get_id() != "help_all";
    let visible: Vec<Arg> =
        command.get_arguments().filter(|argument| is_setting(argument)).cloned().collect();
    command
        .mut_args(|argument| if is_setting(&argument) { argument.hide(true) } else { argument })
        .mut_subcommand("serve", |serve| serve.args(visible))
}

/// Runs the command line. The exit code is 1 when a command failed, 2 when it made no sense.
pub fn main() -> ExitCode {
    // Without a thread nothing else would work either.
    let Ok(log) = Log::start() else { return ExitCode::FAILURE };
    let done = read_config(Cli::command()).and_then(|command| {
        let help_all = std::env::args_os().any(|argument| argument == "--help-all");
        let matches = self::command(command, help_all).get_matches();
        let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        log.install(log_filter(&cli, &matches))?;
        run(cli, &matches)
    });
    if let Err(error) = &done
        && !is_closed_output(error)
    {
        log.line(&format!("svc: {error:#}"));
    }
    log.flush();
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is logged. Commands that end with an answer log only what is wrong, unless something else is set, so that no line
/// stands before the answer.
fn log_filter<'a>(cli: &'a Cli, matches: &ArgMatches) -> &'a str {
    let serves = matches!(cli.command, Command::Serve(_) | Command::Chatnet(_));
    let is_set = matches.value_source("log") != Some(ValueSource::DefaultValue) || cli.config.log != "info";
    if serves || is_set { &cli.config.log } else { "warn" }
}

/// The settings that the demo would choose, as far as they were given.
fn given(matches: &ArgMatches) -> anyhow::Result<Given> {
    let is_given = |setting: &str| -> anyhow::Result<bool> {
        Ok(matches.value_source(setting) != Some(ValueSource::DefaultValue) || is_in_file(setting)?)
    };
    Ok(Given {
        models: is_given("model_fast")? || is_given("model_balanced")? || is_given("model_advanced")?,
        openai_base_url: is_given("openai_base_url")?,
    })
}

/// Whether the reader of the output has enough, as `head` does.
fn is_closed_output(error: &anyhow::Error) -> bool {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    cause.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run(cli: Cli, matches: &ArgMatches) -> anyhow::Result<()> {
    let config = cli.config;
    match cli.command {
        Command::Serve(arguments) => {
            for sentence in unknown_variables(&Cli::command()) {
                tracing::warn!(variable = sentence, "an environment variable is not a setting");
            }
            let demo = arguments.demo.then(|| given(matches)).transpose()?;
            serve::run(config, demo, doctor::Doctor::of)
        }
        Command::Migrate { json } => {
            let applied = database::migrate(&config)?;
            let rows: Vec<_> = applied.iter().map(|name| serde_json::json!({ "migration": name })).collect();
            Ok(output::rows(&rows, json.json)?)
        }
        Command::Backup(arguments) => backup::backup(&config, &arguments),
        Command::Secrets(command) => secrets::run(&config, &command),
        Command::Channel(command) => channel::run(&config, command),
        Command::Doctor { json } => doctor::run(&config, json.json),
        Command::Login(arguments) => client::run(login::login(arguments)),
        Command::Logout(arguments) => login::logout(&arguments),
        Command::Api(arguments) => client::run(api::call(arguments)),
        Command::Chatnet(arguments) => client::run(local::chatnet::run(arguments)),
        Command::Function(command) => client::run(local::function::run(command)),
        Command::Flow(command) => local::flow::run(command),
        Command::Skill(command) => local::skill::run(command),
        Command::Completion(arguments) => completion::print(&arguments),
        Command::Openapi(arguments) => documents::contract::print(&arguments),
        Command::Init(command) => {
            command.check()?;
            admin::run(&config, |db| init::init(db, command))
        }
        Command::Workspace(command) => {
            command.check()?;
            admin::run(&config, |db| admin::workspace(db, command))
        }
        Command::Partner(command) => admin::run(&config, |db| partner::partner(db, command)),
        Command::Plan(command) => admin::run(&config, |db| plan::plan(db, command)),
        Command::Energy(command) => admin::run(&config, |db| admin::energy(db, command)),
        Command::Events(tail::EventsCommand::Tail(arguments)) => client::run(tail::tail(arguments)),
        Command::Key(command) => admin::run(&config, |db| admin::key(db, command)),
        Command::Conversation(command) => admin::run(&config, |db| conversation::conversation(db, command)),
        Command::Operator(command) => operator::run(&config, command),
        Command::Team(command) => {
            let base_url = config.base_url();
            admin::run(&config, |db| team::team(db, command, base_url))
        }
        Command::App(command) => admin::run(&config, |db| app::app(db, command)),
        Command::Grant(command) => admin::run(&config, |db| app::grant(db, command)),
        Command::Business(command) => admin::run(&config, |db| business::business(db, command)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;
    use providers::Prices;
    use std::any::TypeId;

    /// Every argument that takes a number, behind the words that lead to it.
    fn numbers(command: &clap::Command, words: &[&str], found: &mut Vec<Vec<String>>) {
        let kinds = [
            TypeId::of::<u8>(),
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
            TypeId::of::<i32>(),
            TypeId::of::<i64>(),
            TypeId::of::<f64>(),
            TypeId::of::<Prices>(),
        ];
        let words = [words, &[command.get_name()]].concat();
        for argument in command.get_arguments() {
            let kind = argument.get_value_parser().type_id();
            if kinds.iter().any(|known| kind == *known) {
                let flag = argument.get_long().map(|name| format!("--{name}"));
                found.push(words.iter().map(|word| (*word).to_owned()).chain(flag).collect());
            }
        }
        for inner in command.get_subcommands() {
            numbers(inner, &words, found);
        }
    }

    #[test]
    fn a_number_below_zero_is_a_number() {
        let mut command = Cli::command();
        command.build();
        let mut found = Vec::new();
        numbers(&command, &[], &mut found);
        let mut takes_it = Vec::new();
        for line in &found {
            let error =
                Cli::command().try_get_matches_from(line.iter().map(String::as_str).chain(["-5"])).err();
            match error {
                Some(error) if error.kind() == ErrorKind::ValueValidation => {
                    let message = error.to_string();
                    assert!(message.contains("whole number"), "{line:?}: {message}");
                }
                // It is a value; others are missing.
                Some(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
                    takes_it.push(line.join(" "));
                }
                other => panic!("{line:?}: {other:?}"),
            }
        }
        assert_eq!(takes_it, ["svc energy adjust --amount"]);
        for known in ["svc energy grant --amount", "svc serve --workers", "svc events tail --count"] {
            assert!(found.iter().any(|line| line.join(" ") == known), "{known}: {found:?}");
        }
    }
}
