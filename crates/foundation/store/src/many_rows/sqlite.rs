//! Statements about sets of rows on SQLite: `VALUES` for a part of the rows.

use super::columns::Set;
use super::statement::{Statement, Text, walk};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::sqlite::Sqlite;
use std::ops::Range;

/// The sizes of parts: a few, so that few statements are prepared for each text.
const SIZES: [usize; 3] = [32, 8, 1];

/// The parts in which so many rows go to the database.
pub(crate) fn parts(rows: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let size = SIZES.into_iter().find(|size| next + size <= rows)?;
        next += size;
        Some(next - size..next)
    })
}

impl QueryFragment<Sqlite> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        let (set, rows) = (self.set, &self.rows);
        match self.text {
            Text::Template(text) => push_template(text, set, rows, &mut pass),
            Text::Insert { table, rest } => {
                // A statement of many rows that may be undone alone keeps a journal. `OR FAIL` leaves what was inserted to the
                // transaction, which is rolled back then.
                pass.push_sql(&format!("INSERT OR FAIL INTO {table} ({}) ", set.names()));
                push_values(set, rows, &mut pass)?;
                push_template(rest, set, rows, &mut pass)
            }
        }
    }
}

/// Writes `VALUES (?, ?), (?, ?)`.
fn push_values<'b>(
    set: &'b Set<'b>,
    rows: &Range<usize>,
    pass: &mut AstPass<'_, 'b, Sqlite>,
) -> QueryResult<()> {
    pass.push_sql("VALUES ");
    for row in rows.clone() {
        pass.push_sql(if row == rows.start { "(" } else { "), (" });
        for (place, column) in set.columns.iter().enumerate() {
            pass.push_sql(if place == 0 { "" } else { ", " });
            column.values.push_one(row, pass.reborrow())?;
        }
    }
    pass.push_sql(")");
    Ok(())
}

/// Writes `(SELECT column1 AS a, column2 AS b FROM (VALUES …)) AS name`: the names that SQLite gives columns of `VALUES`.
fn push_rows<'b>(
    name: &str,
    set: &'b Set<'b>,
    rows: &Range<usize>,
    pass: &mut AstPass<'_, 'b, Sqlite>,
) -> QueryResult<()> {
    let columns =
        set.columns.iter().zip(1..).map(|(column, place)| format!("column{place} AS {}", column.name));
    pass.push_sql(&format!("(SELECT {} FROM (", columns.collect::<Vec<_>>().join(", ")));
    push_values(set, rows, pass)?;
    pass.push_sql(&format!(")) AS {name}"));
    Ok(())
}

fn push_template<'b>(
    text: &'b str,
    set: &'b Set<'b>,
    rows: &Range<usize>,
    pass: &mut AstPass<'_, 'b, Sqlite>,
) -> QueryResult<()> {
    walk(text, pass, |name, pass| {
        if name.starts_with("for update") {
            return Ok(());
        }
        match set.given.iter().find(|(given, _)| *given == name) {
            Some((_, value)) => value.push_one(0, pass.reborrow()),
            None => push_rows(name, set, rows, pass),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn rows_go_in_parts_of_few_sizes() {
        assert_eq!(parts(0).count(), 0);
        let sizes = |rows| parts(rows).map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(43), [32, 8, 1, 1, 1]);
        let all: Vec<usize> = parts(100).flatten().collect();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}
