//! Statements that are prepared once and kept, where diesel would prepare them anew each time.
//!
//! diesel keeps no `UPDATE` and no `DO UPDATE`, because some have as many shapes as there are sets of columns to
//! change. Where a statement has one shape only, preparing it each time can cost more than running it.

use diesel::backend::Backend;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};

/// A statement of one shape, to be run with `get_result` or `get_results` (and so with `returning`).
#[derive(Debug, Clone, Copy)]
pub struct Cached<Q>(pub Q);

impl<Q, DB> QueryFragment<DB> for Cached<Q>
where
    DB: Backend,
    Q: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.0.walk_ast(pass)
    }

    fn is_safe_to_cache_prepared(&self, _: &DB) -> QueryResult<bool> {
        Ok(true)
    }
}

impl<Q> QueryId for Cached<Q> {
    type QueryId = ();

    // Known by its text: should a statement ever have two shapes, each is kept by itself.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: Query> Query for Cached<Q> {
    type SqlType = Q::SqlType;
}

impl<Q, C> RunQueryDsl<C> for Cached<Q> {}
