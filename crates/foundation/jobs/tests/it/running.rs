//! Running runners: concurrency, takeover, wake-up and shutdown.

use crate::{Seen, ask, job, pass, row, rows, until};
use diesel::prelude::*;
use jobs::{Job, JobError, Runner, Running};
use model::{Error, WorkspaceId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use store::schema::jobs as table;
use testkit::{Kind, TestDb};
use tokio::sync::Semaphore;

const SOON: Duration = Duration::from_millis(10);
const NEVER: Duration = Duration::from_secs(3600);

/// A handler that waits until the test releases it, and counts the calls that wait.
#[derive(Clone)]
struct Gate {
    waiting: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        Self { waiting: Arc::default(), open: Arc::new(Semaphore::new(0)) }
    }

    fn runner(&self, runner: Runner) -> Runner {
        let gate = self.clone();
        runner.with([job("k", move |_| {
            let gate = gate.clone();
            async move {
                gate.waiting.fetch_add(1, Ordering::SeqCst);
                gate.open.acquire().await.map_err(Error::internal)?.forget();
                Ok(())
            }
        })])
    }

    async fn reached(&self, jobs: usize) {
        until(async || self.waiting.load(Ordering::SeqCst) == jobs).await;
    }
}

async fn many_runners(kind: Kind) {
    const JOBS: i64 = 150;
    let test = TestDb::new(kind);
    let seen = Seen::default();
    let runners: Vec<Running> = (0..6)
        .map(|number| {
            let db = if number % 2 == 0 { test.db.clone() } else { test.reopen() };
            let noting = seen.clone();
            let runner = Runner::new(db).poll_every(SOON).with([job("k", move |context| {
                let noted = noting.note(&context);
                async move {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    noted
                }
            })]);
            runner.start()
        })
        .collect();
    for payload in 0..JOBS {
        ask(&test.db, "k", None, payload).await;
    }
    until(async || rows(&test.db).await.is_empty()).await;
    for runner in runners {
        assert_eq!(runner.stop(Duration::from_secs(10)).await, []);
    }
    let mut runs = HashMap::new();
    for (payload, attempt) in seen.all() {
        assert_eq!(attempt, 1, "{payload}");
        *runs.entry(payload).or_insert(0) += 1;
    }
    assert_eq!(runs, (0..JOBS).map(|payload| (payload, 1)).collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runners_never_run_a_job_twice_on_sqlite() {
    many_runners(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runners_never_run_a_job_twice_on_postgres() {
    many_runners(Kind::Postgres).await;
}

#[testkit::both]
async fn a_job_whose_lease_ran_out_is_taken_over_and_its_old_owner_has_no_say(kind: Kind) {
    let test = TestDb::new(kind);
    let gate = Gate::new();
    // One job at a time, or this runner might take over its own job before the other does.
    let old = gate.runner(Runner::new(test.reopen())).poll_every(SOON).concurrency(1).start();
    ask(&test.db, "k", None, 1).await;
    gate.reached(1).await;
    let claimed = row(&test.db).await;
    let now = test.db.clock().now();
    assert_eq!((claimed.epoch, claimed.attempts), (1, 1));
    assert_eq!(claimed.lease_until, Some(now.plus_seconds(60)));

    let new = Runner::new(test.db.clone()).with([job("k", |context| async move {
        assert_eq!(context.attempts, 2);
        Err(JobError::retry_in(Duration::from_secs(100), model::Error::internal("later")))
    })]);
    assert_eq!(new.run_due().await.unwrap(), 0);
    // The old owner renews its lease only after 20 s of real time.
    pass(&test, 60);
    assert_eq!(new.run_due().await.unwrap(), 1);
    let taken_over = row(&test.db).await;
    assert_eq!((taken_over.epoch, taken_over.attempts), (2, 2));

    gate.open.add_permits(1);
    assert_eq!(old.stop(Duration::from_secs(60)).await, []);
    assert_eq!(row(&test.db).await, taken_over);
}

#[testkit::both]
async fn a_lease_is_renewed_for_as_long_as_the_job_runs(kind: Kind) {
    let test = TestDb::new(kind);
    let gate = Gate::new();
    let lease = Duration::from_millis(300);
    let runner = gate.runner(Runner::new(test.reopen())).poll_every(SOON).lease(lease).start();
    ask(&test.db, "k", None, 1).await;
    gate.reached(1).await;
    let other = gate.runner(Runner::new(test.db.clone()));
    for _ in 0..3 {
        test.clock.advance(chrono::Duration::milliseconds(200));
        let until_when = test.db.clock().now().millis() + 300;
        until(async || row(&test.db).await.lease_until.unwrap().millis() == until_when).await;
        assert_eq!(other.run_due().await.unwrap(), 0);
    }
    gate.open.add_permits(1);
    until(async || rows(&test.db).await.is_empty()).await;
    assert_eq!(runner.stop(SOON).await, []);
}

#[testkit::both]
async fn a_handler_hears_that_its_job_was_taken_over(kind: Kind) {
    let test = TestDb::new(kind);
    let runner = Runner::new(test.reopen()).poll_every(SOON).lease(Duration::from_millis(30));
    let heard = Arc::new(Semaphore::new(0));
    let hearing = heard.clone();
    let running = runner
        .with([job("k", move |context| {
            let hearing = hearing.clone();
            async move {
                context.soft.cancelled().await;
                hearing.add_permits(1);
                Err(JobError::hand_back())
            }
        })])
        .start();
    ask(&test.db, "k", None, 1).await;
    until(async || row(&test.db).await.lease_until.is_some()).await;
    let steal = "UPDATE jobs SET epoch = epoch + 1, lease_until = '2026-01-15 13:00:00'";
    test.db
        .write(move |tx| {
            use diesel::connection::SimpleConnection;
            Ok(tx.connection().batch_execute(steal)?)
        })
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(60), heard.acquire()).await.unwrap().unwrap().forget();
    running.stop(Duration::from_secs(60)).await;
    let row = row(&test.db).await;
    assert_eq!((row.epoch, row.attempts), (2, 1), "and leaves it alone");
}

#[testkit::both]
async fn a_job_that_is_enqueued_does_not_wait_for_the_next_poll(kind: Kind) {
    let test = TestDb::new(kind);
    let seen = Seen::default();
    let noting = seen.clone();
    let runner = Runner::new(test.db.clone()).poll_every(NEVER).with([job("k", move |context| {
        let noted = noting.note(&context);
        async { noted }
    })]);
    let before = test.db.stats().writes;
    let running = runner.start();
    until(async || test.db.stats().writes > before).await;
    for payload in 1..=3 {
        ask(&test.db, "k", None, payload).await;
        until(async || rows(&test.db).await.is_empty()).await;
    }
    assert_eq!(seen.all(), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(running.stop(SOON).await, []);
}

#[testkit::both]
async fn a_workspace_leaves_room_for_others(kind: Kind) {
    let test = TestDb::new(kind);
    let gate = Gate::new();
    for workspace in [1, 1, 1, 1, 1, 1, 2, 2] {
        let workspace = WorkspaceId(workspace);
        test.db.write(move |tx| tx.enqueue(workspace, "k", None, &(), tx.now())).await.unwrap();
    }
    ask(&test.db, "k", None, 0).await;
    let runner = Runner::new(test.db.clone()).poll_every(NEVER).per_workspace(2);
    let running = gate.runner(runner).start();
    // Two of each workspace, and the one without a workspace.
    gate.reached(5).await;
    let waiting = async || {
        let waiting = table::table.filter(table::lease_until.is_null()).select(table::workspace_id);
        test.db.read(move |read| Ok(waiting.load::<Option<i64>>(read.connection())?)).await.unwrap()
    };
    assert_eq!(waiting().await, [Some(1); 4]);
    // Each job that ends makes room for the next, before the next poll.
    gate.open.add_permits(9);
    until(async || rows(&test.db).await.is_empty()).await;
    assert_eq!(gate.waiting.load(Ordering::SeqCst), 9);
    assert_eq!(running.stop(SOON).await, []);
}

#[testkit::both]
async fn more_than_fits_is_taken_as_soon_as_there_is_room(kind: Kind) {
    let test = TestDb::new(kind);
    let gate = Gate::new();
    for payload in 0..10 {
        ask(&test.db, "k", None, payload).await;
    }
    let running = gate.runner(Runner::new(test.db.clone())).poll_every(NEVER).concurrency(3).start();
    gate.reached(3).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    gate.reached(3).await;
    gate.open.add_permits(10);
    until(async || rows(&test.db).await.is_empty()).await;
    assert_eq!(running.stop(SOON).await, []);
}

#[testkit::both]
async fn stopping_waits_then_aborts_and_gives_the_jobs_back(kind: Kind) {
    let test = TestDb::new(kind);
    let started = Arc::new(AtomicUsize::new(0));
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (starting, dropping) = (started.clone(), dropped.clone());
    let running = Runner::new(test.db.clone())
        .poll_every(SOON)
        .with([job("k", move |context| {
            starting.fetch_add(1, Ordering::SeqCst);
            let counts = Counts(dropping.clone());
            async move {
                let _counts = counts;
                match context.payload.parse::<i64>()? {
                    1 => std::future::pending().await,
                    2 => {
                        context.soft.cancelled().await;
                        Err(JobError::hand_back())
                    }
                    _ => {
                        context.soft.cancelled().await;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        Ok(())
                    }
                }
            }
        })])
        .start();
    for payload in 1..=3 {
        ask(&test.db, "k", None, payload).await;
    }
    until(async || started.load(Ordering::SeqCst) == 3).await;
    let requested_at = test.db.clock().now();
    pass(&test, 1);
    let began = Instant::now();
    let aborted = running.stop(Duration::from_secs(1)).await;
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(aborted.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>(), ["k"]);
    assert_eq!(dropped.load(Ordering::SeqCst), 3, "nothing goes on behind our back");

    let left = rows(&test.db).await;
    assert_eq!(left.iter().map(|row| row.payload.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    for row in left {
        assert_eq!((row.run_at, row.attempts, row.lease_until), (requested_at, 0, None));
        assert_eq!((row.epoch, row.last_error, row.failed_at), (1, None, None));
    }
    ask(&test.db, "k", None, 4).await;
    tokio::time::sleep(SOON * 5).await;
    assert_eq!(started.load(Ordering::SeqCst), 3, "a stopped runner claims nothing");
    let next = Runner::new(test.reopen()).with([job("k", |context| async move {
        assert_eq!(context.attempts, 1);
        Ok(())
    })]);
    assert_eq!(next.run_due().await.unwrap(), 3);
    assert_eq!(rows(&test.db).await, []);
}

#[testkit::both]
async fn handing_back_without_a_request_is_a_failure(kind: Kind) {
    let test = TestDb::new(kind);
    let runner = Runner::new(test.db.clone()).with([job("k", |_| async { Err(JobError::hand_back()) })]);
    ask(&test.db, "k", None, 1).await;
    assert_eq!(runner.run_due().await.unwrap(), 1);
    assert_eq!(row(&test.db).await.attempts, 1);
}

#[testkit::both]
async fn periodic_work_of_started_runners_runs_once(kind: Kind) {
    let test = TestDb::new(kind);
    let seen = Seen::default();
    let start = |db| {
        let noting = seen.clone();
        let runner =
            Runner::new(db).poll_every(SOON).with([Job::every("sweep", NEVER, "", move |context| {
                let noted = noting.note(&context);
                async { noted }
            })]);
        runner.start()
    };
    let runners = [start(test.db.clone()), start(test.reopen()), start(test.reopen())];
    until(async || !seen.all().is_empty()).await;
    tokio::time::sleep(SOON * 10).await;
    pass(&test, 3600);
    until(async || seen.all().len() > 1).await;
    tokio::time::sleep(SOON * 10).await;
    for runner in runners {
        assert_eq!(runner.stop(Duration::from_secs(10)).await, []);
    }
    assert_eq!(seen.all().len(), 2);
}

/// A job that waits must see the changes of a transaction that enqueues it again.
#[tokio::test]
async fn a_waiting_job_is_not_claimed_before_a_second_enqueue_has_committed() {
    let test = TestDb::new(Kind::Postgres);
    let runner = Runner::new(test.db.clone()).with([job("k", |_| async { Ok(()) })]);
    ask(&test.db, "k", Some("key"), 1).await;
    let (enqueued, is_waiting) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let db = test.reopen();
    let asking = tokio::spawn(async move {
        db.write(move |tx| {
            tx.enqueue(None, "k", Some("key"), &2, tx.now())?;
            enqueued.send(()).map_err(Error::internal)?;
            may_go_on.lock().unwrap().recv().map_err(Error::internal)
        })
        .await
    });
    until(async || is_waiting.try_recv().is_ok()).await;
    assert_eq!(runner.run_due().await.unwrap(), 0);
    go_on.send(()).unwrap();
    asking.await.unwrap().unwrap();
    assert_eq!(runner.run_due().await.unwrap(), 1);
    assert_eq!(rows(&test.db).await, []);
}
