//! Transactions of PostgreSQL that wait for each other in a line.

use crate::{mark, marks};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Error, Result, WorkspaceId};
use std::sync::{Mutex, mpsc};
use store::{Db, Tx};
use testkit::{Kind, TestDb};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Has the line of workspace 1 work until the sender says so. What is put into the line meanwhile waits.
async fn keep_busy(db: &Db) -> (mpsc::Sender<()>, JoinHandle<Result<()>>) {
    let (go, wait) = mpsc::channel::<()>();
    let (begin, begun) = oneshot::channel();
    let (wait, begin) = (Mutex::new(wait), Mutex::new(Some(begin)));
    let work = move |_: &mut Tx| {
        if let Some(begin) = begin.lock().unwrap().take() {
            begin.send(()).unwrap();
        }
        wait.lock().unwrap().recv().map_err(Error::internal)
    };
    let busy = put_into(db, 1, work).await;
    begun.await.unwrap();
    (go, busy)
}

/// Puts work into the line of a workspace, behind what was put there before.
async fn put_into<T: Send + 'static>(
    db: &Db,
    workspace: i64,
    work: impl Fn(&mut Tx) -> Result<T> + Send + 'static,
) -> JoinHandle<Result<T>> {
    let (writes, for_work) = (db.stats().writes, db.clone());
    let waiting = tokio::spawn(async move { for_work.write_in_line(WorkspaceId(workspace), work).await });
    while db.stats().writes == writes {
        tokio::task::yield_now().await;
    }
    waiting
}

/// The number of the transaction on the server.
fn transaction(tx: &mut Tx) -> Result<i64> {
    Ok(diesel::select(diesel::dsl::sql::<BigInt>("txid_current()")).get_result(tx.connection())?)
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_wait_share_a_transaction() {
    let test = TestDb::new(Kind::Postgres);
    let (go, first) = keep_busy(&test.db).await;
    let mut waiting = Vec::new();
    for number in 0..5 {
        let work = move |tx: &mut Tx| {
            mark(tx, &format!("mark-{number}"))?;
            transaction(tx)
        };
        waiting.push(put_into(&test.db, 1, work).await);
    }
    // Another line does not wait for this one.
    let other = put_into(&test.db, 2, transaction).await.await.unwrap().unwrap();
    go.send(()).unwrap();
    first.await.unwrap().unwrap();
    let mut transactions = Vec::new();
    for waiting in waiting {
        transactions.push(waiting.await.unwrap().unwrap());
    }
    transactions.dedup();
    let [shared] = transactions[..] else { panic!("they have transactions of their own: {transactions:?}") };
    assert_ne!(shared, other);
    assert_eq!(marks(&test.db).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_lock_keeps_only_those_behind() {
    let test = TestDb::new(Kind::Postgres);
    let (release, hold) = mpsc::channel();
    let (locked, is_locked) = oneshot::channel();
    let (hold, locked) = (Mutex::new(hold), Mutex::new(Some(locked)));
    let db = test.db.clone();
    let holder = tokio::spawn(async move {
        let lock = move |tx: &mut Tx| {
            tx.lock("contested")?;
            if let Some(locked) = locked.lock().unwrap().take() {
                locked.send(()).unwrap();
            }
            hold.lock().unwrap().recv().map_err(Error::internal)
        };
        db.write(lock).await
    });
    is_locked.await.unwrap();

    let (go, first) = keep_busy(&test.db).await;
    let free = put_into(&test.db, 1, |tx: &mut Tx| mark(tx, "free")).await;
    let waits = |tx: &mut Tx| {
        mark(tx, "waits")?;
        tx.lock("contested")
    };
    let waits = put_into(&test.db, 1, waits).await;
    go.send(()).unwrap();
    first.await.unwrap().unwrap();
    // The two begin together. Together they would both wait.
    free.await.unwrap().unwrap();
    assert_eq!(marks(&test.db).await, ["free"]);
    release.send(()).unwrap();
    holder.await.unwrap().unwrap();
    waits.await.unwrap().unwrap();
    assert_eq!(marks(&test.db).await.len(), 2);
}
