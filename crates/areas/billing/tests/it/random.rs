//! Random schedules of runs, grants and time on the real database, against a model that knows only the rules.

use crate::bed::{Bed, Key, PRICE, is_any};
use billing::ledger::{GrantKind, NewGrant, sweep_expired_grants, sweep_expired_holds, void_grant};
use billing::schema::energy_grants;
use chrono::Duration;
use diesel::prelude::*;
use model::{Code, GrantId, Timestamp};
use ports::Charge;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::Kind;

/// Runs that a schedule may touch. The odd ones belong to the key with a budget.
const RUNS: usize = 6;
/// The budget: 30 cents are 300 Energy at the first price.
const CAP_CENTS: i64 = 30;
const MICROS_PER_CENT: i64 = 10_000;

fn cost(energy: i64, price: i64) -> i64 {
    (energy * price + 999) / 1_000
}

#[derive(Debug, Clone)]
enum Act {
    Grant {
        amount: i64,
        priority: i64,
        minutes: Option<i64>,
    },
    Void(usize),
    Hold {
        run: usize,
        wanted: i64,
        least: i64,
    },
    Settle {
        run: usize,
        energy: i64,
        again: bool,
    },
    Close {
        run: usize,
        energy: i64,
        refund: bool,
    },
    /// What each run wants that holds nothing yet, at once.
    HoldAll(Vec<i64>),
    /// All runs end at once, each with so much.
    CloseAll(Vec<i64>),
    /// Closed with a refund, and then begun anew.
    Reopen {
        run: usize,
        energy: i64,
    },
    Wait(i64),
    NextMonth,
    /// The odd runs' key gets another budget while they go on.
    Budget {
        cents: Option<i64>,
        cutoff: bool,
    },
    /// Energy costs something else from now on, for running work too, as when another replica resumes it.
    Price(i64),
    /// Energy is metered from now on, or not, for runs that have not held any.
    Metered(bool),
    SweepGrants,
    SweepHolds,
}

fn act() -> impl Strategy<Value = Act> {
    let run = 0..RUNS;
    prop_oneof![
        3 => (1i64..300, 0i64..3, proptest::option::of(1i64..40))
            .prop_map(|(amount, priority, minutes)| Act::Grant { amount, priority, minutes }),
        1 => (0usize..6).prop_map(Act::Void),
        8 => (run.clone(), 0i64..150, 0i64..30)
            .prop_map(|(run, wanted, least)| Act::Hold { run, wanted, least }),
        8 => (run.clone(), 0i64..120, any::<bool>())
            .prop_map(|(run, energy, again)| Act::Settle { run, energy, again }),
        4 => (run, 0i64..60, any::<bool>())
            .prop_map(|(run, energy, refund)| Act::Close { run, energy, refund }),
        4 => proptest::collection::vec(0i64..100, RUNS).prop_map(Act::HoldAll),
        2 => proptest::collection::vec(0i64..60, RUNS).prop_map(Act::CloseAll),
        4 => (0..RUNS, 0i64..60).prop_map(|(run, energy)| Act::Reopen { run, energy }),
        3 => (0i64..12).prop_map(Act::Wait),
        1 => Just(Act::NextMonth),
        2 => (proptest::option::weighted(0.8, 0i64..40), proptest::bool::weighted(0.8))
            .prop_map(|(cents, cutoff)| Act::Budget { cents, cutoff }),
        1 => prop_oneof![Just(333), Just(PRICE), Just(PRICE / 2 * 3)].prop_map(Act::Price),
        1 => any::<bool>().prop_map(Act::Metered),
        2 => Just(Act::SweepGrants),
        2 => Just(Act::SweepHolds),
    ]
}

#[derive(Debug, Clone)]
struct Lot {
    id: GrantId,
    left: i64,
    priority: i64,
    ends: Option<Timestamp>,
    voided: bool,
    born: usize,
}

