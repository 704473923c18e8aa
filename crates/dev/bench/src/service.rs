//! Serves the whole service as `svc serve` composes it, on a new database with workspaces and keys. It obeys commands
//! on its input: `stats` returns the number of database queries, `tokens` a token for each member who has signed in, `callbacks` the number of callbacks that wait,
//! `invocations` the number of calls in the history of functions, `flow_runs` and `started_flow_runs` the numbers of runs of flows
//! that have ended and that have begun,
//! `deliver` starts deliveries that were held back, `claim` attempts the due deliveries and returns the time at which
//! it began, and `stop` ends the service and checks the ledger.

use crate::child::words;
use crate::machine::wall_micros;
use crate::members::Members;
use crate::stub;
use agents::queries::{self as agent_queries, Fresh};
use agents::{AgentStatus, Settings};
use anyhow::{Context, Result};
use auth::keys::{self, NewKey};
use auth::schema::plans as plan_table;
use auth::workspaces::NewWorkspace;
use auth::{RateWindows, Seal};
use billing::ledger::{GrantKind, NewGrant, check_invariants, grant};
use billing::plans;
use channels::{ChannelProvider, ChannelSettings, ConnectChannel, connect};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use egress::{Connector, Policy};
use model::{
    Clock, Env, KeyId, Metadata, Random, Scope, SubscriptionStatus, SystemClock, SystemRandom, WorkspaceId,
};
use operation::{Limits, Pipeline};
use providers::{
    BoxFuture, Completion, Finish, OpenAi, OpenAiSettings, Prompt, Provider, ProviderError, Route, TierSetup,
    Tiers, Usage,
};
use serde_json::{Map, Value, json};
use server::{InsecureSignIn, Service, ServiceParts, Traces};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::logs::Retentions;
use store::{Backend, Db, Options, Read, Tx};
use tokio::runtime::Handle;
use webhooks::Delivering;

#[derive(clap::Args)]
pub struct Arguments {
    /// The URL of an empty database: `sqlite:PATH` or `postgres://…`.
    #[arg(long)]
    database: String,
    /// The number of readers for SQLite, or of connections for PostgreSQL.
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// The address of the model server. Without one, a provider inside of the process answers.
    #[arg(long)]
    model_server: Option<String>,
    /// The number of workspaces, each with a key.
    #[arg(long, default_value_t = 1)]
    workspaces: usize,
    /// The number of members of the first workspace who have signed in.
    #[arg(long, default_value_t = 0)]
    members: usize,
    /// Run no background work, so that all queries of the database come from requests.
    #[arg(long)]
    quiet: bool,
    /// Deliver no events until the command `deliver`.
    #[arg(long)]
    hold_deliveries: bool,
    /// The base URL of a chat network. The first workspace gets a channel on it.
    #[arg(long)]
    network: Option<String>,
    /// Let no agent answer over the channel.
    #[arg(long)]
    no_answers: bool,
    /// The folder for files. Without one, a temporary folder is used.
    #[arg(long)]
    files: Option<PathBuf>,
    /// How many calls of functions a worker of the sandbox serves.
    #[arg(long, default_value_t = 100)]
    calls_per_worker: u32,
    /// Do not count requests for `/metrics`.
    #[arg(long)]
    without_metrics: bool,
}

/// A provider without HTTP, which answers at once.
struct AtOnce;

impl Provider for AtOnce {
    fn complete<'a>(
        &'a self,
        _: &'a Prompt,
    ) -> BoxFuture<'a, std::result::Result<Completion, ProviderError>> {
        let (input_tokens, output_tokens) = stub::TOKENS;
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        let text = stub::TEXT.to_owned();
        Box::pin(async move {
            Ok(Completion { text, tool_calls: Vec::new(), finish: Finish::Stop, usage: Some(usage) })
        })
    }
}

