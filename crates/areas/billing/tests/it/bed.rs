//! A workspace with a plan, its keys, and short words for what tests do with them.

use auth::KeySecret;
use auth::keys::{self, NewKey, StoredKey};
use auth::workspaces::NewWorkspace;
use billing::Ledger;
use billing::ledger::{GrantKind, NewGrant, budget_changed, check_invariants, grant};
use billing::plans;
use billing::schema::{agent_months, energy_accounts, energy_entries, energy_holds, key_months};
use diesel::prelude::*;
use model::{
    AgentId, ApiKey, Caller, Code, Env, Error, JsonText, KeyOwner, Plan, Principal, RequestId, Result, RunId,
    Scope, SubscriptionStatus, Workspace, WorkspaceId,
};
use ports::{AgentLimits, Charge, Closing, EnergyMeter, RunTraces, Settlement, TraceStep};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use store::schema::events;
use store::{Db, Read, Tx};
use testkit::{Kind, TestDb};

pub const RECHARGE: &str = "https://svc.test/billing";
/// The starter plan's price: one Energy is a tenth of a cent.
pub const PRICE: i64 = 1_000_000;

pub struct Bed {
    pub test: TestDb,
    pub workspace: WorkspaceId,
    pub ledger: Arc<Ledger>,
    pub trace: Arc<Trace>,
}

/// The steps of runs, in the place of the group that keeps them.
#[derive(Default)]
pub struct Trace(pub Mutex<BTreeMap<RunId, Vec<TraceStep>>>);

impl Trace {
    fn last_step(&self, run: &RunId) -> Option<i64> {
        self.0.lock().unwrap().get(run)?.last().map(|step| step.position)
    }
}

impl RunTraces for Trace {
    fn steps(
        &self,
        _: &mut Read,
        _: WorkspaceId,
        run: &str,
        first: i64,
        last: i64,
    ) -> Result<Vec<TraceStep>> {
        let traces = self.0.lock().unwrap();
        let all = RunId::parse(run).and_then(|run| traces.get(&run)).into_iter().flatten();
        Ok(all.filter(|step| (first..=last).contains(&step.position)).cloned().collect())
    }
}

/// A key with its secret.
pub struct Key {
    pub stored: StoredKey,
    pub secret: KeySecret,
}

impl Bed {
    pub async fn new(kind: Kind) -> Self {
        let test = TestDb::new(kind);
        let workspace = test
            .db
            .write(|tx| {
                plans::seed_catalogue(tx)?;
                let new = NewWorkspace { name: "Acme".into(), slug: "acme".into(), partner: None };
                let id = plans::create_workspace(tx, &new)?.id;
                plans::set_plan(tx, id, "starter", SubscriptionStatus::Active, None)?;
                Ok(id)
            })
            .await
            .unwrap();
        Self {
            test,
            workspace,
            ledger: Arc::new(Ledger::new(Some(RECHARGE.to_owned()))),
            trace: Arc::default(),
        }
    }

    /// The same workspace, for a second replica.
    pub fn share(&self) -> Self {
        Self {
            test: self.test.share(),
            workspace: self.workspace,
            ledger: self.ledger.clone(),
            trace: self.trace.clone(),
        }
    }

    pub async fn with_energy(kind: Kind, energy: i64) -> Self {
        let bed = Self::new(kind).await;
        bed.give(NewGrant::new(GrantKind::Purchase, energy)).await.unwrap();
        bed
    }

    pub fn db(&self) -> &Db {
        &self.test.db
    }

