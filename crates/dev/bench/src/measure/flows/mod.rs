//! Flows: a webhook that a flow answers, compared with n8n and Node-RED; steps that act, compared with DBOS; and many runs that
//! wait.

mod peers;
mod steps;
mod waiting;
mod webhook;

use super::deliveries::Kind;
use super::{Bench, keys};
use crate::child::{Child, text};
use crate::http::Server;
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

const DATABASES: [(&str, Kind); 2] = [("SQLite", Kind::Sqlite), ("PostgreSQL", Kind::Postgres)];

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Flows");
    for (name, kind) in DATABASES {
        if kind.database(bench, "flows-probe")?.is_none() {
            section.note(format!("{name} was not there: run by `scripts/with-services`."));
            continue;
        }
        webhook::measure(bench, &mut section, name, kind)?;
        steps::measure(bench, &mut section, name, kind)?;
        waiting::measure(bench, &mut section, name, kind)?;
    }
    section.note(
        "Webhook: each request is received, computes a value, and is answered by one of two nodes, depending on a condition. Ours \
         is an inbound webhook with `response: flow`, which checks a secret and keeps the request, the run, its steps and its \
         answer before it answers. n8n keeps the execution with its defaults, Node-RED keeps nothing.",
    );
    section.note(
        "Steps: runs that are due execute ten nodes one after the other, each of which creates an item with its event, index keys \
         and search terms; each step has a row before and a row after. A step of DBOS inserts a row with three numbers in one \
         transaction with its checkpoint; 16 threads run flows of ten steps.",
    );
    section.note(
        "Waiting: runs in a delay of 300 days, whose rows are inserted by SQL. One of them becomes due by SQL; its time is the one \
         until it has ended, read every 5 ms.",
    );
    Ok(section)
}

/// A service with its first workspace, which executes runs of flows.
struct Shop {
    service: Child,
    server: Server,
}

impl Shop {
    fn open(database: &str) -> Result<Self> {
        let service = Child::start(&["serve-svc", "--database", database])?;
        let token = keys(&service).into_iter().next().context("the service made no key")?;
        let server = Server { address: text(&service.hello, "address")?.to_owned(), token };
        Ok(Self { service, server })
    }

    /// Publishes a flow and returns its id. `nodes` follow the trigger, and `edges` name from, port and to.
    fn publish(&self, name: &str, nodes: &[Value], edges: &[[&str; 3]], variables: &Value) -> Result<i64> {
        let nodes: Vec<Value> =
            [json!({ "id": "start", "type": "trigger" })].into_iter().chain(nodes.iter().cloned()).collect();
        let edges: Vec<Value> =
            edges.iter().map(|[from, port, to]| json!({ "from": from, "port": port, "to": to })).collect();
        let new = json!({
            "name": name, "draft": { "nodes": nodes, "edges": edges, "variables": variables },
            "settings": { "run_timeout_days": 365 },
        });
        let made = self.server.ask("POST", FLOWS, Some(&new))?;
        let id = made.pointer("/data/id").and_then(Value::as_i64).context("no flow")?;
        self.server.ask("POST", &format!("{FLOWS}/{id}/publish"), Some(&json!({})))?;
        Ok(id)
    }

    /// Starts a run, waits for up to `seconds`, and returns it.
    fn run(&self, flow: i64, input: &Value, seconds: u32) -> Result<Value> {
        let body = json!({ "input": input, "wait_seconds": seconds });
        let run = self.server.ask("POST", &format!("{FLOWS}/{flow}/runs"), Some(&body))?;
        let run = run.get("data").cloned().context("no run")?;
        let status = text(&run, "status")?;
        ensure!(!["failed", "cancelled", "paused"].contains(&status), "the run ended so: {run}");
        Ok(run)
    }
}

/// The path of the flows of the first workspace.
const FLOWS: &str = "/api/v1/workspaces/1/flows";