#[derive(Debug, Clone, Default)]
struct Run {
    unused: i64,
    open: bool,
    expires: Option<Timestamp>,
    /// What each debit took of each lot, by the lot's place.
    burns: Vec<(usize, i64)>,
    debited: i64,
    /// What that cost.
    micros: i64,
    /// Money that the budget has set aside for it.
    reserved: i64,
    /// Its first hold was on a plan that does not meter Energy.
    unmetered: bool,
    /// The month of its first hold.
    month: Option<String>,
    step: i64,
}

/// A key's budget.
#[derive(Debug, Clone, Copy)]
struct Budget {
    cents: Option<i64>,
    cutoff: bool,
}

/// The rules, and nothing else.
#[derive(Debug)]
struct Model {
    lots: Vec<Lot>,
    runs: Vec<Run>,
    balance: i64,
    /// Money spent in each month by the key without and the key with a budget.
    spent: [BTreeMap<String, i64>; 2],
    absorbed: i64,
    budget: Budget,
    price: i64,
    unmetered: bool,
    /// Neither budget nor price has changed, so the budget is kept to the last micro.
    is_steady: bool,
}

impl Model {
    fn reserved(&self) -> i64 {
        self.runs.iter().filter(|run| !run.unmetered).map(|run| run.unused).sum()
    }

    fn available(&self) -> i64 {
        self.balance - self.reserved()
    }

    fn is_dead(lot: &Lot, now: Timestamp) -> bool {
        lot.left > 0 && (lot.voided || lot.ends.is_some_and(|end| end <= now))
    }

    fn sweep(&mut self, now: Timestamp) {
        for place in 0..self.lots.len() {
            if Self::is_dead(&self.lots[place], now) {
                let taken = self.lots[place].left.min(self.available());
                self.lots[place].left -= taken;
                self.balance -= taken;
            }
        }
    }

    fn hold(&mut self, place: usize, wanted: i64, least: i64, now: Timestamp) -> Result<i64, Code> {
        let wanted = wanted.max(least);
        if self.runs[place].month.is_none() {
            self.runs[place].unmetered = self.unmetered;
        }
        let unused = self.runs[place].unused;
        if unused >= wanted {
            self.touch(place, now);
            return Ok(wanted);
        }
        let mut target = wanted;
        let month = self.runs[place].month.clone().unwrap_or_else(|| now.month());
        let limit = self.budget.cents.filter(|_| place % 2 == 1 && self.budget.cutoff);
        if let Some(cents) = limit {
            let limit = cents * MICROS_PER_CENT;
            let spent = self.spent[1].get(&month).copied().unwrap_or(0);
            let others = self.reserved_in(1, &month) - self.runs[place].reserved;
            let room = (limit - spent - others).max(0) * 1_000 / self.price;
            if spent >= limit || room < least {
                return Err(Code::BudgetExceeded);
            }
            target = target.min(room.max(unused));
        }
        let missing = target - unused;
        if self.runs[place].unmetered {
            self.runs[place].unused += missing.max(0);
        } else if missing > 0 {
            if self.available() < missing || self.lots.iter().any(|lot| Self::is_dead(lot, now)) {
                self.sweep(now);
            }
            let taken = self.available().min(missing);
            if unused + taken < least {
                return Err(Code::EnergyDepleted);
            }
            self.runs[place].unused += taken;
        }
        self.runs[place].open = true;
        self.touch(place, now);
        let run = &mut self.runs[place];
        run.month = Some(month);
        run.reserved = if limit.is_some() { cost(run.unused, self.price) } else { 0 };
        Ok(run.unused)
    }

