//! Two MCP servers for the conformance suite and for clients: the service's own tools, and the tools of the suite, each
//! behind the real endpoint. Requests without a key get one. Prints the two addresses.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for tests, which shares their module"
)]

#[path = "../tests/it/fixtures.rs"]
mod fixtures;

use fixtures::{endpoint, serve};
use futures::future::LocalBoxFuture;
use mcp::Settings;
use model::Env;
use operation::{Mount, Opened, RawAnswer, RawRequest};
use std::net::TcpListener;
use std::sync::Arc;
use testkit::{Kind, TestApp};

/// Sends requests on with a key, for programs that send none.
struct WithKey {
    endpoint: Arc<dyn Mount>,
    authorization: String,
}

impl Mount for WithKey {
    fn path(&self) -> &'static str {
        self.endpoint.path()
    }

    fn open(
        self: Arc<Self>,
        mut head: RawRequest,
    ) -> LocalBoxFuture<'static, std::result::Result<Opened, RawAnswer>> {
        if head.header("authorization").is_none() {
            head.headers.push(("authorization".to_owned(), self.authorization.clone().into()));
        }
        self.endpoint.clone().open(head)
    }
}

#[tokio::main]
async fn main() {
    let app = TestApp::new(Kind::Sqlite).await;
    let workspace = app.workspace().await;
    let key = app.key_with(workspace, Env::Live, &["*"], |new| new.rate_limit_rpm = Some(1_000_000)).await;
    let authorization = format!("Bearer {}", key.secret);
    let own = app.service.api().mounts[0].clone();
    let suite = endpoint(&app, Settings::new("http://localhost", "v1"));
    for (name, endpoint) in [("own", own), ("suite", suite)] {
        let mount: Arc<dyn Mount> = Arc::new(WithKey { endpoint, authorization: authorization.clone() });
        let origin = serve(&app, mount, TcpListener::bind("127.0.0.1:0").unwrap());
        println!("{name} {origin}/api/v1/mcp");
    }
    println!("key {}", key.secret);
    std::future::pending::<()>().await;
}