pub async fn serve(arguments: Arguments, runtime: Handle) -> Result<()> {
    // Files are stored on disk as in `svc serve`. In memory they would count as the service's own memory.
    let temporary = tempfile::Builder::new().prefix("bench-files-").tempdir()?;
    let folder = arguments.files.as_deref().unwrap_or(temporary.path());
    let db = database(&arguments.database, arguments.connections)?;
    let number = arguments.workspaces;
    let made =
        db.write(move |tx| (0..number).map(|number| make(tx, number)).collect::<model::Result<Vec<_>>>());
    let made: Vec<Made> = made.await.map_err(described)?;
    let mut service = compose(&arguments, &db, folder, runtime)?;
    if arguments.without_metrics {
        service.pipeline = Arc::new(Pipeline { metrics: None, ..Pipeline::clone(&service.pipeline) });
    }
    if let (Some(base_url), Some(first)) = (&arguments.network, made.first()) {
        connect_channel(&service.pipeline, first, base_url.clone(), !arguments.no_answers).await?;
    }
    let members = match made.first() {
        Some(first) if arguments.members > 0 => {
            let signed_in = Members::sign_in(&service.pipeline, first.workspace, arguments.members);
            Some(signed_in.await.map_err(described)?)
        }
        _ => None,
    };
    let api = service.api();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let options =
        rest::ServerOptions { keep_alive: Duration::from_secs(5), workers: None, shutdown_seconds: 30 };
    let server = rest::server(&api, vec![listener], &options)?;
    let handle = server.handle();
    tokio::spawn(server);
    let running = (!arguments.quiet).then(|| service.jobs.start());
    let delivers = !arguments.quiet && !arguments.hold_deliveries;
    let channels = (!arguments.quiet).then(|| service.channels.start());
    let flows = (!arguments.quiet).then(|| service.flows.start());
    let mut delivering = delivers.then(|| service.deliveries.start());
    let keys: Vec<&str> = made.iter().map(|made| made.secret.as_str()).collect();
    println!("{}", json!({ "address": address, "keys": keys }));

    obey(&service, &mut delivering, members.as_ref()).await?;
    handle.stop(true).await;
    if let Some(running) = running {
        running.stop(Duration::from_secs(5)).await;
    }
    if let Some(channels) = channels {
        channels.stop(Duration::from_secs(5)).await;
    }
    if let Some(flows) = flows {
        flows.stop(Duration::from_secs(5)).await;
    }
    if let Some(delivering) = delivering {
        delivering.stop(Duration::from_secs(5)).await;
    }
    let pipeline = service.pipeline.clone();
    service.stop(Duration::from_secs(30)).await;
    println!("{}", books(&pipeline, made.iter().map(|made| made.workspace).collect()).await?);
    Ok(())
}

/// Composes the service as `svc serve` does.
fn compose(arguments: &Arguments, db: &Db, folder: &Path, runtime: Handle) -> Result<Service> {
    Service::new(ServiceParts {
        db: db.clone(),
        tiers: tiers(arguments.model_server.as_deref())?,
        // The webhook receiver runs on this machine.
        connector: Connector::new(Policy::allowing(["127.0.0.1"])?)?,
        network_connector: None,
        seal: Seal::new(&[7; 32]).map_err(described)?,
        objects: files::objects_in(folder).map_err(described)?,
        rates: RateWindows::local(),
        base_url: "http://127.0.0.1".to_owned(),
        oauth_registration: true,
        insecure_sign_in: InsecureSignIn::default(),
        limits: Limits::default(),
        retention: Retentions::default(),
        transcriber: None,
        checks: None,
        replacing: operation::Services::default(),
        sandbox: sandbox::Settings {
            calls_per_worker: arguments.calls_per_worker,
            ..sandbox::Settings::default()
        },
        traces: Traces::off(db.random()).map_err(described)?,
        runtime,
    })
    .map_err(described)
}

/// Opens an empty database.
fn database(url: &str, connections: u32) -> Result<Db> {
    let backend = Backend::parse(url).map_err(anyhow::Error::msg)?;
    Db::migrate(&backend).map_err(described)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let random: Arc<dyn Random> = Arc::new(SystemRandom::default());
    Db::open(Options { backend, connections, clock, random }).map_err(described)
}

