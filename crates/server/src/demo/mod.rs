//! The demo workspace of `svc serve --demo`: a plan, two agents, Energy, a collection of products, a flow, contacts, a team, tasks,
//! reminders, a business profile, a function, a skill, keys that are printed once, and a channel to a simulated chat network.

mod agent;
mod chat;
mod contacts;
mod desk;
mod model_server;
mod offers;
mod people;
mod products;
mod reminders;
mod requests;
mod settings;
mod tasks;
mod visitors;

pub(crate) use settings::{Given, complete};
pub(crate) use visitors::offer_key;

use crate::Config;
use crate::operator_error::cause;
use auth::keys::{self, DEMO_SECRET, NewKey};
use auth::workspaces::{self, NewWorkspace};
use billing::ledger::{GrantKind, NewGrant, grant};
use billing::plans;
use chat::Chat;
use conversations::Transcriber;
use egress::Connector;
use model::{
    Code, CollectionId, ContactId, Env, FunctionId, KeyId, Result, Scope, SubscriptionStatus, WorkspaceId,
};
use operation::Pipeline;
use requests::Requests;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use store::{Db, Tx};

const SLUG: &str = "demo";

/// The demo workspace, with the chat network that its channel is connected to.
pub(crate) struct Demo {
    workspace: WorkspaceId,
    chat: Chat,
    /// Reaches the chat network, too.
    pub(crate) network_connector: Connector,
    welcome: Welcome,
}

/// What to tell the newcomer once the service serves.
#[derive(Clone)]
struct Welcome {
    /// The program, as it was started.
    program: String,
    listen: String,
    /// The flags by which another command finds the same database.
    database: String,
    workspace: WorkspaceId,
    /// Live and test key, where the workspace was just made.
    keys: Option<(String, String)>,
    /// The collection of products, where it is there.
    products: Option<CollectionId>,
    /// The function that computes the price of shipping, where it was just made.
    shipping_cost: Option<FunctionId>,
    /// The page on which a person chats as a customer.
    chat: String,
    /// The settings that the demo chose, in sentences.
    notes: Vec<String>,
    /// The link with which a person becomes the owner, while nobody manages the installation.
    start_link: Option<String>,
}

impl Demo {
    /// Makes the demo workspace where there is none, and starts the chat network. `notes` are told to the newcomer.
    pub(crate) async fn prepare(
        db: &Db,
        config: &Config,
        connector: &Connector,
        notes: Vec<String>,
    ) -> anyhow::Result<Self> {
        let made = db.write(|tx| match workspaces::find(tx, SLUG) {
            Ok(workspace) => Ok((workspace.id, None)),
            Err(error) if error.code() == Code::WorkspaceNotFound => {
                make(tx).map(|(id, live, test)| (id, Some((live, test))))
            }
            Err(error) => Err(error),
        });
        let (workspace, keys) = made.await.map_err(cause)?;
        let products = db.read(move |read| products::find(read, workspace)).await.map_err(cause)?;
        let chat = Chat::start()?;
        let network_connector = chat.connector(connector, &config.allow_outbound)?;
        let welcome = Welcome {
            program: std::env::args().next().unwrap_or_else(|| "svc".to_owned()),
            listen: config.listen.clone(),
            database: database_flags(config),
            workspace,
            keys,
            products,
            shipping_cost: None,
            chat: chat.page().to_owned(),
            notes,
            start_link: None,
        };
        Ok(Self { workspace, chat, network_connector, welcome })
    }

