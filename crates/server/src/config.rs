//! Configuration: a file, then environment variables, then flags; the later wins.

use crate::log_settings::LogSettings;
use crate::values::{SandboxMode, base_url, http_url, origin, whole};
use clap::{Arg, ArgAction, Args, Command, FromArgMatches as _};
use input::nearest;
use providers::{Prices, Tiers};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use store::logs::Retentions;

/// Where the package `svc-model` installs the embedded model.
const PACKAGED_MODEL: &str = "/usr/share/svc/model.gguf";

/// What an installation sets. `svc serve --help` lists all of it, and docs/configuration.md explains it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Configuration")]
pub struct Config {
    /// A TOML file with these settings, in lower case without the prefix (`listen = "0.0.0.0:8080"`).
    #[arg(long, env = "SVC_CONFIG", global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// `sqlite:PATH` or `postgres://…`. Default: `sqlite:` and `svc.db` in the data folder.
    #[arg(long, env = "SVC_DATABASE_URL", global = true, value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// SQLite: readers. PostgreSQL: connections.
    #[arg(
        long,
        env = "SVC_DATABASE_CONNECTIONS",
        global = true,
        value_name = "N",
        default_value = "8",
        value_parser = whole::<u32, 1, 1_000>,
        allow_negative_numbers = true
    )]
    pub database_connections: u32,

    /// Where the embedded database, the secret key and other files live.
    #[arg(long, env = "SVC_DATA_DIR", global = true, value_name = "FOLDER", default_value = "data")]
    pub data_dir: PathBuf,

    /// Where files are kept: `s3://BUCKET` or `s3://BUCKET/PREFIX`. Default: the folder `files` in the data folder.
    #[arg(long, env = "SVC_OBJECT_STORE", global = true, value_name = "URL")]
    pub object_store: Option<String>,

    /// The S3-compatible server, where it is not Amazon's. It may be on a private address.
    #[arg(
        long,
        env = "SVC_OBJECT_STORE_ENDPOINT",
        global = true,
        value_name = "URL",
        value_parser = http_url
    )]
    pub object_store_endpoint: Option<String>,

    /// The region of the bucket.
    #[arg(long, env = "AWS_REGION", global = true, value_name = "REGION", default_value = "us-east-1")]
    pub object_store_region: String,

    /// The access key of the object store.
    #[arg(long, env = "AWS_ACCESS_KEY_ID", global = true, value_name = "ID")]
    pub object_store_key_id: Option<String>,

    /// The secret of the access key.
    #[arg(long, env = "AWS_SECRET_ACCESS_KEY", global = true, value_name = "SECRET", hide_env_values = true)]
    pub object_store_secret: Option<String>,

    /// The token of temporary access keys.
    #[arg(long, env = "AWS_SESSION_TOKEN", global = true, value_name = "TOKEN", hide_env_values = true)]
    pub object_store_token: Option<String>,

    /// Where to serve.
    #[arg(long, env = "SVC_LISTEN", global = true, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: String,

    /// Where to serve metrics, beside health and readiness. Without a key, so on a private network. Off if not set.
    #[arg(long, env = "SVC_ADMIN_LISTEN", global = true, value_name = "ADDRESS")]
    pub admin_listen: Option<String>,

    /// How the world reaches the service, without `/api/v1`. Default: `http://` and the address it serves on, `localhost` where
    /// that is all addresses.
    #[arg(long, env = "SVC_BASE_URL", global = true, value_name = "URL", value_parser = base_url)]
    pub base_url: Option<String>,

    /// Origins whose pages may call the API from a browser, separated by commas: `https://app.example.com`, or `*` for all.
    #[arg(
        long,
        env = "SVC_CORS_ORIGINS",
        global = true,
        value_name = "ORIGINS",
        value_delimiter = ',',
        value_parser = origin
    )]
    pub cors_origins: Vec<String>,

    /// Whether OAuth clients may register themselves (RFC 7591). Registrations take no space in the database.
    #[arg(
        long,
        env = "SVC_OAUTH_REGISTRATION",
        global = true,
        value_name = "BOOL",
        default_value_t = true,
        action = ArgAction::Set
    )]
    pub oauth_registration: bool,

    /// Whether people may sign in although the base URL is plain `http` and not on this machine: `true` or `false`. Others on
    /// the network can then read passwords.
    #[arg(
        long,
        env = "SVC_INSECURE_SIGN_IN",
        global = true,
        value_name = "BOOL",
        default_value_t = false,
        action = ArgAction::Set
    )]
    pub insecure_sign_in: bool,

    /// Whether everybody may read a fictional workspace with the published demo key: `true` or `false`. On with `--demo`.
    #[arg(
        long,
        env = "SVC_DEMO_KEY",
        global = true,
        value_name = "BOOL",
        default_value_t = false,
        action = ArgAction::Set
    )]
    pub demo_key: bool,

    /// Threads that serve HTTP. Default: one per core.
    #[arg(
        long,
        env = "SVC_WORKERS",
        global = true,
        value_name = "N",
        value_parser = whole::<usize, 1, 512>,
        allow_negative_numbers = true
    )]
    pub workers: Option<usize>,

    /// Redis, for rate windows that all replicas share.
    #[arg(long, env = "SVC_REDIS_URL", global = true, value_name = "URL", hide_env_values = true)]
    pub redis_url: Option<String>,

    /// 32 bytes in base64, under which secrets are sealed. All replicas need the same, and PostgreSQL needs one.
    /// Default, with SQLite: made once, in the data folder.
    #[arg(long, env = "SVC_SECRET_KEY", global = true, value_name = "BASE64", hide_env_values = true)]
    pub secret_key: Option<String>,

    /// The key before `secret_key`, while it is rotated: opens what is sealed under it, until `svc secrets rotate` has run.
    #[arg(
        long,
        env = "SVC_SECRET_KEY_PREVIOUS",
        global = true,
        value_name = "BASE64",
        hide_env_values = true
    )]
    pub secret_key_previous: Option<String>,

    /// Addresses that outbound HTTP may reach although they are not public, separated by commas: `127.0.0.1:9000`,
    /// `10.0.0.0/8`, `*.internal.example:8080`.
    #[arg(long, env = "SVC_ALLOW_OUTBOUND", global = true, value_name = "RULES", value_delimiter = ',')]
    pub allow_outbound: Vec<String>,

    /// The embedded model's GGUF file. Default: the file of the package `svc-model`, if it is installed.
    #[arg(long, env = "SVC_MODEL_FILE", global = true, value_name = "FILE")]
    pub model_file: Option<PathBuf>,

    /// The model of the tier `fast`: `local`, or `openai:MODEL`; list several, separated by commas, as fallbacks.
    #[arg(long, env = "SVC_MODEL_FAST", global = true, value_name = "MODELS", default_value = "local")]
    pub model_fast: String,

    /// The model of the tier `balanced`.
    #[arg(long, env = "SVC_MODEL_BALANCED", global = true, value_name = "MODELS", default_value = "local")]
    pub model_balanced: String,

    /// The model of the tier `advanced`.
    #[arg(long, env = "SVC_MODEL_ADVANCED", global = true, value_name = "MODELS", default_value = "local")]
    pub model_advanced: String,

    /// An OpenAI-compatible server. It may be on a private address.
    #[arg(
        long,
        env = "SVC_OPENAI_BASE_URL",
        global = true,
        value_name = "URL",
        default_value = "https://api.openai.com/v1",
        value_parser = http_url
    )]
    pub openai_base_url: String,

    /// The key for the OpenAI-compatible server.
    #[arg(long, env = "SVC_OPENAI_API_KEY", global = true, value_name = "KEY", hide_env_values = true)]
    pub openai_api_key: Option<String>,

    /// Tokens that prompt and answer may have together on the OpenAI-compatible server.
    #[arg(
        long,
        env = "SVC_OPENAI_CONTEXT",
        global = true,
        value_name = "TOKENS",
        default_value = "32768",
        value_parser = whole::<i64, 1, 100_000_000>,
        allow_negative_numbers = true
    )]
    pub openai_context: i64,

    /// A server with OpenAI's transcription API, for voice notes. It may be on a private address. Voice notes are not
    /// transcribed if not set.
    #[arg(long, env = "SVC_TRANSCRIBER_BASE_URL", global = true, value_name = "URL", value_parser = http_url)]
    pub transcriber_base_url: Option<String>,

    /// The key for the transcription server.
    #[arg(long, env = "SVC_TRANSCRIBER_API_KEY", global = true, value_name = "KEY", hide_env_values = true)]
    pub transcriber_api_key: Option<String>,

    /// The model of the transcription server.
    #[arg(
        long,
        env = "SVC_TRANSCRIBER_MODEL",
        global = true,
        value_name = "MODEL",
        default_value = "whisper-1"
    )]
    pub transcriber_model: String,

    /// What 1,000 tokens of the tier `fast` cost in Energy: of the prompt, of the prompt from the provider's cache, of the
    /// answer.
    #[arg(long, env = "SVC_PRICE_FAST", global = true, value_name = "PRICES", allow_hyphen_values = true, default_value_t = Tiers::DEFAULT_PRICES[0])]
    pub price_fast: Prices,

    /// What 1,000 tokens of the tier `balanced` cost in Energy: of the prompt, of the prompt from the provider's cache, of the
    /// answer.
    #[arg(long, env = "SVC_PRICE_BALANCED", global = true, value_name = "PRICES", allow_hyphen_values = true, default_value_t = Tiers::DEFAULT_PRICES[1])]
    pub price_balanced: Prices,

    /// What 1,000 tokens of the tier `advanced` cost in Energy: of the prompt, of the prompt from the provider's cache, of the
    /// answer.
    #[arg(long, env = "SVC_PRICE_ADVANCED", global = true, value_name = "PRICES", allow_hyphen_values = true, default_value_t = Tiers::DEFAULT_PRICES[2])]
    pub price_advanced: Prices,

    /// Requests per minute of a key without a cap of its own in a workspace without a plan.
    #[arg(
        long,
        env = "SVC_DEFAULT_RPM",
        global = true,
        value_name = "N",
        default_value = "300",
        value_parser = whole::<i64, 1, 1_000_000>,
        allow_negative_numbers = true
    )]
    pub default_rpm: i64,

    /// Whether code of functions and skills runs: `on`, `required` (only with landlock and seccomp), or `off`.
    #[arg(long, env = "SVC_SANDBOX", global = true, value_name = "MODE", default_value = "on")]
    pub sandbox: SandboxMode,

    /// Calls that a process of the sandbox serves before it ends. With 1, each call has a process of its own.
    #[arg(
        long,
        env = "SVC_SANDBOX_CALLS_PER_WORKER",
        global = true,
        value_name = "N",
        default_value = "100",
        value_parser = whole::<u32, 1, 10_000>,
        allow_negative_numbers = true
    )]
    pub sandbox_calls_per_worker: u32,

    /// How long logs are kept.
    #[command(flatten)]
    pub logs: LogSettings,

    /// Where traces are exported to, by OTLP over HTTP: a collector's URL without `/v1/traces`. Off if not set.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", global = true, value_name = "URL", value_parser = http_url)]
    pub otlp_endpoint: Option<String>,

    /// Headers of requests to the collector: `NAME=VALUE`, several separated by commas, values in percent-encoding.
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_HEADERS",
        global = true,
        value_name = "HEADERS",
        hide_env_values = true
    )]
    pub otlp_headers: Option<String>,

    /// The name of the service in traces.
    #[arg(long, env = "OTEL_SERVICE_NAME", global = true, value_name = "NAME", default_value = "svc")]
    pub otlp_service_name: String,

    /// Which traces are exported.
    #[arg(
        long,
        env = "OTEL_TRACES_SAMPLER",
        global = true,
        value_name = "NAME",
        default_value = "parentbased_always_on"
    )]
    pub otlp_sampler: String,

    /// The share of traces that a sampler with `traceidratio` exports, from 0 to 1.
    #[arg(long, env = "OTEL_TRACES_SAMPLER_ARG", global = true, value_name = "SHARE", default_value = "1")]
    pub otlp_sampler_arg: String,

    /// What is logged, such as `info` or `info,operation=debug`. Commands that end with an answer log `warn` by default.
    #[arg(long, env = "SVC_LOG", global = true, value_name = "FILTER", default_value = "info")]
    pub log: String,

    /// How long running requests and jobs may go on after SIGTERM, in seconds.
    #[arg(
        long,
        env = "SVC_SHUTDOWN_SECONDS",
        global = true,
        value_name = "SECONDS",
        default_value = "30",
        value_parser = whole::<u64, 0, 86_400>,
        allow_negative_numbers = true
    )]
    pub shutdown_seconds: u64,
}

