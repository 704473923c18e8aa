//! The command line of whoever runs the service: plans, Energy and keys.

use billing::schema::energy_accounts;
use diesel::prelude::*;
use serde_json::{Value, json};
use store::schema::events;
use testkit::{Kind, Program};

/// A workspace's name on the command line, and what it has.
struct Setup {
    program: Program,
    workspace: String,
}

impl Setup {
    async fn new(kind: testkit::Kind) -> Self {
        let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
        let workspace =
            program.run(&["workspace", "create", "--name", "Acme"])["slug"].as_str().unwrap().to_owned();
        Self { program, workspace }
    }

    fn run(&self, command: &[&str], more: &[&str]) -> Value {
        self.program.run(&[command, &["--workspace", self.workspace.as_str()], more].concat())
    }

    async fn balance(&self) -> i64 {
        let query = energy_accounts::table.select(energy_accounts::balance);
        self.program.data.db.read(move |read| Ok(query.first(read.connection())?)).await.unwrap()
    }
}

#[testkit::both]
async fn a_plan_brings_its_energy_once_a_period(kind: Kind) {
    let setup = Setup::new(kind).await;
    let set = |more: &[&str]| setup.run(&["plan", "set", "--plan", "starter"], more);
    let made = set(&[]);
    assert!(made["period_end"].is_string(), "{made}");
    assert_eq!(setup.balance().await, 20_000);
    let ending = set(&["--cancel-at-end"]);
    assert_eq!(ending["cancel_at_period_end"], true);
    assert_eq!(ending["period_end"], made["period_end"]);
    set(&["--status", "past_due", "--until", "2020-01-01T00:00:00Z"]);
    assert_eq!(set(&[])["period_end"], made["period_end"]);
    assert_eq!(setup.balance().await, 20_000);
}

#[testkit::both]
async fn energy_is_given_put_right_and_taken_back(kind: Kind) {
    let setup = Setup::new(kind).await;
    let given = setup.run(&["energy", "grant", "--kind", "purchase"], &["--amount", "100"]);
    let grant = given["grant"].as_str().unwrap();
    assert_eq!(setup.run(&["energy", "adjust"], &["--amount", "-30"])["amount"], -30);
    assert_eq!(setup.balance().await, 70);
    assert!(setup.run(&["energy", "adjust"], &["--amount", "5"])["grant"].is_string());
    let later = setup.run(&["energy", "grant", "--from", "2100-01-01T00:00:00Z"], &["--amount", "100"]);
    assert!(later["grant"].is_string());
    assert_eq!(setup.balance().await, 75);
    assert_eq!(setup.run(&["energy", "void", grant], &[])["amount"], -70);
    assert_eq!(setup.balance().await, 5);
}

#[testkit::both]
async fn keys_show_their_budget_and_their_expiry(kind: Kind) {
    let setup = Setup::new(kind).await;
    let create = ["key", "create", "--env", "live", "--scopes", "runs:read"];
    setup.run(&create, &["--budget-cents", "0", "--cutoff"]);
    let listed: Vec<String> = setup
        .program
        .data
        .db
        .read(|read| {
            Ok(events::table.select(events::data).order(events::id.asc()).load(read.connection())?)
        })
        .await
        .unwrap();
    let mut steps: Vec<i64> = listed
        .iter()
        .map(|data| serde_json::from_str::<Value>(data).unwrap()["threshold"].as_i64().unwrap())
        .collect();
    steps.sort_unstable();
    assert_eq!(steps, [50, 80, 100]);
    setup.run(&create, &["--expires", "2020-01-01T00:00:00Z"]);
    let statuses: Vec<Value> = setup
        .run(&["key", "list"], &[])
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["status"].clone())
        .collect();
    assert_eq!(statuses, [json!("active"), json!("expired")]);
}
