//! A statement about a part of a set, as text and bound values.

use super::columns::Set;
use diesel::backend::Backend;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryId};
use diesel::sql_types::Untyped;
use std::ops::Range;

/// The text of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Text<'s> {
    /// SQL with names in braces.
    Template(&'s str),
    /// `INSERT INTO table`, and what follows the rows.
    Insert { table: &'s str, rest: &'s str },
}

/// A statement about some rows of a set: all of them on PostgreSQL.
pub(crate) struct Statement<'s> {
    pub(crate) set: &'s Set<'s>,
    pub(crate) text: Text<'s>,
    pub(crate) rows: Range<usize>,
}

impl QueryId for Statement<'_> {
    type QueryId = ();

    // Known by its text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Statement<'_> {
    type SqlType = Untyped;
}

impl<C> RunQueryDsl<C> for Statement<'_> {}

/// Writes a template: `name` writes what stands for a name in braces.
pub(crate) fn walk<'b, DB: Backend>(
    template: &'b str,
    pass: &mut AstPass<'_, 'b, DB>,
    mut name: impl FnMut(&'b str, &mut AstPass<'_, 'b, DB>) -> QueryResult<()>,
) -> QueryResult<()> {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let unclosed = || diesel::result::Error::QueryBuilderError("a brace is not closed".into());
        let (inner, after) = after.split_once('}').ok_or_else(unclosed)?;
        pass.push_sql(before);
        name(inner, pass)?;
        rest = after;
    }
    pass.push_sql(rest);
    Ok(())
}
