//! The service without HTTP: a tool that charges a workspace for its work.
//!
//! docs/library.md shows this file. Run it: `cargo run -p svc-billing --example library [DATABASE_URL]`

use auth::Directory;
use auth::keys::{self, NewKey};
use auth::workspaces::NewWorkspace;
use billing::Ledger;
use billing::ledger::{GrantKind, NewGrant, grant};
use billing::plans;
use model::{AgentId, Caller, Env, Error, RequestId, Result, RunId, Scope};
use model::{SubscriptionStatus, SystemClock, SystemRandom};
use operation::ports::{AgentLimits, Charge, Closing, EnergyMeter, Settlement};
use std::sync::Arc;
use store::{Backend, Db, Options};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is the output of the tool")]
async fn main() -> Result<()> {
    // Open a database and migrate it. `postgres://…` works the same.
    let url = std::env::args().nth(1).unwrap_or_else(|| "sqlite:/tmp/svc-library.db".to_owned());
    let backend = Backend::parse(&url).map_err(Error::internal)?;
    Db::migrate(&backend)?;
    let (clock, random) = (Arc::new(SystemClock), Arc::new(SystemRandom::default()));
    let db = Db::open(Options { backend, connections: 4, clock, random })?;

    // Create a workspace with a plan, 1,000 Energy and a key, in one transaction. It may be retried after a conflict.
    let set_up = db.write(|tx| {
        plans::seed_catalogue(tx)?;
        let slug = format!("library-{}", tx.now().millis());
        let workspace =
            plans::create_workspace(tx, &NewWorkspace { name: "Library".into(), slug, partner: None })?.id;
        plans::set_plan(tx, workspace, "starter", SubscriptionStatus::Active, None)?;
        grant(tx, workspace, &NewGrant::new(GrantKind::Promo, 1_000))?;
        let new = NewKey {
            budget_cents: Some(500),
            ..NewKey::of_workspace("Nightly report", workspace, Env::Live, vec![Scope::RunsExecute])
        };
        let (stored, _secret) = keys::create(tx, new)?;
        Ok((workspace, stored.key))
    });
    let (workspace, key) = set_up.await?;

    // The key and the workspace that the work runs for. For a request, the pipeline does this.
    let workspace = Directory::new(db.clone()).workspace(workspace).await?;
    let workspace = workspace.ok_or_else(|| Error::not_found("workspace"))?;
    let request = RequestId::new(db.clock().now(), &*db.random());
    let caller = Caller {
        request,
        key: Arc::new(key),
        workspace,
        idempotency_key: None,
        trace: None,
        actor: None,
        answering: None,
    };

    // Hold Energy before the work and debit it afterwards. The key's budget and the balance are enforced.
    let run = RunId::new(db.clock().now(), &*db.random());
    let charge = Charge {
        caller,
        run,
        agent: AgentId(1),
        operation: "report",
        limits: AgentLimits::default(),
        is_new: true,
    };
    let ledger = Arc::new(Ledger::new(None));
    let (meter, first) = (ledger.clone(), charge.clone());
    let held = db.write(move |tx| meter.hold(tx, &first, 50, 10)).await?;
    // … the work, outside any transaction …
    let close = Some(Closing { status: "completed", refund: false, last_step: None });
    let used = Settlement { step: 1, energy: 30, model: "report", close };
    let (meter, last) = (ledger, charge.clone());
    db.write(move |tx| meter.settle(tx, &last, &used)).await?;
    println!("{}: held {held} Energy, used 30", charge.run);
    Ok(())
}
