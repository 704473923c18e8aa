//! Statements about sets of rows.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Double, Nullable, Text, Timestamp as SqlTimestamp};
use model::{JsonText, Result, Timestamp};
use store::{OnConflict, Rows, Tx, each, insert_all};
use testkit::{Kind, TestDb};

/// A row with a column of each type.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
struct Probe {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = Nullable<Text>)]
    name: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    data: Option<JsonText>,
    #[diesel(sql_type = Nullable<Binary>)]
    raw: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Bool>)]
    flag: Option<bool>,
    #[diesel(sql_type = Nullable<Double>)]
    share: Option<f64>,
    #[diesel(sql_type = Nullable<SqlTimestamp>)]
    at: Option<Timestamp>,
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

impl Probe {
    fn new(id: i64) -> Self {
        Self { id, name: None, data: None, raw: None, flag: None, share: None, at: None }
    }

    fn named(id: i64, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::new(id) }
    }

    fn full(id: i64) -> Self {
        let text = "{'\"\\, é 🦀}";
        Self {
            data: Some(JsonText::of(&serde_json::json!({ "a": [1, null, text], "b": id }))),
            raw: Some(vec![0, 255, b'{', b'\'', 1]),
            flag: Some(id % 2 == 0),
            share: Some(0.1),
            at: Some(Timestamp::from_millis(1_764_000_000_123)),
            ..Self::named(id, text)
        }
    }

    fn rows(all: &[Self]) -> Rows<'_, Self> {
        Rows::of(all)
            .big_int("id", |one| one.id)
            .text("name", |one| one.name.as_deref())
            .text("data", |one| one.data.as_ref())
            .binary("raw", |one| one.raw.as_deref())
            .bool("flag", |one| one.flag)
            .double("share", |one| one.share)
            .time("at", |one| one.at)
    }
}

/// Runs `work` in a transaction with the empty tables `probes` and `notes`.
async fn with_tables(kind: Kind, work: impl Fn(&mut Tx) -> Result<()> + Send + Sync + 'static) {
    let test = TestDb::new(kind);
    let bytes = if kind == Kind::Postgres { "BYTEA" } else { "BLOB" };
    let tables = format!(
        "CREATE TABLE probes (id BIGINT PRIMARY KEY, name TEXT UNIQUE, data TEXT, raw {bytes}, flag BOOLEAN,
            share DOUBLE PRECISION, at TIMESTAMP);
        CREATE TABLE notes (id BIGINT PRIMARY KEY REFERENCES probes (id), name TEXT)"
    );
    test.db
        .write(move |tx| {
            each!(tx.connection(), |connection| connection.batch_execute(&tables))?;
            work(tx)
        })
        .await
        .unwrap();
}

fn stored(tx: &mut Tx) -> Vec<Probe> {
    diesel::sql_query("SELECT * FROM probes ORDER BY id").load(tx.connection()).unwrap()
}

#[testkit::both]
async fn rows_are_stored_as_they_are(kind: Kind) {
    with_tables(kind, |tx| {
        let far = [i64::MIN, -1, 0, 1 << 53, i64::MAX];
        let mut all: Vec<Probe> = far.iter().map(|id| Probe::new(*id)).collect();
        all.insert(3, Probe { name: Some("only a name".into()), ..Probe::new(1) });
        all.insert(4, Probe::full(2));
        Probe::rows(&all).insert(tx, "probes")?;
        assert_eq!(stored(tx), all);
        Ok(())
    })
    .await;
}

#[testkit::both]
async fn a_set_may_be_empty_or_large(kind: Kind) {
    with_tables(kind, |tx| {
        let none = Probe::rows(&[]);
        none.insert(tx, "probes")?;
        assert_eq!(none.insert_or(tx, "probes", OnConflict::Ignore)?, 0);
        assert_eq!(
            none.execute(tx, "UPDATE probes SET name = one.name FROM {one} WHERE probes.id = one.id")?,
            0
        );
        assert_eq!(insert_all(tx, &[none.insertion("probes", OnConflict::Fail)])?, [0]);
        assert!(none.load::<Id>(tx, "SELECT id FROM {one}")?.is_empty());
        let all: Vec<Probe> =
            (0..10_000).map(|id| Probe { name: Some(format!("n{id}")), ..Probe::full(id) }).collect();
        Probe::rows(&all).insert(tx, "probes")?;
        assert_eq!(stored(tx), all);
        let changed = Rows::of(&all)
            .big_int("id", |one| one.id)
            .execute(tx, "UPDATE probes SET flag = NULL FROM {gone} WHERE probes.id = gone.id")?;
        assert_eq!(changed, 10_000);
        Ok(())
    })
    .await;
}

