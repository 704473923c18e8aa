//! Locks: their order, who waits for whom, and what becomes of a deadlock.

use crate::{broken, mark};
use diesel::prelude::*;
use model::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use store::schema::jobs;
use store::{LockLevel, LockMode, Tx, each};
use testkit::{Kind, TestDb};

/// Takes two rows, each after the other transaction has the first of its own, the first time round.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_on_postgres_is_tried_again() {
    let test = TestDb::new(Kind::Postgres);
    for id in ["a", "b"] {
        test.db.write(move |tx| mark(tx, id)).await.unwrap();
    }
    let both_have_one = Arc::new(Barrier::new(2));
    let runs = Arc::new(AtomicU32::new(0));
    let take = |order: [&'static str; 2]| {
        let (both_have_one, runs, first) = (both_have_one.clone(), runs.clone(), AtomicBool::new(true));
        test.db.write(move |tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            let add = |tx: &mut Tx, kind: &str| -> Result<()> {
                let row = jobs::table.filter(jobs::kind.eq(kind.to_owned()));
                each!(tx.connection(), |connection| diesel::update(row)
                    .set(jobs::attempts.eq(jobs::attempts + 1))
                    .execute(connection))?;
                Ok(())
            };
            add(tx, order[0])?;
            if first.swap(false, Ordering::SeqCst) {
                both_have_one.wait();
            }
            add(tx, order[1])
        })
    };
    let (one, other) = tokio::join!(take(["a", "b"]), take(["b", "a"]));
    one.and(other).unwrap();
    assert!(runs.load(Ordering::SeqCst) > 2, "neither was refused");
    let attempts: Vec<i64> =
        test.db.read(|read| Ok(jobs::table.select(jobs::attempts).load(read.connection())?)).await.unwrap();
    assert_eq!(attempts, [2, 2]);
}

#[testkit::both]
async fn locks_out_of_order_are_refused_on_either_database(kind: Kind) {
    let test = TestDb::new(kind);
    let upgraded = test.db.write(|tx| {
        tx.expect_lock_order(LockLevel::Collection, 1, LockMode::Shared)?;
        tx.expect_lock_order(LockLevel::Collection, 1, LockMode::Exclusive)
    });
    assert_eq!(upgraded.await.unwrap_err().code(), model::Code::InternalError);
    let undone = test.db.write(|tx| {
        let inner: Result<()> = tx.savepoint(|tx| {
            tx.expect_lock_order(LockLevel::Item, 1, LockMode::Exclusive)?;
            Err(broken())
        });
        assert!(inner.is_err());
        tx.expect_lock_order(LockLevel::Collection, 1, LockMode::Exclusive)
    });
    undone.await.unwrap();
}

/// Waits until so many wait for a lock.
async fn until_waiting(test: &TestDb, number: i64) {
    #[derive(QueryableByName)]
    struct Waiting {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        n: i64,
    }
    const SQL: &str = "SELECT count(*) AS n FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database \
               WHERE datname = current_database() AND NOT granted";
    let waiting = async || {
        let counted =
            test.db.read(|read| Ok(diesel::sql_query(SQL).get_result::<Waiting>(read.connection())?.n));
        counted.await.unwrap()
    };
    while waiting().await < number {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exclusive_lock_is_not_kept_waiting_by_those_who_share() {
    let test = TestDb::new(Kind::Postgres);
    let ends = Arc::new(Mutex::new(Vec::new()));
    let (go_on, stopped) = std::sync::mpsc::channel::<()>();
    let stopped = Mutex::new(stopped);
    let (db, said) = (test.db.clone(), ends.clone());
    let (shared, is_shared) = std::sync::mpsc::channel();
    let first = tokio::spawn(async move {
        db.write(move |tx| {
            tx.lock_shared("name")?;
            shared.send(()).map_err(Error::internal)?;
            let _ = stopped.lock().unwrap().recv();
            said.lock().unwrap().push("first");
            Ok(())
        })
        .await
    });
    tokio::task::spawn_blocking(move || is_shared.recv()).await.unwrap().unwrap();
    let (db, said) = (test.db.clone(), ends.clone());
    let exclusive = tokio::spawn(async move {
        db.write(move |tx| {
            tx.lock("name")?;
            said.lock().unwrap().push("exclusive");
            Ok(())
        })
        .await
    });
    until_waiting(&test, 1).await;
    let (db, said) = (test.db.clone(), ends.clone());
    let later = tokio::spawn(async move {
        db.write(move |tx| {
            tx.lock_shared("name")?;
            said.lock().unwrap().push("later");
            Ok(())
        })
        .await
    });
    until_waiting(&test, 2).await;
    drop(go_on);
    for task in [first, exclusive, later] {
        task.await.unwrap().unwrap();
    }
    assert_eq!(*ends.lock().unwrap(), ["first", "exclusive", "later"]);
    assert_eq!(test.db.stats().retries, 0);
}
