//! The program as an operator runs it: its commands, and server processes that are stopped or killed.

use crate::{Client, Key, Kind, OpenAiServer, TestDb, until};
use model::{KeyId, WorkspaceId};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use store::Backend;
use tempfile::TempDir;

/// An installation of the program with a separate database.
pub struct Program {
    /// The database.
    pub data: TestDb,
    /// The model server behind all tiers.
    pub model: OpenAiServer,
    /// The address to listen on, such as `127.0.0.1:40001`.
    pub listen: String,
    binary: &'static str,
    folder: TempDir,
    settings: Vec<(&'static str, String)>,
}

impl Program {
    /// Creates an installation of `binary`. Tests of the program's own crate pass `env!("CARGO_BIN_EXE_svc")`.
    pub async fn new(kind: Kind, binary: &'static str) -> Self {
        Self {
            data: TestDb::new(kind),
            model: OpenAiServer::start().await,
            listen: Self::address(),
            binary,
            folder: tempfile::tempdir().unwrap(),
            settings: Vec::new(),
        }
    }

    /// Adds a setting.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.settings.push((name, value.into()));
        self
    }

    /// Returns an address that is currently free. If another process takes it before us, the test fails.
    pub fn address() -> String {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
    }

    /// Returns a client for the process at [`Self::listen`].
    pub fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.listen))
    }

    /// Runs a command and returns its JSON output.
    pub fn run(&self, arguments: &[&str]) -> Value {
        let output = self.command().args(arguments).arg("--json").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command that must fail, and returns its error output.
    pub fn fails(&self, arguments: &[&str]) -> String {
        Self::failure(self.command().args(arguments))
    }

    /// Runs a command with a setting that must fail, and returns its error output.
    pub fn fails_with(&self, name: &str, value: &str, arguments: &[&str]) -> String {
        Self::failure(self.command().env(name, value).args(arguments))
    }

    fn failure(command: &mut Command) -> String {
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{message}");
        message
    }

    /// Creates a workspace on the plan `scale` at the command line, and returns a live key with these scopes.
    pub fn key(&self, scopes: &str) -> Key {
        let workspace = self.run(&["workspace", "create", "--name", "Program"])["id"].to_string();
        self.run(&["plan", "set", "--workspace", &workspace, "--plan", "scale"]);
        let made =
            self.run(&["key", "create", "--workspace", &workspace, "--env", "live", "--scopes", scopes]);
        Key {
            secret: made["secret"].as_str().unwrap().to_owned(),
            id: KeyId::parse(made["id"].as_str().unwrap()).unwrap(),
            workspace: WorkspaceId(workspace.parse().unwrap()),
        }
    }

    /// Starts a server process and waits until it responds.
    pub async fn serve(&self) -> Serving {
        self.serve_at(&self.listen).await
    }

    /// Starts a server process at another address.
    pub async fn serve_at(&self, listen: &str) -> Serving {
        self.serve_logging(listen, Stdio::inherit()).await
    }

    /// Starts a server process that writes its log to `log`.
    pub async fn serve_logging(&self, listen: &str, log: impl Into<Stdio>) -> Serving {
        let mut command = self.command_at(listen);
        let serving = Serving(command.arg("serve").stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let client = Client::new(&format!("http://{listen}"));
        until("the service listens", async || client.ask("GET", "/me").try_send().await.ok()).await;
        serving
    }

    /// Starts a server process that writes to `output` what it prints beside its log.
    pub async fn serve_printing_to(&self, output: impl Into<Stdio>) -> Serving {
        let mut command = self.command();
        let serving = Serving(command.arg("serve").stdout(output).spawn().unwrap());
        let client = self.client();
        until("the service listens", async || client.ask("GET", "/me").try_send().await.ok()).await;
        serving
    }

    /// Starts a server process with a new demo workspace, and waits until it responds.
    pub async fn serve_demo(&self) -> (Serving, Demo) {
        let (serving, printed) = self.serve_printing().await;
        let demo = Demo {
            live: word_after("live:", &printed),
            test: word_after("test:", &printed),
            chat: word_after(CHAT, &printed),
            printed: printed.join("\n"),
        };
        (serving, demo)
    }

    /// Starts a server process with the demo workspace of an earlier process. Returns the URL of the chat network's
    /// page.
    pub async fn serve_demo_again(&self) -> (Serving, String) {
        let (serving, printed) = self.serve_printing().await;
        (serving, word_after(CHAT, &printed))
    }

    async fn serve_printing(&self) -> (Serving, Vec<String>) {
        let mut command = self.command();
        command.args(["serve", "--demo"]).stdout(Stdio::piped());
        let mut serving = Serving(command.spawn().unwrap());
        let lines = BufReader::new(serving.0.stdout.take().unwrap()).lines().map(Result::unwrap);
        let printed = lines.take_while(|line| !line.starts_with("Reference: "));
        // The servers of the test run on this thread, so do not block it.
        let printed = tokio::task::spawn_blocking(move || printed.collect()).await.unwrap();
        let client = self.client();
        until("the service listens", async || client.ask("GET", "/me").try_send().await.ok()).await;
        (serving, printed)
    }

    /// Returns a shell with the settings of this installation, in which `svc` is the program.
    pub fn shell(&self) -> Command {
        let mut path = OsString::from(Path::new(self.binary).parent().unwrap());
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = self.configured("bash", &self.listen);
        command.env("PATH", path);
        command
    }

    /// Returns the data folder.
    pub fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the program with its settings, for tests that check the output or the exit code.
    pub fn command(&self) -> Command {
        self.command_at(&self.listen)
    }

    fn command_at(&self, listen: &str) -> Command {
        self.configured(self.binary, listen)
    }

    fn configured(&self, program: &str, listen: &str) -> Command {
        let database = match &self.data.backend {
            Backend::Sqlite(path) => format!("sqlite:{path}"),
            Backend::Postgres(url) => url.clone(),
        };
        let mut command = Command::new(program);
        command.env("SVC_DATABASE_URL", database).env("SVC_DATA_DIR", self.folder.path());
        // Replicas on PostgreSQL share a key, which must be given.
        command.env("SVC_SECRET_KEY", "c3ZjLXRlc3RraXQtc2VjcmV0LWtleS0zMi1ieXRlcyE=");
        command.env("SVC_LISTEN", listen).env("SVC_LOG", "warn").stdin(Stdio::null());
        for tier in ["FAST", "BALANCED", "ADVANCED"] {
            command.env(format!("SVC_MODEL_{tier}"), "openai:x");
        }
        command
            .env("SVC_OPENAI_BASE_URL", self.model.base_url())
            .envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The text that the demo prints before the URL of its chat network.
const CHAT: &str = "Chat with the agent as a customer:";

fn word_after(label: &str, printed: &[String]) -> String {
    let line = printed.iter().find_map(|line| line.trim().strip_prefix(label));
    line.and_then(|line| line.split_whitespace().next()).unwrap().to_owned()
}

/// The keys and the chat network of a demo workspace.
pub struct Demo {
    /// The live key.
    pub live: String,
    /// The test key.
    pub test: String,
    /// The URL of the chat network's page, such as `http://127.0.0.1:8090`.
    pub chat: String,
    /// The whole output.
    pub printed: String,
}

/// A server process, killed when dropped.
pub struct Serving(Child);

impl Serving {
    /// Sends `SIGTERM` and waits for the end. Running requests are finished.
    pub async fn stop(mut self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let status = until("the service stops", async || self.0.try_wait().unwrap()).await;
        assert!(status.success(), "{status}");
    }

    /// Sends `SIGKILL`. Nothing is flushed.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