/// Obeys commands until `stop`.
async fn obey(
    service: &Service,
    delivering: &mut Option<Delivering>,
    members: Option<&Members>,
) -> Result<()> {
    let mut words = words();
    while let Some(word) = words.recv().await {
        let began = wall_micros();
        match word.as_str() {
            "callbacks" => println!("{}", counted(&service.pipeline, WAITING_CALLBACKS).await?),
            "invocations" => println!("{}", counted(&service.pipeline, INVOCATIONS).await?),
            "flow_runs" => println!("{}", counted(&service.pipeline, ENDED_FLOW_RUNS).await?),
            "started_flow_runs" => println!("{}", counted(&service.pipeline, STARTED_FLOW_RUNS).await?),
            "tokens" => {
                let issue = |members: &Members| members.tokens(&service.pipeline).map_err(described);
                println!("{}", json!({ "tokens": members.map(issue).transpose()? }));
            }
            "stats" => println!("{}", stats(&service.pipeline)),
            "deliver" => {
                delivering.get_or_insert_with(|| service.deliveries.start());
                println!("{}", json!({ "began": began }));
            }
            "claim" => {
                let attempts = service.deliveries.run_due().await.map_err(described)?;
                println!("{}", json!({ "began": began, "attempts": attempts }));
            }
            _ => break,
        }
    }
    Ok(())
}

fn described(error: model::Error) -> anyhow::Error {
    match error.cause() {
        Some(cause) => anyhow::anyhow!("{error} ({cause})"),
        None => anyhow::anyhow!("{error}"),
    }
}

/// A new workspace with its key.
#[derive(Debug)]
struct Made {
    workspace: WorkspaceId,
    key: KeyId,
    secret: String,
}

/// Connects a channel on the simulated network, without rate limits. Its agent answers without delay.
async fn connect_channel(service: &Pipeline, of: &Made, base_url: String, answers: bool) -> Result<()> {
    let network = simulator::Settings::default();
    let new = ConnectChannel {
        workspace: of.workspace,
        provider: ChannelProvider::Simulator,
        name: "Bench".to_owned(),
        address: None,
        base_url,
        number_id: network.number_id,
        business_id: network.business_id,
        access_token: network.access_token,
        app_secret: network.app_secret,
        verify_token: network.verify_token,
        agent: None,
        key: answers.then(|| of.key.clone()),
        settings: ChannelSettings { reply_debounce_ms: 0, ..ChannelSettings::default() },
        messages_per_second: 0,
    };
    let seal = service.seal.clone();
    service.db.write(move |tx| connect(tx, &seal, &new)).await.map_err(described)?;
    Ok(())
}

/// Creates a workspace with an agent, Energy and a key. Its plan has limits, so that requests are counted, but they
/// are too high to be reached.
fn make(tx: &mut Tx, number: usize) -> model::Result<Made> {
    if number == 0 {
        plans::seed_catalogue(tx)?;
        diesel::update(plan_table::table)
            .filter(plan_table::id.eq("scale"))
            .set((
                plan_table::rate_limit_rpm.eq(1_000_000_000),
                plan_table::monthly_quota.eq(1_000_000_000_000),
            ))
            .execute(tx.connection())?;
    }
    let new =
        NewWorkspace { name: format!("Bench {number}"), slug: format!("bench-{number}"), partner: None };
    let workspace = plans::create_workspace(tx, &new)?.id;
    plans::set_plan(tx, workspace, "scale", SubscriptionStatus::Active, None)?;
    grant(tx, workspace, &NewGrant::new(GrantKind::Purchase, 100_000_000_000))?;
    let settings = Settings {
        instructions: "You are a helpful assistant. Answer briefly.".to_owned(),
        ..Settings::default()
    };
    let metadata = Metadata::new();
    let fresh =
        Fresh { name: "Assistant", status: AgentStatus::Active, settings: &settings, metadata: &metadata };
    let agent = agent_queries::insert(tx, workspace, &fresh)?;
    agent_queries::keep_version(tx, None, &agent, None)?;
    let new = NewKey::of_workspace("Bench", workspace, Env::Live, Scope::of_workspaces().collect());
    let (stored, secret) = keys::create(tx, new)?;
    Ok(Made { workspace, key: stored.key.id, secret: secret.reveal().to_owned() })
}

fn tiers(model_server: Option<&str>) -> Result<Tiers> {
    let provider: Arc<dyn Provider> = match model_server {
        Some(address) => {
            let settings = OpenAiSettings { base_url: format!("http://{address}/v1"), api_key: None };
            Arc::new(OpenAi::new(settings, Connector::new(Policy::allowing([address])?)?))
        }
        None => Arc::new(AtOnce),
    };
    let setup = |prices| TierSetup {
        routes: vec![Route {
            provider: provider.clone(),
            model: "stub".to_owned(),
            label: "stub".to_owned(),
            context_tokens: 32_768,
        }],
        prices,
    };
    let [fast, balanced, advanced] = Tiers::DEFAULT_PRICES;
    Ok(Tiers { fast: setup(fast), balanced: setup(balanced), advanced: setup(advanced) })
}

