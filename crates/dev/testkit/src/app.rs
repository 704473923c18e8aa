//! The whole service behind HTTP: a real socket, a real database, and a scripted model.

use crate::client::{Answer, Asking, Client};
use crate::{Key, Kind, ScriptedModel, TestDb};
use actix_web::dev::ServerHandle;
use auth::keys::{self, NewKey};
use auth::partners;
use auth::workspaces::{self, NewWorkspace};
use auth::{RateWindows, Seal};
use billing::ledger::{GrantKind, NewGrant, grant};
use billing::plans;
use conversations::Transcriber;
use egress::{Connector, Policy};
use files::{Objects, objects_in_memory};
use model::{Cause, Env, Event, EventId, KeyOwner, PartnerId, Scope, SubscriptionStatus, WorkspaceId};
use operation::{Limits, Services};
use providers::{Provider, Route, TierSetup, Tiers};
use serde_json::{Value, json};
use server::{InsecureSignIn, Service, ServiceParts, Traces};
use std::cell::Cell;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::Db;
use store::logs::Retentions;
use tokio::runtime::Handle;

/// A running service.
pub struct TestApp {
    /// The database with its clock.
    pub data: TestDb,
    /// The service.
    pub service: Service,
    /// The object storage for files.
    pub objects: Objects,
    /// The model behind all tiers.
    pub model: Arc<ScriptedModel>,
    /// The origin of its URLs, such as `http://127.0.0.1:40001`.
    pub origin: String,
    client: Client,
    replacing: Services,
    handle: ServerHandle,
    workspaces: AtomicUsize,
}

/// Returns timeouts that are short enough for tests.
fn short_limits() -> Limits {
    Limits {
        duplicate_wait: Duration::from_millis(400),
        keep_alive: Duration::from_millis(100),
        key_check: Duration::from_millis(100),
        ..Limits::default()
    }
}

/// What differs between services of tests.
struct Settings {
    limits: Limits,
    retention: Retentions,
    /// Whether the service knows the address at which it listens as its own. Otherwise that is `https://svc.example`.
    knows_address: bool,
    /// Services in place of those of groups.
    replacing: Services,
    /// Whether OAuth clients may register themselves.
    oauth_registration: bool,
    /// The base URL, in place of the address at which it listens and of `https://svc.example`.
    base_url: Option<&'static str>,
    insecure_sign_in: bool,
    /// Where runs live. `None` for the runtime of the test.
    runtime: Option<Handle>,
}

fn settings() -> Settings {
    let (limits, retention) = (short_limits(), Retentions::default());
    Settings {
        limits,
        retention,
        knows_address: false,
        replacing: Services::default(),
        oauth_registration: true,
        base_url: None,
        insecure_sign_in: false,
        runtime: None,
    }
}

impl TestApp {
    /// Starts a service on a new database.
    pub async fn new(kind: Kind) -> Self {
        let data = TestDb::new(kind);
        let db = data.db.clone();
        Self::start(data, db, RateWindows::local(), None).await
    }

    /// Starts a service whose tiers use `provider`.
    pub async fn with_provider(kind: Kind, provider: Arc<dyn Provider>) -> Self {
        let data = TestDb::new(kind);
        let db = data.db.clone();
        Self::start(data, db, RateWindows::local(), Some(provider)).await
    }

    /// Starts a service with this database handle. With `data.reopen()` of another app's database it becomes a second
    /// replica of that app.
    pub async fn start(
        data: TestDb,
        db: Db,
        rates: RateWindows,
        provider: Option<Arc<dyn Provider>>,
    ) -> Self {
        Self::start_with(data, db, rates, provider, objects_in_memory(), settings(), None)
    }

    /// Starts a service in which a duplicate request waits this long for the first request with its
    /// `Idempotency-Key`. The default is 400 ms.
    pub async fn with_duplicate_wait(kind: Kind, duplicate_wait: Duration) -> Self {
        let data = TestDb::new(kind);
        let db = data.db.clone();
        let limits = Limits { duplicate_wait, ..short_limits() };
        Self::start_with(
            data,
            db,
            RateWindows::local(),
            None,
            objects_in_memory(),
            Settings { limits, ..settings() },
            None,
        )
    }

    /// Starts a service with these log retentions.
    pub async fn with_retention(kind: Kind, retention: Retentions) -> Self {
        let data = TestDb::new(kind);
        let db = data.db.clone();
        let settings = Settings { retention, ..settings() };
        Self::start_with(data, db, RateWindows::local(), None, objects_in_memory(), settings, None)
    }

