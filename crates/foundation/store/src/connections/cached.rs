//! Statements that are prepared once and kept, where diesel would prepare them anew each time.
//!
//! diesel keeps no `UPDATE` and no `DO UPDATE`, because some have as many shapes as there are sets of columns to
//! change. Where a statement has one shape only, preparing it each time can cost more than running it.

use diesel::backend::Backend;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::query_dsl::methods::LoadQuery;
use diesel::sql_types::Bool;

/// A statement of one shape, to be run with `get_result` or `get_results` (and so with `returning`): `execute` looks
/// through it.
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

/// A change of one shape that gives nothing back, to be [`run`](Self::run): with `returning` SQLite would keep a journal
/// for the one statement.
#[derive(Debug, Clone, Copy)]
pub struct CachedChange<Q>(pub Q);

impl<Q> CachedChange<Q> {
    /// Makes the change. Diesel keeps what is loaded and not what is executed, so it passes for a query without rows.
    ///
    /// # Errors
    /// The database's.
    pub fn run<'query, C>(self, connection: &mut C) -> QueryResult<()>
    where
        Self: LoadQuery<'query, C, bool>,
    {
        self.load(connection).map(|rows: Vec<bool>| drop(rows))
    }
}

impl<Q, DB> QueryFragment<DB> for CachedChange<Q>
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

impl<Q> QueryId for CachedChange<Q> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q> Query for CachedChange<Q> {
    type SqlType = Bool;
}

impl<Q, C> RunQueryDsl<C> for CachedChange<Q> {}
