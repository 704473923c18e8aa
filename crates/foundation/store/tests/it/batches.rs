//! Changes and reads that many requests make at once.

use crate::{mark, marks};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Code, Error, Result};
use std::sync::{Arc, Mutex, mpsc};
use store::{Batched, Batches, Db, Tx};
use testkit::{Kind, TestDb};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What a test does with a change.
enum How {
    /// It is made, together with others or alone.
    Ordinary,
    /// It is made alone.
    Apart,
    /// It cannot be made.
    Refused,
    /// It panics together with others.
    Panics,
    /// It needs a lock.
    Locks,
    /// It says when it is at it, and waits until it may go on.
    Waits(Mutex<Option<oneshot::Sender<()>>>, Mutex<mpsc::Receiver<()>>),
}

/// A change that leaves a mark and gives the number of its transaction.
struct Change {
    mark: &'static str,
    how: How,
}

impl Batched for Change {
    type Maker = ();
    type Output = i64;

    fn alone(&self, (): &(), tx: &mut Tx) -> Result<i64> {
        mark(tx, self.mark)?;
        match &self.how {
            How::Ordinary | How::Apart | How::Panics => {}
            How::Refused => return Err(Error::new(Code::InvalidState, "No.")),
            How::Locks => tx.lock("contested")?,
            How::Waits(begun, go) => {
                if let Some(begun) = begun.lock().unwrap().take() {
                    begun.send(()).unwrap();
                }
                go.lock().unwrap().recv().map_err(Error::internal)?;
            }
        }
        Ok(diesel::select(diesel::dsl::sql::<BigInt>("txid_current()")).get_result(tx.connection())?)
    }

    fn together((): &(), changes: &[&Self], tx: &mut Tx) -> Result<Vec<Option<i64>>> {
        let make = |change: &&Self| match change.how {
            How::Apart => Ok(None),
            How::Panics => panic!("a change that panics together with others"),
            _ => change.alone(&(), tx).map(Some),
        };
        changes.iter().map(make).collect()
    }
}

/// A queue of changes, of which the first is on its way until the test says so.
struct Queue {
    db: Db,
    batches: Arc<Batches<Change>>,
    go: mpsc::Sender<()>,
    first: JoinHandle<Result<i64>>,
}

impl Queue {
    async fn busy(db: &Db) -> Self {
        let (go, wait) = mpsc::channel();
        let (begin, begun) = oneshot::channel();
        let how = How::Waits(Mutex::new(Some(begin)), Mutex::new(wait));
        let batches = Arc::default();
        let first = put(db, &batches, "first", how).await;
        begun.await.unwrap();
        Self { db: db.clone(), batches, go, first }
    }

    /// Puts a change behind those that were put there before.
    async fn put(&self, mark: &'static str, how: How) -> JoinHandle<Result<i64>> {
        put(&self.db, &self.batches, mark, how).await
    }

    /// Lets the first change through, and so those behind it.
    async fn go_on(self) {
        self.go.send(()).unwrap();
        self.first.await.unwrap().unwrap();
    }
}

async fn put(
    db: &Db,
    batches: &Arc<Batches<Change>>,
    mark: &'static str,
    how: How,
) -> JoinHandle<Result<i64>> {
    let (writes, own, batches) = (db.stats().writes, db.clone(), batches.clone());
    let waiting = tokio::spawn(async move { own.write_batched(&batches, (), Change { mark, how }).await });
    while db.stats().writes == writes {
        tokio::task::yield_now().await;
    }
    waiting
}

async fn made(waiting: JoinHandle<Result<i64>>) -> i64 {
    waiting.await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_wait_share_a_transaction() {
    let test = TestDb::new(Kind::Postgres);
    let queue = Queue::busy(&test.db).await;
    let (one, two) = (queue.put("one", How::Ordinary).await, queue.put("two", How::Ordinary).await);
    let apart = queue.put("apart", How::Apart).await;
    queue.go_on().await;
    let (one, two, apart) = (made(one).await, made(two).await, made(apart).await);
    assert_eq!(one, two);
    assert_ne!(one, apart);
    assert_eq!(marks(&test.db).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_or_panics_fails_alone() {
    let test = TestDb::new(Kind::Postgres);
    let queue = Queue::busy(&test.db).await;
    let (one, two) = (queue.put("one", How::Ordinary).await, queue.put("two", How::Ordinary).await);
    let refused = queue.put("refused", How::Refused).await;
    queue.go_on().await;
    assert_ne!(made(one).await, made(two).await);
    assert_eq!(refused.await.unwrap().unwrap_err().code(), Code::InvalidState);
    let only = put(&test.db, &Arc::default(), "only", How::Refused).await;
    assert_eq!(only.await.unwrap().unwrap_err().code(), Code::InvalidState);

    let queue = Queue::busy(&test.db).await;
    let (three, panics) = (queue.put("three", How::Ordinary).await, queue.put("panics", How::Panics).await);
    queue.go_on().await;
    assert_ne!(made(three).await, made(panics).await);
    let mut left = marks(&test.db).await;
    left.sort();
    assert_eq!(left, ["first", "first", "one", "panics", "three", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_for_a_lock_keeps_nobody_behind() {
    let test = TestDb::new(Kind::Postgres);
    let (begin, begun) = oneshot::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (begin, wait) = (Mutex::new(Some(begin)), Mutex::new(wait));
    let db = test.db.clone();
    let hold = move |tx: &mut Tx| {
        tx.lock("contested")?;
        if let Some(begin) = begin.lock().unwrap().take() {
            begin.send(()).unwrap();
        }
        wait.lock().unwrap().recv().map_err(Error::internal)
    };
    let holder = tokio::spawn(async move { db.write(hold).await });
    begun.await.unwrap();

    let queue = Queue::busy(&test.db).await;
    let (free, locks) = (queue.put("free", How::Ordinary).await, queue.put("locks", How::Locks).await);
    let batches = queue.batches.clone();
    queue.go_on().await;
    made(free).await;
    let only = put(&test.db, &batches, "only", How::Locks).await;
    let behind = put(&test.db, &batches, "behind", How::Ordinary).await;
    made(behind).await;
    let mut left = marks(&test.db).await;
    left.sort();
    assert_eq!(left, ["behind", "first", "free"]);
    go.send(()).unwrap();
    holder.await.unwrap().unwrap();
    made(locks).await;
    made(only).await;
    assert_eq!(marks(&test.db).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_makes_each_alone() {
    let test = TestDb::new(Kind::Sqlite);
    struct Plain;
    impl Batched for Plain {
        type Maker = &'static str;
        type Output = ();
        fn alone(&self, name: &&'static str, tx: &mut Tx) -> Result<()> {
            mark(tx, name)
        }
        fn together(_: &&'static str, _: &[&Self], _: &mut Tx) -> Result<Vec<Option<()>>> {
            Err(Error::internal("SQLite has a writer that takes them together"))
        }
    }
    let batches = Arc::default();
    test.db.write_batched(&batches, "alone", Plain).await.unwrap();
    assert_eq!(marks(&test.db).await, ["alone"]);
}