#[testkit::both]
async fn an_update_finds_its_rows(kind: Kind) {
    with_tables(kind, |tx| {
        let before: Vec<Probe> = (0..50).map(Probe::new).collect();
        Probe::rows(&before).insert(tx, "probes")?;
        let changes: Vec<(i64, Option<String>)> =
            (10..60).map(|id| (id, (id % 2 == 0).then(|| format!("new {id}")))).collect();
        let changed = Rows::of(&changes)
            .big_int("id", |(id, _)| *id)
            .text("name", |(_, name)| name.as_deref())
            .given_bool("flag", true)
            .given_time("now", Timestamp::from_millis(5))
            .execute(
                tx,
                "UPDATE probes SET name = change.name, flag = {flag}, at = {now} FROM {change} WHERE probes.id = change.id",
            )?;
        assert_eq!(changed, 40);
        let expected = |one: Probe| match one.id {
            ..10 => one,
            id => Probe {
                name: (id % 2 == 0).then(|| format!("new {id}")),
                flag: Some(true),
                at: Some(Timestamp::from_millis(5)),
                ..one
            },
        };
        assert_eq!(stored(tx), before.into_iter().map(expected).collect::<Vec<_>>());
        Ok(())
    })
    .await;
}

#[testkit::both]
async fn a_query_finds_what_belongs_to_the_rows(kind: Kind) {
    with_tables(kind, |tx| {
        let all: Vec<Probe> = (0..100).map(|id| Probe::named(id, &format!("n{id}"))).collect();
        Probe::rows(&all).insert(tx, "probes")?;
        let wanted: Vec<String> = ["n7", "none", "n99"].map(str::to_owned).into();
        let found: Vec<Id> = Rows::of(&wanted).text("name", |name| name).given_big_int("least", 8).load(
            tx,
            "SELECT probes.id FROM {wanted} CROSS JOIN probes WHERE probes.name = wanted.name AND probes.id >= {least} \
             {for update}",
        )?;
        assert_eq!(found.iter().map(|found| found.id).collect::<Vec<_>>(), [99]);
        Ok(())
    })
    .await;
}

#[testkit::both]
async fn rows_that_are_there_fail_or_stay_or_change(kind: Kind) {
    with_tables(kind, |tx| {
        Probe::rows(&[Probe::named(1, "one"), Probe::named(2, "two")]).insert(tx, "probes")?;
        let again = [Probe::named(2, "zwei"), Probe::named(3, "drei")];
        let failed = tx.savepoint(|tx| Probe::rows(&again).insert(tx, "probes"));
        assert!(failed.is_err());
        assert_eq!(stored(tx).len(), 2, "nothing stays of what failed");
        let ids = |found: Vec<Id>| found.iter().map(|found| found.id).collect::<Vec<_>>();
        let new = Probe::rows(&again).insert_returning::<Id>(tx, "probes", OnConflict::Ignore, "id")?;
        assert_eq!(ids(new), [3]);
        let change = OnConflict::Update { key: &["id"], set: "name = excluded.name || ' ' || old.name" };
        let all = [Probe::named(3, "three"), Probe::named(4, "four")];
        let changed = Probe::rows(&all).insert_returning::<Id>(tx, "probes AS old", change, "id")?;
        assert_eq!(ids(changed), [3, 4]);
        let names: Vec<_> = stored(tx).into_iter().filter_map(|one| one.name).collect();
        assert_eq!(names, ["one", "two", "three drei", "four"]);
        Ok(())
    })
    .await;
}

#[testkit::both]
async fn a_key_comes_once_in_an_upsert(kind: Kind) {
    with_tables(kind, |tx| {
        let twice = [Probe::named(1, "a"), Probe::named(2, "b"), Probe::named(1, "c")];
        let change = OnConflict::Update { key: &["id"], set: "name = excluded.name" };
        let error = Probe::rows(&twice).insert_or(tx, "probes", change).unwrap_err();
        assert_eq!(error.code(), model::Code::InternalError);
        assert!(stored(tx).is_empty());
        let kept = Probe::rows(&twice).insert_or(tx, "probes", OnConflict::Ignore)?;
        assert_eq!(kept, 2, "the first row of a key is kept");
        Ok(())
    })
    .await;
}

#[testkit::both]
async fn several_tables_are_written_at_once(kind: Kind) {
    with_tables(kind, |tx| {
        Probe::rows(&[Probe::new(1)]).insert(tx, "probes")?;
        let all: Vec<Probe> = (0..40).map(Probe::new).collect();
        let notes = Rows::of(&all).big_int("id", |one| one.id).text("name", |_| "a note");
        let rows = Probe::rows(&all);
        let inserted = insert_all(
            tx,
            &[rows.insertion("probes", OnConflict::Ignore), notes.insertion("notes", OnConflict::Fail)],
        )?;
        assert_eq!(inserted, [39, 40]);
        Ok(())
    })
    .await;
}