    /// Starts a service that knows its own address, so that its tools and webhooks can call it back.
    pub async fn at_own_address(kind: Kind) -> Self {
        let data = TestDb::new(kind);
        let db = data.db.clone();
        let settings = Settings { knows_address: true, ..settings() };
        Self::start_with(data, db, RateWindows::local(), None, objects_in_memory(), settings, None)
    }

    /// Starts a service at which OAuth clients may not register themselves.
    pub async fn without_registration(kind: Kind) -> Self {
        let data = TestDb::new(kind);
        let db = data.db.clone();
        let settings = Settings { oauth_registration: false, ..settings() };
        Self::start_with(data, db, RateWindows::local(), None, objects_in_memory(), settings, None)
    }

    /// Starts a service that is reached at this base URL, as its configuration says.
    pub async fn with_base_url(kind: Kind, base_url: &'static str, insecure_sign_in: bool) -> Self {
        let data = TestDb::new(kind);
        let db = data.db.clone();
        let settings = Settings { base_url: Some(base_url), insecure_sign_in, ..settings() };
        Self::start_with(data, db, RateWindows::local(), None, objects_in_memory(), settings, None)
    }

    /// Starts a service with these services in place of those that groups start.
    pub async fn with_services(kind: Kind, replacing: Services) -> Self {
        let data = TestDb::new(kind);
        let db = data.db.clone();
        let settings = Settings { replacing, ..settings() };
        Self::start_with(data, db, RateWindows::local(), None, objects_in_memory(), settings, None)
    }

    /// Starts a service that transcribes voice notes.
    pub async fn with_transcriber(kind: Kind, transcriber: Arc<dyn Transcriber>) -> Self {
        let data = TestDb::new(kind);
        let db = data.db.clone();
        let (rates, objects) = (RateWindows::local(), objects_in_memory());
        Self::start_with(data, db, rates, None, objects, settings(), Some(transcriber))
    }

    fn start_with(
        data: TestDb,
        db: Db,
        rates: RateWindows,
        provider: Option<Arc<dyn Provider>>,
        objects: Objects,
        settings: Settings,
        transcriber: Option<Arc<dyn Transcriber>>,
    ) -> Self {
        let Settings { limits, retention, knows_address, replacing, runtime, .. } = settings;
        let model = Arc::new(ScriptedModel::default());
        let provider: Arc<dyn Provider> = provider.unwrap_or_else(|| model.clone());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let loopback = || Policy::allowing(["127.0.0.0/8"]).unwrap();
        let traces = Traces::off(db.random()).unwrap();
        let service = Service::new(ServiceParts {
            db,
            tiers: scripted_tiers(&provider),
            connector: Connector::new(loopback()).unwrap(),
            network_connector: None,
            seal: Seal::new(&[7; 32]).unwrap(),
            objects: objects.clone(),
            rates,
            base_url: match settings.base_url {
                Some(base_url) => base_url.to_owned(),
                None if knows_address => origin.clone(),
                None => "https://svc.example".to_owned(),
            },
            oauth_registration: settings.oauth_registration,
            insecure_sign_in: InsecureSignIn(settings.insecure_sign_in),
            limits,
            retention,
            transcriber,
            checks: None,
            sandbox: sandbox_settings(),
            replacing: replacing.clone(),
            traces,
            runtime: runtime.unwrap_or_else(Handle::current),
        })
        .unwrap();
        let api = service.api();
        // Longer than any test. The test would fail if a connection were closed just when it is used again.
        let options = rest::ServerOptions {
            keep_alive: Duration::from_secs(600),
            workers: Some(1),
            shutdown_seconds: 30,
        };
        let server = rest::server(&api, vec![listener], &options).unwrap();
        let handle = server.handle();
        tokio::spawn(server);
        let client = Client::new(&origin);
        Self {
            data,
            service,
            objects,
            model,
            origin,
            client,
            replacing,
            handle,
            workspaces: AtomicUsize::new(0),
        }
    }

    /// Starts a second replica on this one's database and files, with its own model.
    pub async fn replica(&self, rates: RateWindows) -> Self {
        let data = self.data.share();
        let db = data.db.clone();
        let settings = Settings { replacing: self.replacing.clone(), ..settings() };
        Self::start_with(data, db, rates, None, self.objects.clone(), settings, None)
    }

