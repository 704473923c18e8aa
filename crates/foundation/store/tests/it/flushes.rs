//! What PostgreSQL has on disk when a write is answered.

use crate::{mark, marks};
use diesel::connection::Connection as _;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{AnyConnection, Backend, Db, Options, PgConnection, Read};
use testkit::{Kind, TestDb};

/// The database, opened so that flushes wait for the disk: the test server does not by itself.
fn durable(test: &TestDb) -> Db {
    let Backend::Postgres(url) = test.db.backend() else { panic!("it is on PostgreSQL") };
    let backend = Backend::Postgres(format!("{url}?options=-c%20synchronous_commit%3Don"));
    let (clock, random) = (test.db.clock(), test.db.random());
    Db::open(Options { backend, connections: 2, clock, random }).unwrap()
}

fn postgres(read: &mut Read) -> &mut PgConnection {
    match read.connection() {
        AnyConnection::Postgres(connection) => connection,
        AnyConnection::Sqlite(_) => panic!("it is on PostgreSQL"),
    }
}

#[derive(QueryableByName)]
struct Position {
    #[diesel(sql_type = Text)]
    at: String,
}

#[derive(QueryableByName)]
struct Holds {
    #[diesel(sql_type = Bool)]
    holds: bool,
}

/// Whether something is so, asked on a connection whose answers wait for nothing.
fn holds(test: &TestDb, condition: &str) -> bool {
    let Backend::Postgres(url) = test.db.backend() else { panic!("it is on PostgreSQL") };
    let mut connection = PgConnection::establish(url).unwrap();
    let query = diesel::sql_query(format!("SELECT {condition} AS holds"));
    query.get_result::<Holds>(&mut connection).unwrap().holds
}

#[tokio::test]
async fn what_is_answered_is_on_disk() {
    let test = TestDb::new(Kind::Postgres);
    let db = durable(&test);
    for number in 0..20 {
        let position = db.write(move |tx| {
            mark(tx, &format!("mark-{number}"))?;
            let query = diesel::sql_query("SELECT pg_current_wal_insert_lsn()::text AS at");
            Ok(query.get_result::<Position>(postgres(tx))?.at)
        });
        let position = position.await.unwrap();
        assert!(holds(&test, &format!("pg_current_wal_flush_lsn() >= '{position}'")), "write {number}");
    }
}

#[tokio::test]
async fn a_commit_that_cannot_be_confirmed_is_an_error() {
    let test = TestDb::new(Kind::Postgres);
    let db = durable(&test);
    db.write(|tx| mark(tx, "before")).await.unwrap();
    let flusher = "datname = current_database() AND query LIKE 'SELECT pg_logical_emit_message%'";
    // With the time for which it waits until the connection has ended.
    let ended =
        format!("(SELECT bool_and(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE {flusher})");
    assert!(holds(&test, &ended));
    let hooked = Arc::new(AtomicBool::new(false));
    let hook = hooked.clone();
    let lost = db.write(move |tx| {
        let hook = hook.clone();
        tx.after_commit(move || hook.store(true, Ordering::SeqCst));
        mark(tx, "unconfirmed")
    });
    assert!(lost.await.is_err());
    assert!(!hooked.load(Ordering::SeqCst), "a hook of a commit that may be undone");
    db.write(|tx| mark(tx, "after")).await.unwrap();
    assert_eq!(marks(&db).await, ["before", "unconfirmed", "after"]);
}
