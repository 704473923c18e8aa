//! Transactions: all or nothing, alone or in a group, and durable once answered.

use crate::{broken, mark, marks};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use model::{
    Cause, Chain, Error, Event, EventId, EventMeta, JsonText, Result, Scope, Timestamp, WorkspaceId,
};
use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::Poll;
use store::schema::{events, jobs};
use store::{Backend, Batched, Batches, Db, Tx, dialect};
use testkit::{Kind, TestDb};
use tokio::task::JoinSet;

/// An event of these tests.
struct Changed {
    name: &'static str,
}

impl Event for Changed {
    const TYPES: &'static [EventMeta] = &[EventMeta {
        name: "test.changed",
        description: "Something was changed.",
        scope: Scope::EventsRead,
        subject: None,
        schema: || serde_json::json!({ "type": "object" }),
    }];

    fn meta(&self) -> &'static EventMeta {
        &Self::TYPES[0]
    }

    fn data(&self) -> Result<JsonText> {
        Ok(JsonText::of(&serde_json::json!({ "name": self.name })))
    }
}

/// A change that shares its transaction with others, and is made after those before it.
struct InTurn<F>(F);

impl<F: Fn(&mut Tx) -> Result<()> + Send + Sync + 'static> Batched for InTurn<F> {
    type Maker = ();
    type Output = ();

    fn alone(&self, (): &(), tx: &mut Tx) -> Result<()> {
        (self.0)(tx)
    }

    fn together((): &(), changes: &[&Self], tx: &mut Tx) -> Result<Vec<Option<()>>> {
        changes.iter().map(|change| (change.0)(tx).map(Some)).collect()
    }
}