impl Config {
    /// The database's URL.
    pub fn database_url(&self) -> String {
        self.database_url
            .clone()
            .unwrap_or_else(|| format!("sqlite:{}", self.data_dir.join("svc.db").display()))
    }

    /// How long logs are kept, and up to which size.
    pub fn log_retentions(&self) -> Retentions {
        self.logs.retentions()
    }

    /// The embedded model's file: the one that is set, or the one that the package `svc-model` installs.
    pub fn model_file(&self) -> Option<PathBuf> {
        let packaged = || Some(PathBuf::from(PACKAGED_MODEL)).filter(|path| path.is_file());
        self.model_file.clone().or_else(packaged)
    }

    /// How the world reaches the service, without a slash at the end: the base URL if it is set, else the address that it
    /// listens on. A service that listens on all addresses is reached as `localhost`.
    pub fn base_url(&self) -> String {
        if let Some(url) = &self.base_url {
            return url.trim_end_matches('/').to_owned();
        }
        let (host, port) = self.listen.rsplit_once(':').unwrap_or((&self.listen, "80"));
        let is_unspecified =
            host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
        format!("http://{}:{port}", if is_unspecified { "localhost" } else { host })
    }
}

impl Default for Config {
    /// The settings without a file, variables and flags.
    fn default() -> Self {
        let bare =
            Self::augment_args(Command::new("svc")).mut_args(|argument| argument.env(None::<&'static str>));
        let read = bare.try_get_matches_from(["svc"]).and_then(|matches| Self::from_arg_matches(&matches));
        // Every setting is optional or has a default.
        read.unwrap_or_else(|error| error.exit())
    }
}

/// Makes the settings of the file the defaults of `command`, below environment variables and flags. A variable that is
/// set to nothing counts as not set.
///
/// # Errors
/// When the file cannot be read, or has a setting that does not exist.
pub fn read_config(mut command: Command) -> anyhow::Result<Command> {
    let known: Vec<String> = command
        .get_arguments()
        .filter(|argument| argument.get_env().is_some())
        .map(|argument| argument.get_id().to_string())
        .collect();
    command = without_empty_variables(command);
    let Some(path) = config_path() else { return Ok(command) };
    for (name, value) in read_file(&path)? {
        anyhow::ensure!(known.contains(&name), "{}: there is no setting `{name}`", path.display());
        command = command.mut_arg(&name, |argument| argument.default_value(value.clone()));
    }
    Ok(command)
}

/// Whether the file sets `setting`.
pub(crate) fn is_in_file(setting: &str) -> anyhow::Result<bool> {
    let Some(path) = config_path() else { return Ok(false) };
    Ok(read_file(&path)?.contains_key(setting))
}

/// The variables of this process that look like settings and are none, as sentences that name the setting that was
/// probably meant.
pub(crate) fn unknown_variables(command: &Command) -> Vec<String> {
    let mut known = Vec::new();
    add_variables(command, &mut known);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<String> = names.filter(|name| looks_like_setting(name)).collect();
    unknown.retain(|name| !known.contains(name));
    unknown.sort_unstable();
    let sentence = |name: String| match nearest(&name, known.iter().map(String::as_str)) {
        Some(meant) => format!("{name} is no setting. Did you mean {meant}?"),
        None => format!("{name} is no setting."),
    };
    unknown.into_iter().map(sentence).collect()
}

/// Whether somebody may have set a variable for the service. Kubernetes makes `SVC_SERVICE_…` and `SVC_PORT…` for a service
/// that is called `svc`, and tests have variables of their own.
fn looks_like_setting(name: &str) -> bool {
    let others = ["SVC_SERVICE_", "SVC_PORT", "SVC_TEST_"];
    name.starts_with("SVC_") && !others.iter().any(|prefix| name.starts_with(prefix))
}

fn add_variables(command: &Command, known: &mut Vec<String>) {
    let names = command.get_arguments().filter_map(Arg::get_env);
    known.extend(names.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|command| add_variables(command, known));
}

fn without_empty_variables(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let is_empty = argument.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
        if is_empty { argument.env(None::<&'static str>) } else { argument }
    });
    command.mut_subcommands(without_empty_variables)
}

/// The file is looked for before the command line is parsed, because it provides that parse's defaults.
fn config_path() -> Option<PathBuf> {
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let argument = argument.to_string_lossy().into_owned();
        if argument == "--config" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(path) = argument.strip_prefix("--config=") {
            return Some(PathBuf::from(path));
        }
    }
    std::env::var_os("SVC_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn read_file(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    use anyhow::Context;
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let table: toml::Table = toml::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    table
        .into_iter()
        .map(|(name, value)| {
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Array(items) => {
                    let items: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
                    items.with_context(|| format!("`{name}` must be a list of texts"))?.join(",")
                }
                _ => anyhow::bail!("`{name}` must be a text, a number or a list of texts"),
            };
            Ok((name, text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_base_url_links_name_the_address_that_people_can_open() {
        let of = |base_url: Option<&str>, listen: &str| {
            let base_url = base_url.map(str::to_owned);
            Config { base_url, listen: listen.to_owned(), ..Config::default() }.base_url()
        };
        assert_eq!(of(None, "127.0.0.1:8080"), "http://127.0.0.1:8080");
        assert_eq!(of(None, "[::1]:8080"), "http://[::1]:8080");
        assert_eq!(of(None, "0.0.0.0:8080"), "http://localhost:8080");
        assert_eq!(of(None, "[::]:80"), "http://localhost:80");
        assert_eq!(of(Some("https://svc.example.com/"), "0.0.0.0:8080"), "https://svc.example.com");
    }
}