    /// Sets Energy aside for some runs that hold nothing, if that can be done for all whose key is free to spend. Says for
    /// which it was.
    fn hold_all(&mut self, wanted: &[(usize, i64)], now: Timestamp) -> Vec<bool> {
        let is_cut_off = self.budget.cents.is_some() && self.budget.cutoff;
        let is_ordinary = |(place, wanted): &(usize, i64)| *wanted > 0 && (place % 2 == 0 || !is_cut_off);
        let sum: i64 = wanted.iter().filter(|one| is_ordinary(one)).map(|(_, wanted)| wanted).sum();
        let can_be =
            self.unmetered || sum <= self.available() && !self.lots.iter().any(|lot| Self::is_dead(lot, now));
        let held: Vec<bool> = wanted.iter().map(|one| can_be && is_ordinary(one)).collect();
        for ((place, wanted), _) in wanted.iter().zip(&held).filter(|(_, is_held)| **is_held) {
            assert_eq!(self.hold(*place, *wanted, *wanted, now), Ok(*wanted));
        }
        held
    }

    /// Money that the runs of a key have set aside in a month.
    fn reserved_in(&self, key: usize, month: &str) -> i64 {
        let runs = self.runs.iter().skip(key).step_by(2);
        runs.filter(|run| run.month.as_deref() == Some(month)).map(|run| run.reserved).sum()
    }

    fn touch(&mut self, place: usize, now: Timestamp) {
        if self.runs[place].open {
            self.runs[place].expires = Some(now.plus(Duration::minutes(15)));
        }
    }

    fn debit(&mut self, place: usize, energy: i64, now: Timestamp) {
        if energy == 0 {
            return;
        }
        let charged = energy.min(self.runs[place].unused);
        self.absorbed += energy - charged;
        let paid = if self.runs[place].unmetered { 0 } else { charged };
        self.balance -= paid;
        // A step costs its price, but never more than what the budget has set aside for the run.
        let reserved = self.runs[place].reserved;
        let price = cost(charged, self.price);
        let micros = if reserved > 0 { price.min(reserved) } else { price };
        if let Some(month) = self.runs[place].month.clone() {
            *self.spent[place % 2].entry(month).or_insert(0) += micros;
        }
        let mut left = paid;
        while left > 0 {
            let lot = (0..self.lots.len())
                .filter(|lot| self.lots[*lot].left > 0)
                .min_by_key(|lot| {
                    let lot = &self.lots[*lot];
                    (lot.priority, lot.ends.is_none(), lot.ends, lot.born)
                })
                .expect("the lots cover what was held");
            let taken = self.lots[lot].left.min(left);
            self.lots[lot].left -= taken;
            left -= taken;
            self.runs[place].burns.push((lot, taken));
        }
        let run = &mut self.runs[place];
        run.unused -= charged;
        run.debited += charged;
        run.micros += micros;
        run.reserved = (reserved - micros).max(0).min(cost(run.unused, self.price));
        self.touch(place, now);
    }

    fn close(&mut self, place: usize, refund: bool) {
        let run = std::mem::take(&mut self.runs[place]);
        if refund {
            self.balance += if run.unmetered { 0 } else { run.debited };
            if let Some(month) = run.month {
                *self.spent[place % 2].entry(month).or_insert(0) -= run.micros;
            }
            for (lot, taken) in run.burns {
                self.lots[lot].left += taken;
            }
        }
    }

    fn sweep_holds(&mut self, now: Timestamp) {
        for run in self.runs.iter_mut().filter(|run| run.open) {
            if run.expires.is_some_and(|expires| expires <= now) {
                (run.unused, run.reserved, run.open) = (0, 0, false);
            }
        }
    }
}

struct Bench {
    bed: Bed,
    keys: [Key; 2],
    charges: Vec<Charge>,
    model: Model,
}

impl Bench {
    async fn new(kind: Kind) -> Self {
        let bed = Bed::new(kind).await;
        let keys = [bed.key(None, false).await, bed.key(Some(CAP_CENTS), true).await];
        let charges = (0..RUNS).map(|place| bed.run(&keys[place % 2])).collect();
        let model = Model {
            lots: Vec::new(),
            runs: vec![Run::default(); RUNS],
            balance: 0,
            spent: Default::default(),
            absorbed: 0,
            budget: Budget { cents: Some(CAP_CENTS), cutoff: true },
            price: PRICE,
            unmetered: false,
            is_steady: true,
        };
        Self { bed, keys, charges, model }
    }