/// The chat network's callbacks that wait.
const WAITING_CALLBACKS: &str =
    "SELECT COUNT(*) AS n FROM channel_callbacks WHERE status <> 'done' AND status = 'pending'";
/// The calls of functions in the history.
const INVOCATIONS: &str = "SELECT COUNT(*) AS n FROM function_invocations";
/// Runs of flows that have ended, and those that have begun.
const ENDED_FLOW_RUNS: &str = "SELECT COUNT(*) AS n FROM flow_runs WHERE ended_at IS NOT NULL";
const STARTED_FLOW_RUNS: &str = "SELECT COUNT(*) AS n FROM flow_runs WHERE started_at IS NOT NULL";

/// Returns the number that a statement counts.
async fn counted(pipeline: &Pipeline, sql: &'static str) -> Result<Value> {
    let number = pipeline.db.read(move |read| {
        let number: Number = diesel::sql_query(sql).get_result(read.connection())?;
        Ok(number.n)
    });
    Ok(json!({ "waiting": number.await.map_err(described)? }))
}

fn stats(pipeline: &Pipeline) -> Value {
    let stats = pipeline.db.stats();
    json!({ "reads": stats.reads, "writes": stats.writes, "log_writes": pipeline.log.transactions() })
}

/// The counts that must agree with the responses once everything is written.
const BOOKS: [(&str, &str); 16] = [
    ("runs", "SELECT COUNT(*) AS n FROM runs"),
    ("completed", "SELECT COUNT(*) AS n FROM runs WHERE status = 'completed' AND output IS NOT NULL"),
    ("steps", "SELECT COUNT(*) AS n FROM run_steps WHERE status = 'completed'"),
    ("executions", "SELECT COUNT(*) AS n FROM executions WHERE status = 'completed'"),
    ("debits", "SELECT COUNT(*) AS n FROM energy_entries WHERE kind = 'debit'"),
    ("settled_holds", "SELECT COUNT(*) AS n FROM energy_holds WHERE state = 'settled'"),
    ("events", "SELECT COUNT(*) AS n FROM events WHERE kind = 'run.completed'"),
    ("received", "SELECT COUNT(*) AS n FROM inbound_requests WHERE status = 'processed'"),
    ("received_again", "SELECT COUNT(*) AS n FROM inbound_requests WHERE status = 'duplicate'"),
    ("received_events", "SELECT COUNT(*) AS n FROM events WHERE kind = 'webhook.received'"),
    ("delivered", "SELECT COUNT(*) AS n FROM webhook_deliveries WHERE status = 'succeeded'"),
    ("inbound_messages", "SELECT COUNT(*) AS n FROM messages WHERE direction = 'inbound'"),
    ("callbacks", "SELECT COUNT(*) AS n FROM channel_callbacks WHERE status = 'done'"),
    ("items", "SELECT COUNT(*) AS n FROM items"),
    ("log_rows", "SELECT COUNT(*) AS n FROM request_logs"),
    ("counted", "SELECT CAST(COALESCE(SUM(requests), 0) AS BIGINT) AS n FROM key_requests"),
];

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

async fn books(pipeline: &Pipeline, workspaces: Vec<WorkspaceId>) -> Result<Value> {
    let counts = pipeline.db.read(move |read: &mut Read| {
        let mut counts = Map::new();
        for (name, sql) in BOOKS {
            let number: Number = diesel::sql_query(sql).get_result(read.connection())?;
            counts.insert(name.to_owned(), number.n.into());
        }
        let mut wrong = Vec::new();
        for workspace in &workspaces {
            wrong.extend(check_invariants(read, *workspace)?);
        }
        counts.insert("wrong".to_owned(), wrong.into());
        Ok(counts)
    });
    let mut counts = counts.await.map_err(described).context("reading the books")?;
    counts.insert("log_dropped".to_owned(), pipeline.log.dropped().into());
    Ok(Value::Object(counts))
}
