//! Statements that come again are prepared once.

use diesel::connection::{Connection, InstrumentationEvent};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel::update;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use store::schema::jobs;
use store::{AnyConnection, Tx, each};
use testkit::{Kind, TestDb};

/// How often a connection was told to keep each statement, for each attempt of a transaction: one that the database refuses
/// runs again, and its connection may still have what the first attempt ran.
type Kept = Arc<Mutex<Vec<HashMap<String, usize>>>>;

fn watch(tx: &mut Tx, kept: &Kept) {
    kept.lock().unwrap().push(HashMap::new());
    let noted = kept.clone();
    tx.connection().set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::CacheQuery { sql, .. } = event
            && let Some(attempt) = noted.lock().unwrap().last_mut()
        {
            *attempt.entry(sql.to_owned()).or_default() += 1;
        }
    });
}

fn kept_of(kept: &Kept, part: &str) -> Vec<usize> {
    let kept = kept.lock().unwrap();
    kept.iter().flatten().filter(|(sql, _)| sql.contains(part)).map(|(_, times)| *times).collect()
}

fn is_kept_once(kept: &Kept, part: &str) -> bool {
    let times = kept_of(kept, part);
    !times.is_empty() && times.iter().all(|times| *times == 1)
}

/// A change whose text diesel does not know, run on a connection to one database.
fn of_one(connection: &mut AnyConnection, number: i64) -> QueryResult<usize> {
    match connection {
        AnyConnection::Sqlite(connection) => diesel::sql_query("UPDATE jobs SET attempts = ? WHERE id < 0")
            .into_boxed()
            .bind::<BigInt, _>(number)
            .execute(connection),
        AnyConnection::Postgres(connection) => {
            diesel::sql_query("UPDATE jobs SET attempts = $1 WHERE id < 0")
                .into_boxed()
                .bind::<BigInt, _>(number)
                .execute(connection)
        }
    }
}

#[testkit::both]
async fn what_comes_again_is_prepared_once(kind: Kind) {
    let test = TestDb::new(kind);
    let kept = Kept::default();
    let noted = kept.clone();
    let work = move |tx: &mut Tx| {
        watch(tx, &noted);
        for number in 0..5 {
            of_one(tx.connection(), number)?;
            let epoch = jobs::epoch.eq(jobs::epoch + number);
            update(jobs::table.find(-1)).set(epoch).execute(tx.connection())?;
            each!(tx.connection(), |connection| update(jobs::table.find(-2))
                .set(jobs::kind.eq("none"))
                .execute(connection))?;
        }
        Ok(())
    };
    test.db.write(work).await.unwrap();
    assert!(is_kept_once(&kept, "attempts"), "{kept:?}");
    assert!(is_kept_once(&kept, "epoch"), "{kept:?}");
    assert!(is_kept_once(&kept, "kind"), "{kept:?}");
}

#[testkit::both]
async fn what_never_comes_again_is_not_kept(kind: Kind) {
    let test = TestDb::new(kind);
    let kept = Kept::default();
    let noted = kept.clone();
    let work = move |tx: &mut Tx| {
        watch(tx, &noted);
        for number in 0..100 {
            let text = format!("UPDATE jobs SET epoch = {number} WHERE id < 0");
            diesel::sql_query(text).execute(tx.connection())?;
        }
        Ok(())
    };
    test.db.write(work).await.unwrap();
    assert_eq!(kept_of(&kept, ""), Vec::<usize>::new(), "{kept:?}");
}

/// SQLite prepares a statement anew whenever a value is bound by which it was planned, and it plans by the value of `LIMIT ?`
/// unless plans are to be stable.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_does_not_plan_by_values() {
    #[derive(QueryableByName)]
    struct Option {
        #[diesel(sql_type = BigInt)]
        is_used: i64,
    }
    let test = TestDb::new(testkit::Kind::Sqlite);
    let asked = test.db.read(|read| {
        let query = diesel::sql_query("SELECT sqlite_compileoption_used('ENABLE_QPSG') AS is_used");
        Ok(query.get_result::<Option>(read.connection())?.is_used)
    });
    assert_eq!(asked.await.unwrap(), 1);
}