    async fn play(&mut self, act: &Act) {
        // No two grants are of the same age, so that the order of burning is certain.
        self.bed.test.clock.advance(Duration::milliseconds(1));
        let now = self.bed.db().clock().now();
        match *act {
            Act::Grant { amount, priority, minutes } => {
                let ends = minutes.map(|minutes| now.plus(Duration::minutes(minutes)));
                let new = NewGrant { priority, expires_at: ends, ..NewGrant::new(GrantKind::Promo, amount) };
                let id = self.bed.give(new).await.unwrap();
                let born = self.model.lots.len();
                self.model.lots.push(Lot { id, left: amount, priority, ends, voided: false, born });
                self.model.balance += amount;
            }
            Act::Void(place) => {
                if let Some(lot) = self.model.lots.get_mut(place) {
                    lot.voided = true;
                    let (workspace, id) = (self.bed.workspace, lot.id.clone());
                    self.bed.write(move |tx| void_grant(tx, workspace, &id)).await.unwrap();
                    self.model.sweep(now);
                }
            }
            Act::Hold { run, wanted, least } => {
                let expected = self.model.hold(run, wanted, least, now);
                let found = self.bed.hold(&self.charges[run], wanted, least).await;
                if expected.is_err() {
                    // A refused hold is rolled back with the sweep that it began.
                    self.bed.write(sweep_expired_grants).await.unwrap();
                    self.model.sweep(now);
                }
                assert_eq!(found.map_err(|error| error.code()), expected, "{act:?}");
            }
            Act::Settle { run, energy, again } => {
                let step = self.model.runs[run].step;
                self.bed.settle(&self.charges[run], step, energy).await;
                self.model.debit(run, energy, now);
                if again {
                    self.bed.settle(&self.charges[run], step, if energy > 0 { energy + 1 } else { 0 }).await;
                }
                self.model.runs[run].step += 1;
            }
            Act::Close { run, energy, refund } => {
                let step = self.model.runs[run].step;
                for _ in 0..2 {
                    self.bed.settle_with(&self.charges[run], step, energy, Some(refund)).await.unwrap();
                }
                self.model.debit(run, energy, now);
                self.model.close(run, refund);
                self.charges[run] = self.bed.run(&self.keys[run % 2]);
                self.reprice();
            }
            Act::HoldAll(ref wanted) => {
                let fresh = |place: &usize| self.model.runs[*place].month.is_none();
                let wanted: Vec<(usize, i64)> =
                    (0..RUNS).filter(fresh).map(|place| (place, wanted[place])).collect();
                let holds = wanted.iter().map(|(place, wanted)| (self.charges[*place].clone(), *wanted));
                let found = self.bed.hold_all(holds.collect()).await;
                assert_eq!(found, self.model.hold_all(&wanted, now), "{act:?}");
            }
            Act::CloseAll(ref energy) => {
                let end =
                    |place: usize| (self.charges[place].clone(), self.model.runs[place].step, energy[place]);
                let charged = self.bed.close_all((0..RUNS).map(end).collect()).await;
                for (place, charged) in charged.into_iter().enumerate() {
                    assert_eq!(charged, energy[place].min(self.model.runs[place].unused), "{act:?}");
                    self.model.debit(place, energy[place], now);
                    self.model.close(place, false);
                    self.charges[place] = self.bed.run(&self.keys[place % 2]);
                }
                self.reprice();
            }
            Act::Reopen { run, energy } => {
                let step = self.model.runs[run].step;
                self.bed.settle_with(&self.charges[run], step, energy, Some(true)).await.unwrap();
                self.model.debit(run, energy, now);
                let was = &self.model.runs[run];
                let unmetered = if was.month.is_some() { was.unmetered } else { self.model.unmetered };
                self.model.close(run, true);
                self.model.runs[run].unmetered = unmetered;
                for _ in 0..2 {
                    self.bed.reopen(&self.charges[run]).await;
                }
                self.model.runs[run].step = step + 1;
                self.model.runs[run].month = Some(now.month());
            }
            Act::Wait(minutes) => self.bed.test.clock.advance(Duration::minutes(minutes)),
            Act::NextMonth => {
                let left = now.next_month_start().millis() - now.millis();
                self.bed.test.clock.advance(Duration::milliseconds(left));
            }
            Act::Budget { cents, cutoff } => {
                self.bed.budget(&self.keys[1], cents, cutoff).await;
                self.model.budget = Budget { cents, cutoff };
                self.model.is_steady = false;
            }
            Act::Price(price) => {
                self.model.price = price;
                self.model.is_steady = false;
                self.reprice();
            }
            Act::Metered(metered) => {
                self.model.unmetered = !metered;
                self.reprice();
            }
            Act::SweepGrants => {
                self.bed.write(sweep_expired_grants).await.unwrap();
                self.model.sweep(now);
            }
            Act::SweepHolds => {
                self.bed.write(sweep_expired_holds).await.unwrap();
                self.model.sweep_holds(now);
            }
        }
        self.compare().await;
    }