    /// Starts a replica whose runs live in another runtime. When that is shut down, they end wherever they are, as in a crash.
    pub async fn replica_on(&self, runtime: &Handle) -> Self {
        let data = self.data.share();
        let db = data.db.clone();
        let runtime = Some(runtime.clone());
        let settings = Settings { replacing: self.replacing.clone(), runtime, ..settings() };
        Self::start_with(data, db, RateWindows::local(), None, self.objects.clone(), settings, None)
    }

    /// Creates a webhook endpoint for contact events. `more` contains further settings.
    pub async fn subscribe(&self, key: &Key, url: &str, more: Value) -> Value {
        let mut body = json!({ "url": url, "enabled_events": ["contact.*"] });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.post("/webhook-endpoints", key, body).await.expect(201)
    }

    /// Returns the database.
    pub fn db(&self) -> &Db {
        &self.service.pipeline.db
    }

    /// Creates a workspace on the plan `scale` with 1,000,000 Energy and an active default agent.
    pub async fn workspace(&self) -> WorkspaceId {
        let workspace = self.bare_workspace("scale", 1_000_000).await;
        let key = self.key(workspace, Env::Live, &["agents:write"]).await;
        let agent = json!({ "name": "Assistant", "instructions": "Be brief.", "status": "active" });
        self.post("/agents", &key, agent).await.expect(201);
        workspace
    }

    /// Creates a workspace on `plan` with `energy` and without agents.
    pub async fn bare_workspace(&self, plan: &str, energy: i64) -> WorkspaceId {
        let number = self.workspaces.fetch_add(1, Ordering::SeqCst);
        let plan = plan.to_owned();
        let made = self
            .db()
            .write(move |tx| {
                plans::seed_catalogue(tx)?;
                let name = format!("Workspace {number}");
                let new = NewWorkspace { name, slug: format!("workspace-{number}"), partner: None };
                let id = plans::create_workspace(tx, &new)?.id;
                plans::set_plan(tx, id, &plan, SubscriptionStatus::Active, None)?;
                if energy > 0 {
                    grant(tx, id, &NewGrant::new(GrantKind::Purchase, energy))?;
                }
                Ok(id)
            })
            .await
            .unwrap();
        // How a workspace is set up is no part of what a test looks at.
        self.sql("DELETE FROM events WHERE kind = 'billing.recharged' AND position IS NULL").await;
        made
    }

    /// Creates a key of a workspace. `["*"]` stands for all scopes that a workspace key may have.
    pub async fn key(&self, workspace: WorkspaceId, env: Env, scopes: &[&str]) -> Key {
        self.key_with(workspace, env, scopes, |_| {}).await
    }

    /// Creates a key of a workspace and lets `change` modify its data.
    pub async fn key_with(
        &self,
        workspace: WorkspaceId,
        env: Env,
        scopes: &[&str],
        change: impl Fn(&mut NewKey) + Send + 'static,
    ) -> Key {
        let scopes: Vec<Scope> = if scopes == ["*"] {
            Scope::of_workspaces().collect()
        } else {
            scopes.iter().map(|text| Scope::parse(text).expect("a known scope")).collect()
        };
        let made = self.db().write(move |tx| {
            let mut new = NewKey::of_workspace("Test", workspace, env, scopes.clone());
            change(&mut new);
            let (stored, secret) = keys::create(tx, new)?;
            Ok(Key { secret: secret.reveal().to_owned(), id: stored.key.id, workspace })
        });
        made.await.unwrap()
    }

    /// Creates a workspace with an agent, and returns a live key with all scopes.
    pub async fn full_key(&self) -> Key {
        let workspace = self.workspace().await;
        self.key(workspace, Env::Live, &["*"]).await
    }

    /// Creates a workspace without agents, and returns a live key with all scopes.
    pub async fn bare_key(&self) -> Key {
        let workspace = self.bare_workspace("scale", 0).await;
        self.key(workspace, Env::Live, &["*"]).await
    }

    /// Creates a partner with a key. The workspaces `clients` are attributed to it.
    pub async fn partner_key(&self, env: Env, scopes: &[&str], clients: &[WorkspaceId]) -> (PartnerId, Key) {
        let clients = clients.to_vec();
        let attributed = clients.clone();
        let partner: PartnerId = self
            .db()
            .write(move |tx| {
                let partner = partners::create(tx, "Partner")?.id;
                for client in &attributed {
                    workspaces::attribute(tx, *client, Some(partner))?;
                }
                Ok(partner)
            })
            .await
            .unwrap();
        self.service.pipeline.directory.forget();
        let first = clients.first().copied().unwrap_or(WorkspaceId(0));
        let key = self.key_with(first, env, scopes, move |new| new.owner = KeyOwner::Partner(partner)).await;
        (partner, key)
    }

