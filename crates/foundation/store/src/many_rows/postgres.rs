//! Statements about sets of rows on PostgreSQL: one array for each column.

use super::columns::Set;
use super::insertion::Insertion;
use super::statement::{Statement, Text, walk};
use crate::PgConnection;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Untyped};
use model::{Error, Result};

impl QueryFragment<Pg> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        match self.text {
            Text::Template(text) => push_template(text, self.set, &mut pass),
            Text::Insert { table, rest } => push_insert(table, rest, self.set, &mut pass),
        }
    }
}

/// Writes `unnest($1, $2) AS name (a, b)`.
fn push_rows<'b>(name: &str, set: &'b Set<'b>, pass: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
    pass.push_sql("unnest(");
    for (place, column) in set.columns.iter().enumerate() {
        pass.push_sql(if place == 0 { "" } else { ", " });
        column.values.push_array(pass.reborrow())?;
    }
    pass.push_sql(&format!(") AS {name} ({})", set.names()));
    Ok(())
}

fn push_template<'b>(text: &'b str, set: &'b Set<'b>, pass: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
    walk(text, pass, |name, pass| {
        if name.starts_with("for update") {
            pass.push_sql(name);
            return Ok(());
        }
        match set.given.iter().find(|(given, _)| *given == name) {
            Some((_, value)) => value.push_first(pass.reborrow()),
            None => push_rows(name, set, pass),
        }
    })
}

fn push_insert<'b>(
    table: &str,
    rest: &'b str,
    set: &'b Set<'b>,
    pass: &mut AstPass<'_, 'b, Pg>,
) -> QueryResult<()> {
    let cast = set.columns.iter().map(|column| match column.cast {
        Some(to) => format!("{}::{to}", column.name),
        None => column.name.to_owned(),
    });
    let cast = cast.collect::<Vec<_>>().join(", ");
    pass.push_sql(&format!("INSERT INTO {table} ({}) SELECT {cast} FROM ", set.names()));
    push_rows("new", set, pass)?;
    push_template(rest, set, pass)
}

/// Several insertions as one statement, which returns how many rows each inserted.
struct Insertions<'s>(Vec<(&'s Insertion<'s>, String)>);

impl QueryFragment<Pg> for Insertions<'_> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for (place, (insertion, rest)) in self.0.iter().enumerate() {
            let opening = if place == 0 { "WITH" } else { ")," };
            pass.push_sql(&format!("{opening} inserted_{place} AS ("));
            push_insert(insertion.table(), rest, insertion.set(), &mut pass)?;
            pass.push_sql(" RETURNING 1");
        }
        for place in 0..self.0.len() {
            let opening = if place == 0 { ")" } else { " UNION ALL" };
            pass.push_sql(&format!(
                "{opening} SELECT {place}::bigint AS place, (SELECT count(*) FROM inserted_{place}) AS rows"
            ));
        }
        pass.push_sql(" ORDER BY place");
        Ok(())
    }
}

impl QueryId for Insertions<'_> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Insertions<'_> {
    type SqlType = Untyped;
}

impl<C> RunQueryDsl<C> for Insertions<'_> {}

#[derive(QueryableByName)]
struct Inserted {
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

/// Runs several insertions as one statement. Returns how many rows each inserted.
pub(crate) fn insert_all(connection: &mut PgConnection, all: &[Insertion<'_>]) -> Result<Vec<usize>> {
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let insertions = Insertions(all.iter().map(|insertion| (insertion, insertion.rest())).collect());
    let inserted: Vec<Inserted> = insertions.load(connection)?;
    let number = |inserted: Inserted| usize::try_from(inserted.rows).map_err(Error::internal);
    inserted.into_iter().map(number).collect()
}