    /// Makes all runs cost what Energy costs now, as the plan now is.
    fn reprice(&mut self) {
        for charge in &mut self.charges {
            let workspace = Arc::make_mut(&mut charge.caller.workspace);
            workspace.plan.usd_micros_per_1000_energy = self.model.price;
            workspace.plan.energy_metered = !self.model.unmetered;
        }
    }

    async fn compare(&self) {
        let model = &self.model;
        self.bed.expect(model.balance, model.reserved()).await;
        let rows: Vec<(GrantId, i64)> = self
            .bed
            .db()
            .read(|read| {
                Ok(energy_grants::table
                    .order(energy_grants::created_at.asc())
                    .select((energy_grants::id, energy_grants::remaining))
                    .load(read.connection())?)
            })
            .await
            .unwrap();
        let lots: Vec<(GrantId, i64)> = model.lots.iter().map(|lot| (lot.id.clone(), lot.left)).collect();
        assert_eq!(rows, lots, "what is left of the grants");
        for (key, spent) in model.spent.iter().enumerate() {
            let months = spent
                .keys()
                .chain(model.runs.iter().skip(key).step_by(2).filter_map(|run| run.month.as_ref()));
            let expected: BTreeMap<String, (i64, i64)> = months
                .map(|month| {
                    let spent = spent.get(month).copied().unwrap_or(0);
                    (month.clone(), (spent, model.reserved_in(key, month)))
                })
                .filter(is_any)
                .collect();
            assert_eq!(self.bed.months(&self.keys[key]).await, expected, "the money of key {key}");
            let kept =
                expected.values().all(|(spent, reserved)| spent + reserved <= CAP_CENTS * MICROS_PER_CENT);
            assert!(kept || key == 0 || !model.is_steady, "the budget is kept: {expected:?}");
        }
    }
}

fn schedules(kind: Kind) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: 24, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let mut acts = proptest::collection::vec(act(), 30..90).boxed();
    acts = acts
        .prop_map(|mut acts| {
            // A schedule without Energy is a waste of time.
            acts.insert(0, Act::Grant { amount: 500, priority: 1, minutes: None });
            acts
        })
        .boxed();
    TestRunner::new(config)
        .run(&acts, |acts| {
            runtime.block_on(async {
                let mut bench = Bench::new(kind).await;
                for act in &acts {
                    bench.play(act).await;
                }
                // Whatever happened, the books close.
                for run in 0..RUNS {
                    bench.play(&Act::Close { run, energy: 0, refund: false }).await;
                }
                assert_eq!(bench.model.reserved(), 0);
            });
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_schedules_keep_the_books_on_sqlite() {
    schedules(Kind::Sqlite);
}

#[test]
fn random_schedules_keep_the_books_on_postgres() {
    schedules(Kind::Postgres);
}
