//! The diesel tables of all crates say what the migrations make, on both databases.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Text};
use std::collections::BTreeMap;
use std::path::Path;
use store::{AnyConnection, Read};
use testkit::{Kind, TestDb};

/// Columns in order, each as `name TYPE` or `name TYPE NULL`, and the primary key.
pub(crate) type Tables = BTreeMap<String, (Vec<String>, Vec<String>)>;

/// How the tables of full-text indexes begin, which are of another kind on each database.
const SEARCH: &str = "item_search";
/// The table in which diesel keeps what was applied.
const MIGRATIONS: &str = "__diesel_schema_migrations";

/// The sources below a folder.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

fn expected() -> Tables {
    let mut tables = Tables::new();
    let mut pages = Vec::new();
    sources(concat!(env!("CARGO_MANIFEST_DIR"), "/..").as_ref(), &mut pages);
    for block in pages.iter().flat_map(|page| page.split("diesel::table! {\n").skip(1)) {
        let mut lines = block.lines().map(str::trim).filter(|line| !line.is_empty());
        let (name, key) = lines.next().unwrap().strip_suffix(") {").unwrap().split_once(" (").unwrap();
        if name == MIGRATIONS || name.starts_with(SEARCH) {
            continue;
        }
        let mut columns = Vec::new();
        let mut renamed = None;
        for line in lines.take_while(|line| *line != "}") {
            if let Some(real) = line.strip_prefix("#[sql_name = \"") {
                renamed = real.strip_suffix("\"]");
                continue;
            }
            let (column, kind) = line.strip_suffix(',').unwrap().split_once(" -> ").unwrap();
            let column = renamed.take().unwrap_or(column);
            columns.push(match kind.strip_prefix("Nullable<") {
                Some(kind) => format!("{column} {} NULL", kind.strip_suffix('>').unwrap()),
                None => format!("{column} {kind}"),
            });
        }
        let table = (columns, key.split(", ").map(str::to_owned).collect());
        if let Some(other) = tables.insert(name.to_owned(), table.clone()) {
            assert_eq!(other, table, "{name} is declared twice");
        }
    }
    tables
}

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Bool)]
    required: bool,
    /// The place in the primary key, from 1; 0 outside.
    #[diesel(sql_type = BigInt)]
    key: i64,
}

/// The tables that a database has.
pub(crate) fn actual(read: &mut Read) -> model::Result<Tables> {
    let (names, columns) = match read.connection() {
        AnyConnection::Sqlite(_) => (
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
            "SELECT name, type AS kind, \"notnull\" AS required, pk AS \"key\" \
             FROM pragma_table_info('TABLE') ORDER BY cid",
        ),
        AnyConnection::Postgres(_) => (
            "SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = 'public'",
            "SELECT column_name::text AS name, data_type::text AS kind, is_nullable = 'NO' AS required, \
             coalesce(array_position(i.indkey::smallint[], ordinal_position::smallint) + 1, 0)::bigint AS key \
             FROM information_schema.columns \
             JOIN pg_index i ON i.indrelid = 'TABLE'::regclass AND i.indisprimary \
             WHERE table_schema = 'public' AND table_name = 'TABLE' ORDER BY ordinal_position",
        ),
    };
    let mut tables = Tables::new();
    for Name { name } in diesel::sql_query(names).load::<Name>(read.connection())? {
        if name == MIGRATIONS || name.starts_with(SEARCH) {
            continue;
        }
        let found: Vec<Column> =
            diesel::sql_query(columns.replace("TABLE", &name)).load(read.connection())?;
        let mut key: Vec<_> = found.iter().filter(|column| column.key > 0).collect();
        key.sort_by_key(|column| column.key);
        let key = key.iter().map(|column| column.name.clone()).collect();
        let columns = found.iter().map(|Column { name, kind, required, .. }| {
            format!("{name} {}{}", diesel_type(kind), if *required { "" } else { " NULL" })
        });
        tables.insert(name, (columns.collect(), key));
    }
    Ok(tables)
}

fn diesel_type(kind: &str) -> &'static str {
    match kind.to_uppercase().as_str() {
        "TEXT" => "Text",
        "BIGINT" | "INTEGER" => "BigInt",
        "BOOLEAN" => "Bool",
        "TIMESTAMP" | "TIMESTAMP WITHOUT TIME ZONE" => "Timestamp",
        "BLOB" | "BYTEA" => "Binary",
        "DOUBLE" | "DOUBLE PRECISION" => "Double",
        kind => panic!("{kind} is no portable type"),
    }
}

#[testkit::both]
async fn the_schema_is_what_the_migrations_make(kind: Kind) {
    let expected = expected();
    assert!(expected.len() >= 25 && expected["jobs"].0.len() == 13, "the schema is read as it is written");
    let actual = TestDb::new(kind).db.read(actual).await.unwrap();
    assert_eq!(actual.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (table, expected) in &expected {
        assert_eq!(&actual[table], expected, "{table}");
    }
}

#[tokio::test]
async fn whatever_names_a_contact_follows_it_when_it_is_merged() {
    let app = testkit::TestApp::new(testkit::Kind::Sqlite).await;
    let uses = app.service.pipeline.services.get::<ports::ContactUses>().unwrap();
    let mut followed: Vec<&str> = uses.tables().collect();
    followed.sort_unstable();
    // What happened does not change.
    let history = ["events"];
    let names_a_contact = |columns: &[String]| columns.iter().any(|column| column.starts_with("contact_id "));
    let tables = expected();
    let naming =
        tables.iter().filter(|(_, (columns, _))| names_a_contact(columns)).map(|(name, _)| name.as_str());
    let naming: Vec<&str> = naming.filter(|name| !history.contains(name)).collect();
    assert_eq!(naming, followed, "implement `ContactReferences` for tables with a column `contact_id`");
}