    /// Connects the demo's channel to the chat network. Completes a new workspace by what needs the service.
    pub(crate) async fn connect(
        &mut self,
        service: &Pipeline,
        listeners: &[TcpListener],
    ) -> anyhow::Result<()> {
        if let Some((live, _)) = &self.welcome.keys {
            let requests = Requests::new(service, live);
            if let Some(products) = self.welcome.products {
                offers::make(&requests, self.workspace, products).await?;
            }
            match desk::make(&requests).await {
                Ok(function) => self.welcome.shipping_cost = Some(function),
                // An installation without a sandbox has the rest of the demo.
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(error, "the demo has no agent for shipping and returns");
                }
            }
        }
        self.chat.connect(service, self.workspace, listeners).await
    }

    /// What transcribes voice notes of the chat network.
    pub(crate) fn transcriber(&self) -> Arc<dyn Transcriber> {
        Arc::new(self.chat.transcriber(self.network_connector.clone()))
    }

    /// The address of the page on which a person chats as a customer.
    pub(crate) fn chat_page(&self) -> String {
        self.welcome.chat.clone()
    }

    /// The workspace.
    pub(crate) fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// Tells the newcomer what there is, with the link for the first account if there is none.
    pub(crate) fn welcome(&self, start_link: Option<String>) {
        Welcome { start_link, ..self.welcome.clone() }.print();
    }
}

/// A database's URL may hold a password, which is not to be printed.
fn database_flags(config: &Config) -> String {
    match &config.database_url {
        Some(_) => " --database-url \"$SVC_DATABASE_URL\"".to_owned(),
        None => format!(" --data-dir '{}'", config.data_dir.display()),
    }
}

fn make(tx: &mut Tx) -> Result<(WorkspaceId, String, String)> {
    plans::seed_catalogue(tx)?;
    let new = NewWorkspace { name: "Demo".to_owned(), slug: SLUG.to_owned(), partner: None };
    let workspace = plans::create_workspace(tx, &new)?.id;
    plans::set_plan(tx, workspace, "starter", SubscriptionStatus::Active, None)?;
    plans::grant_included(tx, workspace)?;
    grant(
        tx,
        workspace,
        &NewGrant { note: Some("Demo".to_owned()), ..NewGrant::new(GrantKind::Promo, 100_000) },
    )?;
    let contacts = fill(tx, workspace)?;
    let (live, secret) = make_key(tx, workspace, Env::Live)?;
    reminders::make(tx, workspace, &live, &contacts)?;
    let (_, test) = make_key(tx, workspace, Env::Test)?;
    Ok((workspace, secret, test))
}

/// Makes the business with its team, products, agent, contacts and tasks. Returns the contacts.
fn fill(tx: &mut Tx, workspace: WorkspaceId) -> Result<Vec<ContactId>> {
    // The country of the business locks all sets, so it comes before them.
    let team = people::make(tx, workspace)?;
    let products = products::make(tx, workspace)?;
    let agent = agent::make(tx, workspace, products)?;
    // Sets of records are made in the order of their ids, in which they are locked.
    tasks::prepare(tx, workspace)?;
    let contacts = contacts::make(tx, workspace)?;
    tasks::make(tx, workspace, &tasks::People { contacts: &contacts, team: &team, agent: agent.id })?;
    Ok(contacts)
}

fn make_key(tx: &mut Tx, workspace: WorkspaceId, env: Env) -> Result<(KeyId, String)> {
    let new = NewKey::of_workspace(
        format!("Demo ({})", env.as_str()),
        workspace,
        env,
        Scope::of_workspaces().collect(),
    );
    let (stored, secret) = keys::create(tx, new)?;
    Ok((stored.key.id, secret.reveal().to_owned()))
}

impl Welcome {
    /// Prints it. On standard output, because these lines are what the command was run for. Where nobody reads them, the
    /// service serves all the same: they are written on a thread, which may wait for its reader for ever.
    fn print(self) {
        let print = move || {
            let printed = self.text().map(|text| std::io::stdout().write_all(text.as_bytes()));
            if !matches!(printed, Ok(Ok(()))) {
                tracing::warn!("the keys of the demo workspace could not be printed");
            }
        };
        let _ = std::thread::Builder::new().name("welcome".to_owned()).spawn(print);
    }

