//! A service, a server that repeats what it receives under any name, and calls of programs.

use egress::{Connector, Policy, Resolver};
use functions::host::{CallHost, HostServices, HostSettings};
use functions::network::{Network, NetworkMode};
use futures::future::BoxFuture;
use model::{ApiKey, Caller, Env, FunctionId, KeyOwner, Principal, RequestId, Scope, WorkspaceId};
use ports::FunctionEffect;
use sandbox::{Call, Failure, FetchRequest, Program, Sandbox};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use testkit::{Key, Kind, TestApp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Every name is this machine.
struct Here;

impl Resolver for Here {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
    }
}

/// Answers with what it received, as JSON, or redirects: `/to/302/…` to what follows.
pub struct Echo {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let record = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, record.clone()));
            }
        });
        Self { address, seen }
    }

    /// Its address under a name.
    pub fn at(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.address.port())
    }

    /// The requests since the last call, as text.
    pub fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

async fn answer(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = buffer.windows(4).position(|part| part == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8(buffer.drain(..end).collect()).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        while buffer.len() < length {
            stream.read_buf(&mut buffer).await.ok()?;
        }
        let body = String::from_utf8_lossy(&buffer.drain(..length).collect::<Vec<_>>()).into_owned();
        let request = format!("{head}{body}");
        seen.lock().unwrap().push(request.clone());
        let target = head.split(' ').nth(1)?;
        let reply = if let Some(rest) = target.strip_prefix("/to/") {
            let (status, to) = rest.split_once('/')?;
            format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
        } else if let Some(size) = target.strip_prefix("/size/") {
            let size: usize = size.parse().unwrap();
            format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n{}", "x".repeat(size))
        } else {
            let text = json!({ "target": target, "request": request }).to_string();
            let echo = head.lines().find_map(|line| line.strip_prefix("x-key: ")).unwrap_or("none");
            format!(
                "HTTP/1.1 200 OK\r\nx-echo: {echo}\r\nx-svc-cause: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
                text.len()
            )
        };
        stream.write_all(reply.as_bytes()).await.ok()?;
    }
}

pub struct Bed {
    pub app: TestApp,
    pub services: HostServices,
    pub echo: Echo,
    pub key: Key,
}

impl Bed {
    pub async fn new(kind: Kind) -> Self {
        Self::around(TestApp::new(kind).await).await
    }

    pub async fn around(app: TestApp) -> Self {
        let key = app.full_key().await;
        let of = &app.service.pipeline.services;
        let policy = Policy::allowing(["127.0.0.0/8"]).unwrap();
        let services = HostServices {
            db: app.db().clone(),
            connector: Connector::with_resolver(policy, Arc::new(Here)).unwrap(),
            causes: of.cloned().unwrap(),
            calls: of.cloned().unwrap(),
        };
        Self { app, services, echo: Echo::start().await, key }
    }

    /// A caller with these scopes.
    pub async fn caller(&self, scopes: &[&str]) -> Caller {
        self.caller_in(self.key.workspace, scopes).await
    }

    async fn caller_in(&self, workspace: WorkspaceId, scopes: &[&str]) -> Caller {
        let key = ApiKey {
            id: self.key.id.clone(),
            lineage: self.key.id.clone(),
            owner: KeyOwner::Workspace(workspace),
            env: Env::Live,
            scopes: scopes.iter().map(|scope| Scope::parse(scope).unwrap()).collect(),
            rate_limit_rpm: None,
            monthly_quota: None,
            budget_cents: None,
            budget_cutoff: false,
            default_workspace: None,
        };
        let db = self.app.db();
        Caller {
            request: RequestId::new(db.now(), &*db.random()),
            key: Arc::new(key),
            principal: Principal::Key,
            workspace: self.app.service.pipeline.directory.workspace(workspace).await.unwrap().unwrap(),
            idempotency_key: None,
            trace: None,
            actor: None,
            answering: None,
            chain: None,
        }
    }

    /// The settings of a live call that may read items and call `*.example.com`.
    pub async fn settings(&self) -> HostSettings {
        HostSettings {
            workspace: self.key.workspace,
            function: FunctionId(7),
            caller: self.caller(&["items:read"]).await,
            livemode: true,
            network: list(&["*.example.com"]),
            secrets: Vec::new(),
            hidden: Vec::new(),
            fixtures: Vec::new(),
            effect: FunctionEffect::Write,
        }
    }

    pub async fn host(&self, change: impl FnOnce(&mut HostSettings)) -> CallHost {
        let mut settings = self.settings().await;
        change(&mut settings);
        CallHost::new(&self.services, settings)
    }

    /// Runs the body of a function. An error is its name, code and message.
    pub async fn run(&self, host: &CallHost, body: &str, input: &Value) -> Result<Value, String> {
        let sandbox: Sandbox = self.app.service.pipeline.services.cloned().unwrap();
        let source = format!("export default async function (ctx) {{ {body} }}");
        let call = Call { secrets: host.secrets(), ..Call::new(&input.to_string()) };
        let key = sandbox::Key { workspace: "1".to_owned(), version: source.clone() };
        let outcome = sandbox.call(&key, &Program::new(&source), &call, host).await.unwrap();
        match outcome.result {
            Ok(output) => Ok(serde_json::from_str(&output).unwrap()),
            Err(Failure::Thrown { name, message, .. }) => Err(format!("{name}: {message}")),
            Err(failure) => panic!("{failure}"),
        }
    }
}

pub fn list(hosts: &[&str]) -> Network {
    Network { mode: NetworkMode::Allowlist, hosts: hosts.iter().map(|host| (*host).to_owned()).collect() }
}

pub fn get(url: &str) -> FetchRequest {
    FetchRequest { method: "GET".to_owned(), url: url.to_owned(), headers: Vec::new(), body: Vec::new() }
}