    pub async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.test.db.write(work).await
    }

    pub async fn give(&self, new: NewGrant) -> Result<model::GrantId> {
        let workspace = self.workspace;
        self.write(move |tx| grant(tx, workspace, &new)).await
    }

    pub async fn other_workspace(&self) -> WorkspaceId {
        self.write(|tx| {
            let new = NewWorkspace { name: "Other".into(), slug: "other".into(), partner: None };
            let id = plans::create_workspace(tx, &new)?.id;
            plans::set_plan(tx, id, "starter", SubscriptionStatus::Active, None)?;
            Ok(id)
        })
        .await
        .unwrap()
    }

    pub async fn key(&self, budget_cents: Option<i64>, cutoff: bool) -> Key {
        self.key_of(
            self.workspace,
            Env::Live,
            vec![Scope::BillingRead, Scope::RunsRead],
            budget_cents,
            cutoff,
        )
        .await
    }

    pub async fn key_of(
        &self,
        workspace: WorkspaceId,
        env: Env,
        scopes: Vec<Scope>,
        budget_cents: Option<i64>,
        budget_cutoff: bool,
    ) -> Key {
        let (stored, secret) = self
            .write(move |tx| {
                let new = NewKey {
                    name: "a key".into(),
                    owner: KeyOwner::Workspace(workspace),
                    env,
                    scopes: scopes.clone(),
                    rate_limit_rpm: None,
                    monthly_quota: None,
                    budget_cents,
                    budget_cutoff,
                    default_workspace: None,
                    expires_at: None,
                };
                keys::create(tx, new)
            })
            .await
            .unwrap();
        Key { stored, secret }
    }

    /// A new run of `key`.
    pub fn run(&self, key: &Key) -> Charge {
        self.run_of(key.stored.key.clone())
    }

    pub fn run_of(&self, key: ApiKey) -> Charge {
        let (now, random) = (self.db().clock().now(), self.db().random());
        let workspace = Workspace {
            id: self.workspace,
            slug: "acme".into(),
            partner: None,
            plan: Plan {
                id: "starter".into(),
                rate_limit_rpm: Some(300),
                monthly_quota: None,
                test_runs_per_day: 100,
                contacts_limit: None,
                usd_micros_per_1000_energy: PRICE,
                energy_metered: true,
            },
            subscription: SubscriptionStatus::Active,
            blocked_reason: None,
        };
        let caller = Caller {
            request: RequestId::new(now, &*random),
            key: Arc::new(key),
            principal: Principal::Key,
            workspace: Arc::new(workspace),
            idempotency_key: None,
            trace: None,
            actor: None,
            answering: None,
            chain: None,
        };
        let (run, limits) = (RunId::new(now, &*random), AgentLimits::default());
        Charge { caller, run, agent: AgentId(7), operation: "run", limits, is_new: true }
    }

    /// A new run on a plan that does not meter Energy.
    pub fn unmetered(&self, key: &Key) -> Charge {
        let mut run = self.run(key);
        Arc::make_mut(&mut run.caller.workspace).plan.energy_metered = false;
        run
    }

    /// A new run of an agent with limits, for its month and for each run.
    pub fn limited(&self, key: &Key, month: Option<i64>, run: Option<i64>) -> Charge {
        Charge { limits: AgentLimits { month, run }, ..self.run(key) }
    }

    pub async fn hold(&self, run: &Charge, wanted: i64, least: i64) -> Result<i64> {
        let (ledger, run) = (self.ledger.clone(), run.clone());
        self.write(move |tx| ledger.hold(tx, &run, wanted, least)).await
    }

    /// Holds for many new runs at once; tells for which.
    pub async fn hold_all(&self, holds: Vec<(Charge, i64)>) -> Vec<bool> {
        let ledger = self.ledger.clone();
        self.write(move |tx| ledger.hold_all(tx, &holds)).await.unwrap()
    }

    /// Ends runs at once, each with the Energy of its last step, which has this number.
    pub async fn close_all(&self, ends: Vec<(Charge, i64, i64)>) -> Vec<i64> {
        let ledger = self.ledger.clone();
        let last_steps: Vec<Option<i64>> =
            ends.iter().map(|(run, ..)| self.trace.last_step(&run.run)).collect();
        self.write(move |tx| {
            let settlement = |(end, last_step): (&(Charge, i64, i64), &Option<i64>)| {
                let (run, step, energy) = end.clone();
                let close = Some(Closing { status: "completed", refund: false, last_step: *last_step });
                (run, Settlement { step, energy, model: "test-model", close })
            };
            let settlements: Vec<_> = ends.iter().zip(&last_steps).map(settlement).collect();
            ledger.settle_all(tx, &settlements)
        })
        .await
        .unwrap()
    }

    /// Lets a refunded run begin anew.
    pub async fn reopen(&self, run: &Charge) {
        let (ledger, run) = (self.ledger.clone(), run.clone());
        let first = self.trace.last_step(&run.run).map_or(0, |last| last + 1);
        self.write(move |tx| ledger.reopen(tx, &run, first)).await.unwrap();
    }

    /// Whether a run that is to wait is let in.
    pub async fn admit(&self, run: &Charge, least: i64) -> Result<()> {
        let (ledger, run) = (self.ledger.clone(), run.clone());
        self.write(move |tx| ledger.admit(tx, &run, least)).await
    }

    /// Gives what was charged.
    pub async fn settle(&self, run: &Charge, step: i64, energy: i64) -> i64 {
        self.settle_with(run, step, energy, None).await.unwrap()
    }

    pub async fn close(&self, run: &Charge, step: i64, energy: i64) {
        self.settle_with(run, step, energy, Some(false)).await.unwrap();
    }

    pub async fn fail(&self, run: &Charge, step: i64, energy: i64) {
        self.settle_with(run, step, energy, Some(true)).await.unwrap();
    }

    /// `close` says whether the run ends, and then whether it is refunded.
    pub async fn settle_with(
        &self,
        run: &Charge,
        step: i64,
        energy: i64,
        close: Option<bool>,
    ) -> Result<i64> {
        let (ledger, run) = (self.ledger.clone(), run.clone());
        let last_step = self.trace.last_step(&run.run);
        self.write(move |tx| {
            let status = |refund| if refund { "failed" } else { "completed" };
            let close = close.map(|refund| Closing { status: status(refund), refund, last_step });
            ledger.settle(tx, &run, &Settlement { step, energy, model: "test-model", close })
        })
        .await
    }

    /// Balance, reserved and state as they are stored.
    pub async fn account(&self) -> (i64, i64, String) {
        let workspace = self.workspace;
        self.db()
            .read(move |read| {
                Ok(energy_accounts::table
                    .find(workspace)
                    .select((energy_accounts::balance, energy_accounts::reserved, energy_accounts::state))
                    .first(read.connection())?)
            })
            .await
            .unwrap()
    }

    /// Fails unless balance and reserved are these and the books are right.
    pub async fn expect(&self, balance: i64, reserved: i64) {
        let (found, held, _) = self.account().await;
        assert_eq!((found, held), (balance, reserved), "balance and reserved");
        self.check().await;
    }

    pub async fn check(&self) {
        let workspace = self.workspace;
        let wrong = self.db().read(move |read| check_invariants(read, workspace)).await.unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Money spent and reserved in this month, in micros.
    pub async fn month(&self, key: &Key) -> (i64, i64) {
        let wanted = (key.stored.key.lineage.clone(), self.db().clock().now().month());
        self.db()
            .read(move |read| {
                Ok(key_months::table
                    .find(wanted)
                    .select((key_months::spent_micros, key_months::reserved_micros))
                    .first(read.connection())
                    .optional()?
                    .unwrap_or((0, 0)))
            })
            .await
            .unwrap()
    }

    /// What the agent has spent in this month, and what its open runs of the month have set aside.
    pub async fn agent_month(&self) -> (i64, i64) {
        let wanted = (self.workspace, AgentId(7), self.db().clock().now().month());
        self.db()
            .read(move |read| {
                let (workspace, agent, month) = &wanted;
                let spent: Option<i64> = agent_months::table
                    .find((workspace, agent, month))
                    .select(agent_months::spent)
                    .first(read.connection())
                    .optional()?;
                let open: Vec<(i64, i64)> = energy_holds::table
                    .filter(energy_holds::workspace_id.eq(workspace))
                    .filter(energy_holds::agent_id.eq(agent))
                    .filter(energy_holds::month.eq(month))
                    .filter(energy_holds::state.eq("open"))
                    .select((energy_holds::amount, energy_holds::used))
                    .load(read.connection())?;
                Ok((spent.unwrap_or(0), open.into_iter().map(|(amount, used)| amount - used).sum()))
            })
            .await
            .unwrap()
    }

    /// Money spent and reserved by a key in every month, in micros, where there is any.
    pub async fn months(&self, key: &Key) -> BTreeMap<String, (i64, i64)> {
        let lineage = key.stored.key.lineage.clone();
        let rows: Vec<(String, i64, i64)> = self
            .db()
            .read(move |read| {
                Ok(key_months::table
                    .filter(key_months::lineage_id.eq(lineage))
                    .select((key_months::month, key_months::spent_micros, key_months::reserved_micros))
                    .load(read.connection())?)
            })
            .await
            .unwrap();
        rows.into_iter().map(|(month, spent, reserved)| (month, (spent, reserved))).filter(is_any).collect()
    }

    /// Sets a key's budget, as `svc key budget` does.
    pub async fn budget(&self, key: &Key, cents: Option<i64>, cutoff: bool) {
        let id = key.stored.key.id.clone();
        self.write(move |tx| {
            let stored = keys::set_budget(tx, &id, cents, cutoff)?;
            budget_changed(tx, &stored)
        })
        .await
        .unwrap();
    }

    /// The kinds and amounts of all entries, sorted.
    pub async fn entries(&self) -> Vec<(String, i64)> {
        let workspace = self.workspace;
        self.db()
            .read(move |read| {
                Ok(energy_entries::table
                    .filter(energy_entries::workspace_id.eq(workspace))
                    .order((energy_entries::kind.asc(), energy_entries::amount.asc()))
                    .select((energy_entries::kind, energy_entries::amount))
                    .load(read.connection())?)
            })
            .await
            .unwrap()
    }

    /// The data of all events of a type, in order.
    pub async fn events_of(&self, kind: &'static str) -> Vec<Value> {
        let read = self.db().read(move |read| {
            let rows: Vec<JsonText> = events::table
                .filter(events::kind.eq(kind))
                .order(events::sequence.asc())
                .select(events::data)
                .load(read.connection())?;
            Ok(rows)
        });
        read.await.unwrap().iter().map(|data| data.parse().unwrap()).collect()
    }

    /// The data of all events of budgets, in order.
    pub async fn events(&self) -> Vec<Value> {
        self.events_of("billing.threshold").await
    }

    pub async fn thresholds(&self) -> Vec<i64> {
        self.events().await.iter().map(|event| event["threshold"].as_i64().unwrap()).collect()
    }
}

/// Whether there is any money in a key's month.
pub fn is_any((_, (spent, reserved)): &(String, (i64, i64))) -> bool {
    (*spent, *reserved) != (0, 0)
}

pub fn refused<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.map_err(|error: Error| error.code()).expect_err("it is refused")
}