    fn text(&self) -> std::result::Result<String, fmt::Error> {
        let mut text = String::new();
        let workspace = self.workspace;
        writeln!(text)?;
        match &self.keys {
            Some((live, test)) => self.write_examples(&mut text, live, test)?,
            None => {
                writeln!(text, "The demo workspace ({workspace}) is as you left it. For a new key:")?;
                let program = &self.program;
                writeln!(text, "  {program} key create --workspace {workspace} --env live \\")?;
                writeln!(text, "    --scopes runs:execute,runs:read{}", self.database)?;
            }
        }
        self.write_mcp(&mut text)?;
        writeln!(text)?;
        writeln!(text, "Read a fictional workspace with the demo key, which everybody may know:")?;
        writeln!(
            text,
            "  curl -s http://{}/api/v1/contacts -H 'Authorization: Bearer {DEMO_SECRET}'",
            self.listen
        )?;
        writeln!(text)?;
        writeln!(text, "Chat with the agent as a customer: {}", self.chat)?;
        writeln!(text, "Write \"offer\" there, and a flow asks what you would like to buy.")?;
        for note in &self.notes {
            writeln!(text)?;
            writeln!(text, "{note}")?;
        }
        writeln!(text)?;
        if let Some(link) = &self.start_link {
            writeln!(text, "Sign in as the owner, within 30 minutes: {link}")?;
            writeln!(text)?;
        }
        writeln!(text, "Reference: http://{}/docs/", self.listen)?;
        writeln!(text)?;
        Ok(text)
    }

    /// The keys, and what to try with them.
    fn write_examples(&self, text: &mut String, live: &str, test: &str) -> fmt::Result {
        let (url, workspace) = (format!("http://{}/api/v1", self.listen), self.workspace);
        writeln!(text, "The demo workspace ({workspace}) is ready. Its keys are shown this once:")?;
        writeln!(text, "  live: {live}")?;
        writeln!(text, "  test: {test}   (costs nothing)")?;
        writeln!(text)?;
        writeln!(text, "Run the agent:")?;
        writeln!(text, "  curl -s {url}/runs -H 'Authorization: Bearer {live}' \\")?;
        writeln!(
            text,
            "    -H 'Content-Type: application/json' -d '{{\"input\": \"Do you have wooden trains?\"}}'"
        )?;
        if let Some(function) = self.shipping_cost {
            writeln!(text)?;
            writeln!(text, "Call the function that its second agent computes with:")?;
            writeln!(
                text,
                "  curl -s {url}/functions/{function}/invoke -H 'Authorization: Bearer {live}' \\"
            )?;
            writeln!(
                text,
                "    -H 'Content-Type: application/json' -d '{{\"input\": {{\"country\": \"FR\", \"kg\": 3}}}}'"
            )?;
        }
        if let Some(products) = self.products {
            writeln!(text)?;
            writeln!(text, "List the toys among its products, most expensive first:")?;
            writeln!(
                text,
                "  curl -s -G {url}/collections/{products}/items -H 'Authorization: Bearer {live}' \\"
            )?;
            writeln!(text, "    -d 'filter[category]=toys' -d 'filter[price][gt]=30' -d 'sort=-price'")?;
        }
        Ok(())
    }

    /// The MCP server, and a ready line for three common clients.
    fn write_mcp(&self, text: &mut String) -> fmt::Result {
        let url = format!("http://{}/api/v1/mcp", self.listen);
        writeln!(text)?;
        writeln!(text, "Connect an assistant by MCP: {url}")?;
        // The live key is shown once, so a workspace that was there before has a placeholder.
        let key = self.keys.as_ref().map_or("$KEY", |(live, _)| live.as_str());
        writeln!(text, "  claude mcp add --transport http svc {url} --header 'Authorization: Bearer {key}'")?;
        let add = serde_json::json!({
            "name": "svc", "type": "http", "url": url, "headers": { "Authorization": format!("Bearer {key}") },
        });
        writeln!(text, "  code --add-mcp '{add}'")?;
        writeln!(text, "  npx mcp-remote {url} --allow-http --header 'Authorization: Bearer {key}'")?;
        Ok(())
    }
}