    /// Executes an SQL statement, to create a state that no operation can. Clears the caches of keys and workspaces.
    pub async fn sql(&self, statement: impl Into<String>) {
        use diesel::RunQueryDsl;
        let statement = statement.into();
        let done =
            self.db().write(move |tx| Ok(diesel::sql_query(&statement).execute(tx.connection())?)).await;
        done.unwrap();
        self.service.pipeline.directory.forget();
    }

    /// Runs due jobs until a request that waits for one of them is answered.
    pub async fn while_jobs_run<T>(&self, request: impl Future<Output = T>) -> T {
        let is_answered = Cell::new(false);
        let answer = async {
            let answer = request.await;
            is_answered.set(true);
            answer
        };
        let jobs = async {
            while !is_answered.get() {
                self.service.jobs.run_due().await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(answer, jobs).0
    }

    /// Starts the operators' HTTP server and returns a client for it.
    pub fn admin(&self) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(rest::admin_server(&self.service.api(), vec![listener]).unwrap());
        Client::new(&origin)
    }

    /// Creates a request to the API.
    pub fn ask(&self, method: &str, path: &str) -> Asking<'_> {
        self.client.ask(method, path)
    }

    /// Creates a request to a route outside the API.
    pub fn ask_beside(&self, method: &str, path: &str) -> Asking<'_> {
        self.client.ask_beside(method, path)
    }

    /// Sends a `GET` request with a key.
    pub async fn get(&self, path: &str, key: &Key) -> Answer {
        self.ask("GET", path).key(key).send().await
    }

    /// Sends a `POST` request with a key.
    pub async fn post(&self, path: &str, key: &Key, body: Value) -> Answer {
        self.ask("POST", path).key(key).json(&body).send().await
    }

    /// Sends a `PATCH` request with a key.
    pub async fn patch(&self, path: &str, key: &Key, body: Value) -> Answer {
        self.ask("PATCH", path).key(key).json(&body).send().await
    }

    /// Sends a `PUT` request with a key.
    pub async fn put(&self, path: &str, key: &Key, body: Value) -> Answer {
        self.ask("PUT", path).key(key).json(&body).send().await
    }

    /// Sends a `DELETE` request with a key.
    pub async fn delete(&self, path: &str, key: &Key) -> Answer {
        self.ask("DELETE", path).key(key).send().await
    }

    /// Emits a live event of a workspace, as an operation would.
    pub async fn emit(&self, workspace: WorkspaceId, event: impl Event + Send + Sync + 'static) -> EventId {
        self.emit_in(workspace, true, event).await
    }

    /// Emits an event, live or test.
    pub async fn emit_in(
        &self,
        workspace: WorkspaceId,
        livemode: bool,
        event: impl Event + Send + Sync + 'static,
    ) -> EventId {
        self.db().write(move |tx| tx.emit(workspace, &Cause::system("test"), livemode, &event)).await.unwrap()
    }

    /// Creates the deliveries of new events and makes all that are due. Returns the number of attempts.
    pub async fn deliver(&self) -> usize {
        self.service.deliveries.run_due().await.unwrap()
    }

    /// Executes all runs of flows that have work, and what follows from them. Returns how many were claimed.
    pub async fn run_flows(&self) -> usize {
        self.service.flows.run_all_due().await.unwrap()
    }

    /// Stops the service and waits until everything is written.
    pub async fn stop(self) -> TestDb {
        self.handle.stop(true).await;
        self.service.stop(Duration::from_secs(5)).await;
        self.data
    }
}

/// Returns tiers with one provider for all.
fn scripted_tiers(provider: &Arc<dyn Provider>) -> Tiers {
    let setup = |number: usize| TierSetup {
        routes: vec![Route {
            provider: provider.clone(),
            model: "scripted".to_owned(),
            label: "scripted-1".to_owned(),
            context_tokens: 32_768,
        }],
        prices: Tiers::DEFAULT_PRICES[number],
    };
    Tiers { fast: setup(0), balanced: setup(1), advanced: setup(2) }
}

/// The sandbox with the fixture of its own tests as the zygote's program: a test is no program that could be one.
fn sandbox_settings() -> sandbox::Settings {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap();
    sandbox::Settings::new(built.join("sandbox-fixture"))
}