/// Many at once, so that the writer has something to group; `batched`, if they share transactions on PostgreSQL too.
async fn stay_apart(kind: Kind, batched: bool) {
    let test = TestDb::new(kind);
    let elsewhere = test.reopen();
    let batches: Arc<Batches<_>> = Arc::default();
    let mut all = JoinSet::new();
    for number in 0..200 {
        let (db, elsewhere, batches) = (test.db.clone(), elsewhere.clone(), batches.clone());
        all.spawn(async move {
            let name = format!("mark-{number}");
            let written = name.clone();
            let work = move |tx: &mut Tx| {
                mark(tx, &written)?;
                match number % 10 {
                    3 => Err(broken()),
                    5 => panic!("on purpose"),
                    // A statement that fails, which ends a PostgreSQL transaction for good.
                    7 => Ok(tx.connection().batch_execute("INSERT INTO nowhere VALUES (1)")?),
                    8 => tx.savepoint(|_| panic!("on purpose")),
                    _ => Ok(()),
                }
            };
            let work = InTurn(work);
            let result = match batched {
                true => db.write_batched(&batches, (), work).await,
                false => db.write(work.0).await,
            };
            assert_eq!(result.is_ok(), ![3, 5, 7, 8].contains(&(number % 10)), "{number}: {result:?}");
            if result.is_ok() {
                assert!(
                    marks(&elsewhere).await.contains(&name),
                    "{name} was answered before it was committed"
                );
            }
            result.is_ok().then_some(name)
        });
    }
    let kept: HashSet<String> = all.join_all().await.into_iter().flatten().collect();
    assert_eq!(kept.len(), 120);
    assert_eq!(marks(&test.db).await.into_iter().collect::<HashSet<_>>(), kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_in_a_crowd_stay_apart_on_sqlite() {
    stay_apart(Kind::Sqlite, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_in_a_crowd_stay_apart_on_postgres() {
    stay_apart(Kind::Postgres, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_one_batch_stay_apart_on_sqlite() {
    stay_apart(Kind::Sqlite, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_one_batch_stay_apart_on_postgres() {
    stay_apart(Kind::Postgres, true).await;
}

/// The writer is held up by a first transaction until all of `works` wait for it, which puts them into its group.
pub async fn in_one_group<F: Fn(&mut Tx) -> Result<()> + Send + 'static>(
    db: &Db,
    works: Vec<F>,
) -> Vec<Result<()>> {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let first = tokio::spawn({
        let db = db.clone();
        async move { db.write(move |_| wait.lock().unwrap().recv().map_err(Error::internal)).await }
    });
    while db.stats().writes == 0 {
        tokio::task::yield_now().await;
    }
    let waiting = works.into_iter().map(|work| {
        let db = db.clone();
        tokio::spawn(async move { db.write(work).await })
    });
    let waiting: Vec<_> = waiting.collect();
    let writes = 1 + waiting.len() as u64;
    while db.stats().writes < writes {
        tokio::task::yield_now().await;
    }
    go.send(()).unwrap();
    // Asked again, it need not wait.
    drop(go);
    // It shares the fate of the group, so it is no more than a part of it.
    let _ = first.await.unwrap();
    let mut results = Vec::new();
    for result in waiting {
        results.push(result.await.unwrap());
    }
    results
}

#[tokio::test]
async fn a_group_shares_a_commit_and_hears_of_it_afterwards() {
    let test = TestDb::new(Kind::Sqlite);
    let committed = Arc::new(AtomicBool::new(false));
    let work = |name: &'static str| {
        let committed = committed.clone();
        move |tx: &mut Tx| {
            assert!(!committed.load(Ordering::SeqCst), "{name} is in a group of its own");
            let committed = committed.clone();
            tx.after_commit(move || committed.store(true, Ordering::SeqCst));
            mark(tx, name)
        }
    };
    let results = in_one_group(&test.db, ["a", "b", "c"].map(work).into()).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(marks(&test.db).await, ["a", "b", "c"]);
}

/// What each of a group is to do, and how often it was done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    Well,
    BadlyAtOnce,
    BadlyAfterAll,
}

async fn done_in_one_group(ends: &[End]) -> (Vec<String>, Vec<bool>, u32, u32) {
    let test = TestDb::new(Kind::Sqlite);
    let (runs, hooks) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let works = ends.iter().enumerate().map(|(number, end)| {
        let (end, runs, hooks) = (*end, runs.clone(), hooks.clone());
        move |tx: &mut Tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            let hooks = hooks.clone();
            tx.after_commit(move || {
                hooks.fetch_add(1, Ordering::SeqCst);
            });
            if end == End::BadlyAtOnce {
                return Err(broken());
            }
            mark(tx, &format!("mark-{number}"))?;
            if end == End::Well { Ok(()) } else { Err(broken()) }
        }
    });
    let results = in_one_group(&test.db, works.collect()).await;
    let well = results.iter().map(Result::is_ok).collect();
    (marks(&test.db).await, well, runs.load(Ordering::SeqCst), hooks.load(Ordering::SeqCst))
}

#[tokio::test]
async fn who_fails_before_changing_anything_costs_the_group_nothing() {
    let (marks, well, runs, hooks) = done_in_one_group(&[End::Well, End::BadlyAtOnce, End::Well]).await;
    assert_eq!(marks, ["mark-0", "mark-2"]);
    assert_eq!(well, [true, false, true]);
    assert_eq!((runs, hooks), (3, 2));
}

#[tokio::test]
async fn who_fails_half_way_is_undone_alone() {
    let ends = [End::Well, End::BadlyAfterAll, End::Well, End::BadlyAfterAll, End::BadlyAtOnce];
    let (marks, well, runs, hooks) = done_in_one_group(&ends).await;
    assert_eq!(marks, ["mark-0", "mark-2"]);
    assert_eq!(well, [true, false, true, false, false]);
    assert_eq!((runs, hooks), (7, 2), "the first two were done again, and each hook ran once");
}

/// SQLite ends the whole transaction by itself when the disk is full; `OR ROLLBACK` does the same.
#[tokio::test]
async fn the_writer_outlives_a_transaction_that_sqlite_ended() {
    let test = TestDb::new(Kind::Sqlite);
    let work = |fatal: bool| {
        move |tx: &mut Tx| {
            mark(tx, "mark")?;
            if fatal {
                let twice = "INSERT INTO jobs (id, kind, payload, run_at, attempts, epoch, created_at) VALUES (99, '', '', 0, 0, 0, 0);";
                let twice = format!("{twice} {}", twice.replace("INSERT", "INSERT OR ROLLBACK"));
                tx.connection().batch_execute(&twice)?;
            }
            Ok(())
        }
    };
    let results = in_one_group(&test.db, vec![work(false), work(true), work(false)]).await;
    assert!(results[1].is_err());
    let answered = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(marks(&test.db).await.len(), answered, "only what was answered is there, and all of it");
    test.db.write(|tx| mark(tx, "after")).await.unwrap();
    assert_eq!(marks(&test.reopen()).await.pop().unwrap(), "after");
}

#[testkit::both]
async fn a_savepoint_undoes_its_own_part_only(kind: Kind) {
    let test = TestDb::new(kind);
    test.db
        .write(|tx| {
            mark(tx, "before")?;
            let failed: Result<()> = tx.savepoint(|tx| {
                mark(tx, "undone")?;
                tx.savepoint(|tx| mark(tx, "undone with it"))?;
                Ok(tx.connection().batch_execute("INSERT INTO nowhere VALUES (1)")?)
            });
            assert!(failed.is_err());
            tx.savepoint(|tx| mark(tx, "kept"))?;
            mark(tx, "after")
        })
        .await
        .unwrap();
    assert_eq!(marks(&test.db).await, ["before", "kept", "after"]);
}

#[testkit::both]
async fn a_panic_in_a_savepoint_takes_the_transaction_with_it(kind: Kind) {
    let test = TestDb::new(kind);
    let result: Result<()> = test
        .db
        .write(|tx| {
            mark(tx, "undone")?;
            tx.savepoint(|tx| {
                mark(tx, "undone")?;
                tx.savepoint(|_| panic!("on purpose"))
            })
        })
        .await;
    assert!(result.is_err());
    test.db.write(|tx| mark(tx, "next")).await.unwrap();
    assert_eq!(marks(&test.reopen()).await, ["next"]);
}

#[testkit::both]
async fn a_panic_in_a_savepoint_that_was_caught_undoes_it(kind: Kind) {
    let test = TestDb::new(kind);
    test.db
        .write(|tx| {
            mark(tx, "kept")?;
            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                tx.savepoint(|tx| -> Result<()> {
                    mark(tx, "undone")?;
                    panic!("on purpose")
                })
            }));
            assert!(unwound.is_err());
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(marks(&test.reopen()).await, ["kept"]);
}

#[testkit::both]
async fn hooks_run_once_the_change_is_there_and_only_then(kind: Kind) {
    let test = TestDb::new(kind);
    let said = Arc::new(std::sync::Mutex::new(Vec::new()));
    let say = |word: &'static str| {
        let said = said.clone();
        move || said.lock().unwrap().push(word)
    };
    let (outer, inner, undone) = (say("outer"), say("inner"), say("undone"));
    test.db
        .write(move |tx| {
            mark(tx, "there")?;
            tx.after_commit(outer.clone());
            tx.savepoint(|tx| {
                tx.after_commit(inner.clone());
                Ok(())
            })?;
            let undone = undone.clone();
            let failed: Result<()> = tx.savepoint(|tx| {
                tx.after_commit(undone);
                Err(broken())
            });
            assert!(failed.is_err());
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(*said.lock().unwrap(), ["outer", "inner"]);

    let failed = say("failed");
    let result: Result<()> = test
        .db
        .write(move |tx| {
            tx.after_commit(failed.clone());
            Err(broken())
        })
        .await;
    assert!(result.is_err());
    let panicked = say("panicked");
    let result: Result<()> = test
        .db
        .write(move |tx| {
            tx.after_commit(panicked.clone());
            panic!("on purpose")
        })
        .await;
    assert!(result.is_err());
    test.db.write(|_| Ok(())).await.unwrap();
    assert_eq!(*said.lock().unwrap(), ["outer", "inner"]);
}

#[testkit::both]
async fn a_hook_that_panics_harms_nobody(kind: Kind) {
    let test = TestDb::new(kind);
    let hook = |tx: &mut Tx| {
        tx.after_commit(|| panic!("on purpose"));
        mark(tx, "committed")
    };
    test.db.write(hook).await.unwrap();
    test.db.write(|tx| mark(tx, "next")).await.unwrap();
    assert_eq!(marks(&test.db).await, ["committed", "next"]);
}

#[testkit::both]
async fn background_work_leaves_connections_to_requests(kind: Kind) {
    let test = TestDb::new(kind);
    let background = test.db.background();
    let at_work = Arc::new(AtomicUsize::new(0));
    let (go_on, stopped) = std::sync::mpsc::channel::<()>();
    let stopped = Arc::new(Mutex::new(stopped));
    // As many as there are connections, and more.
    let reading: Vec<_> = (0..8)
        .map(|_| {
            let (db, at_work, stopped) = (background.clone(), at_work.clone(), stopped.clone());
            tokio::spawn(async move {
                db.read(move |_| {
                    at_work.fetch_add(1, Ordering::SeqCst);
                    let _ = stopped.lock().unwrap().recv();
                    Ok(())
                })
                .await
            })
        })
        .collect();
    while at_work.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    // Requests find one as often as they ask.
    for _ in 0..20 {
        test.db.read(|_| Ok(())).await.unwrap();
        test.db.write(|tx| mark(tx, "request")).await.unwrap();
    }
    assert_eq!(at_work.load(Ordering::SeqCst), 2, "of four connections");
    drop(go_on);
    for read in reading {
        read.await.unwrap().unwrap();
    }
    assert_eq!(at_work.load(Ordering::SeqCst), 8);
}

#[testkit::both]
async fn events_and_jobs_commit_with_the_change(kind: Kind) {
    let test = TestDb::new(kind);
    let change = |tx: &mut Tx| {
        tx.emit(WorkspaceId(7), &Cause::system("test"), true, &Changed { name: "é\"" })?;
        tx.enqueue(None, "things.tell", Some("thing-1"), &serde_json::json!([1]), tx.now())
    };
    let result: Result<()> = test.db.write(move |tx| change(tx).and(Err(broken()))).await;
    assert!(result.is_err());
    let counts = |db: Db| async move {
        db.read(|read| {
            let events: i64 = events::table.count().get_result(read.connection())?;
            let jobs: i64 = jobs::table.count().get_result(read.connection())?;
            Ok((events, jobs))
        })
        .await
        .unwrap()
    };
    assert_eq!(counts(test.db.clone()).await, (0, 0));
    test.db.write(change).await.unwrap();
    assert_eq!(counts(test.db.clone()).await, (1, 1));
    let (workspace, data, created, now) = test
        .db
        .read(|read| {
            let row: (i64, String, Timestamp) = events::table
                .select((events::workspace_id, events::data, events::created_at))
                .first(read.connection())?;
            Ok((row.0, row.1, row.2, read.now()))
        })
        .await
        .unwrap();
    assert_eq!((workspace, data.as_str(), created), (7, r#"{"name":"é\""}"#, now));
}

#[testkit::both]
async fn events_of_one_transaction_are_stored_in_their_order(kind: Kind) {
    let test = TestDb::new(kind);
    let written = test.db.write(|tx| {
        let emit = |tx: &mut Tx, workspace: i64, cause: &Cause, name: &'static str| {
            tx.emit(WorkspaceId(workspace), cause, workspace == 1, &Changed { name })
        };
        let first = emit(tx, 1, &Cause::system("test"), "a")?;
        let undone: Result<()> = tx.savepoint(|tx| {
            emit(tx, 1, &Cause::system("test"), "undone")?;
            tx.savepoint(|tx| emit(tx, 1, &Cause::system("test"), "undone with it"))?;
            Err(broken())
        });
        assert!(undone.is_err());
        let chain = Some(Chain::starting(first.clone()).next().next());
        let second = tx.savepoint(|tx| emit(tx, 2, &Cause { chain, ..Cause::system("test") }, "b"))?;
        Ok([first, second, emit(tx, 1, &Cause::system("other"), "c")?])
    });
    let written = written.await.unwrap();
    type Row = (EventId, i64, bool, String, Option<EventId>, i64);
    let rows: Vec<Row> = test
        .db
        .read(|read| {
            let columns = (
                events::id,
                events::workspace_id,
                events::livemode,
                events::data,
                events::root_event_id,
                events::depth,
            );
            Ok(events::table.order(events::sequence).select(columns).load(read.connection())?)
        })
        .await
        .unwrap();
    let name = |name: &str| format!(r#"{{"name":"{name}"}}"#);
    let [first, second, third] = written;
    assert_eq!(
        rows,
        [
            (first.clone(), 1, true, name("a"), None, 0),
            (second, 2, false, name("b"), Some(first), 2),
            (third, 1, true, name("c"), None, 0),
        ]
    );
}

#[testkit::both]
async fn a_unique_job_that_waits_stays_and_one_that_runs_is_repeated(kind: Kind) {
    type Row = (String, Timestamp, i64, Option<Timestamp>, Option<String>, i64);
    let test = TestDb::new(kind);
    let at = Timestamp::from_millis;
    let ask = |payload: i64, millis: i64| {
        let db = test.db.clone();
        async move {
            db.write(move |tx| tx.enqueue(None, "k", Some("key"), &payload, at(millis))).await.unwrap();
            let columns =
                (jobs::payload, jobs::run_at, jobs::attempts, jobs::failed_at, jobs::last_error, jobs::epoch);
            db.read(move |read| Ok(jobs::table.select(columns).get_result::<Row>(read.connection())?))
                .await
                .unwrap()
        }
    };
    let set = |sql: &'static str| test.db.write(move |tx| Ok(tx.connection().batch_execute(sql)?));
    ask(1, 1000).await;
    assert_eq!(ask(2, 2000).await, ("1".into(), at(1000), 0, None, None, 0), "it waits");

    set("UPDATE jobs SET lease_until = '2026-01-15 12:01:00', epoch = 4, attempts = 3").await.unwrap();
    assert_eq!(ask(3, 3000).await, ("3".into(), at(3000), 0, None, None, 4), "it runs");

    set("UPDATE jobs SET lease_until = NULL, attempts = 9, last_error = 'x', \
         failed_at = '2026-01-15 12:01:00'")
    .await
    .unwrap();
    assert_eq!(ask(4, 4000).await, ("4".into(), at(4000), 0, None, None, 4), "it was given up");
}

#[testkit::both]
async fn what_was_answered_is_there_after_a_restart(kind: Kind) {
    let test = TestDb::new(kind);
    for number in 0..20 {
        test.db.write(move |tx| mark(tx, &number.to_string())).await.unwrap();
    }
    assert_eq!(marks(&test.reopen()).await.len(), 20);
    let Backend::Sqlite(path) = &test.backend else { return };
    // What a killed process leaves on the disk: the file and its log, nothing folded back.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("svc.db").display().to_string();
    for suffix in ["", "-wal"] {
        std::fs::copy(format!("{path}{suffix}"), format!("{copy}{suffix}")).unwrap();
    }
    let options = store::Options {
        backend: Backend::Sqlite(copy),
        connections: 1,
        clock: test.clock.clone(),
        random: test.db.random(),
    };
    assert_eq!(marks(&Db::open(options).unwrap()).await.len(), 20);
}

#[testkit::both]
async fn the_size_is_reported(kind: Kind) {
    let test = TestDb::new(kind);
    let before = test.db.read(dialect::size_bytes).await.unwrap();
    assert!(before > 0);
    // PostgreSQL compresses long texts, and may drop caches of 160 kB that its count includes: the text must stay
    // far larger than that after compression.
    let noise: String =
        (0..100_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    test.db.write(move |tx| tx.enqueue(None, "large", None, &noise, tx.now())).await.unwrap();
    test.db.tidy().await.unwrap();
    assert!(test.db.read(dialect::size_bytes).await.unwrap() > before);
}

/// Statistics of young tables once made SQLite scan the ledger for every settlement, ever longer as it grew.
#[tokio::test]
async fn tidying_leaves_the_planner_to_the_indexes() {
    #[derive(diesel::QueryableByName)]
    struct Tables {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        statistics: i64,
    }
    let test = TestDb::new(Kind::Sqlite);
    test.db.write(|tx| tx.enqueue(None, "one", None, &"x", tx.now())).await.unwrap();
    test.db.tidy().await.unwrap();
    let sql = "SELECT COUNT(*) AS statistics FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'";
    let found: Tables =
        test.db.read(move |read| Ok(diesel::sql_query(sql).get_result(read.connection())?)).await.unwrap();
    assert_eq!(found.statistics, 0);
}

#[tokio::test]
async fn readers_refuse_to_write_on_sqlite() {
    let test = TestDb::new(Kind::Sqlite);
    let result: Result<()> = test
        .db
        .read(|read| {
            let sql = "UPDATE jobs SET attempts = 1";
            Ok(read.connection().batch_execute(sql)?)
        })
        .await;
    let cause = result.unwrap_err().cause().unwrap().to_string();
    assert!(cause.contains("readonly"), "{cause}");
}

#[tokio::test]
async fn a_write_whose_caller_left_is_done_all_the_same() {
    let test = TestDb::new(Kind::Sqlite);
    let gate = Arc::new(Barrier::new(2));
    let passed = gate.clone();
    let mut write = Box::pin(test.db.write(move |tx| {
        passed.wait();
        mark(tx, "done")
    }));
    let is_pending = poll_fn(|context| Poll::Ready(write.as_mut().poll(context).is_pending()));
    assert!(is_pending.await);
    drop(write);
    gate.wait();
    test.db.write(|_| Ok(())).await.unwrap();
    assert_eq!(marks(&test.db).await, ["done"]);
}
