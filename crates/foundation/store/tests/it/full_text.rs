//! Full-text tables of SQLite: whatever is done in whatever transactions, they have what was committed, and who searches in a
//! transaction finds what it has changed.

use crate::transactions::{End, in_one_group};
use crate::{broken, mark};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use model::{Error, Result};
use proptest::prelude::*;
use std::collections::BTreeMap;
use store::{AnyConnection, Read, Tx};
use testkit::{Kind, TestDb};

const TABLE: &str = "item_search";
const WORDS: [&str; 3] = ["wood", "train", "station"];

/// The word of each row.
type Rows = BTreeMap<i64, &'static str>;

#[derive(Debug, Clone)]
enum Step {
    Set(i64, &'static str),
    Delete(i64),
    Search,
    /// Steps in a savepoint, and whether they succeed.
    Savepoint(Vec<Step>, bool),
}

/// A step, and what is known of the table when it is done.
#[derive(Debug, Clone)]
enum Planned {
    Set(i64, &'static str, bool),
    Delete(i64),
    Search(Rows),
    Savepoint(Vec<Planned>, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..9_i64, prop::sample::select(WORDS.to_vec())).prop_map(|(id, word)| Step::Set(id, word)),
        2 => (1..9_i64).prop_map(Step::Delete),
        1 => Just(Step::Search),
    ];
    let step = step.prop_recursive(2, 8, 4, |step| {
        (prop::collection::vec(step, 0..4), any::<bool>())
            .prop_map(|(steps, holds)| Step::Savepoint(steps, holds))
    });
    prop::collection::vec(step, 0..6)
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![4 => Just(End::Well), 1 => Just(End::BadlyAtOnce), 1 => Just(End::BadlyAfterAll)]
}

fn plan(steps: &[Step], rows: &mut Rows) -> Vec<Planned> {
    let one = |step: &Step, rows: &mut Rows| match step {
        Step::Set(id, word) => Planned::Set(*id, word, rows.insert(*id, word).is_none()),
        Step::Delete(id) => {
            rows.remove(id);
            Planned::Delete(*id)
        }
        Step::Search => Planned::Search(rows.clone()),
        Step::Savepoint(steps, holds) => {
            let mut inner = rows.clone();
            let planned = plan(steps, &mut inner);
            if *holds {
                *rows = inner;
            }
            Planned::Savepoint(planned, *holds)
        }
    };
    steps.iter().map(|step| one(step, rows)).collect()
}

fn run(tx: &mut Tx, steps: &[Planned]) -> Result<()> {
    for step in steps {
        match step {
            Planned::Set(id, word, is_new) => tx.set_full_text(TABLE, *id, Some((*word).to_owned()), *is_new),
            Planned::Delete(id) => tx.set_full_text(TABLE, *id, None, false),
            Planned::Search(expected) => {
                tx.write_full_text()?;
                let found = found(tx)?;
                if found != *expected {
                    return Err(Error::internal(format!("{found:?} are found, not {expected:?}")));
                }
            }
            Planned::Savepoint(steps, holds) => {
                let result = tx.savepoint(|tx| {
                    run(tx, steps)?;
                    if *holds { Ok(()) } else { Err(Error::not_found("reason to go on")) }
                });
                if result.as_ref().is_err_and(|error| *holds || error.code() != model::Code::NotFound) {
                    return result;
                }
            }
        }
    }
    Ok(())
}

/// What a search for each word finds.
fn found(read: &mut Read) -> Result<Rows> {
    #[derive(QueryableByName)]
    struct Hit {
        #[diesel(sql_type = BigInt)]
        id: i64,
    }
    let mut rows = Rows::new();
    for word in WORDS {
        let query = diesel::sql_query("SELECT rowid AS id FROM item_search WHERE item_search MATCH ?");
        let AnyConnection::Sqlite(connection) = read.connection() else { panic!("SQLite only") };
        let hits: Vec<Hit> = query.bind::<Text, _>(word).load(connection)?;
        for hit in hits {
            assert_eq!(rows.insert(hit.id, word), None, "a row has the words of one change only");
        }
    }
    Ok(rows)
}

async fn check(groups: Vec<Vec<(Vec<Step>, End)>>) {
    let test = TestDb::new(Kind::Sqlite);
    let mut rows = Rows::new();
    for group in groups {
        let mut works = Vec::new();
        let mut ends = Vec::new();
        for (steps, end) in group {
            let mut after = rows.clone();
            let planned = plan(&steps, &mut after);
            if end == End::Well {
                rows = after;
            }
            ends.push(end);
            works.push(move |tx: &mut Tx| {
                if end != End::BadlyAtOnce {
                    mark(tx, "mark")?;
                }
                run(tx, &planned)?;
                if end == End::Well { Ok(()) } else { Err(broken()) }
            });
        }
        let results = in_one_group(&test.db, works).await;
        for (result, end) in results.iter().zip(ends) {
            assert_eq!(result.is_ok(), end == End::Well, "{result:?}");
        }
        assert_eq!(test.db.read(found).await.unwrap(), rows);
    }
    assert_eq!(test.reopen().read(found).await.unwrap(), rows);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn searches_find_what_was_committed(
        groups in prop::collection::vec(prop::collection::vec((steps(), end()), 1..6), 1..4)
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(check(groups));
    }
}
