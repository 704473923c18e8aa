//! Queries whose rows PostgreSQL locks until the transaction ends. The one writer of SQLite needs no locks.

use crate::connections::erased::{AnyConnection, MultiBackend};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use std::marker::PhantomData;

/// A strength of locks.
pub trait Strength {
    /// What follows the query.
    const SQL: &'static str;
}

macro_rules! strength {
    ($(#[$doc:meta])* $function:ident, $name:ident, $sql:literal) => {
        $(#[$doc])*
        pub fn $function<Q>(query: Q) -> Locked<Q, $name> {
            Locked { query, strength: PhantomData }
        }

        #[doc = concat!("`", $sql, "`")]
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl Strength for $name {
            const SQL: &'static str = concat!(" ", $sql);
        }
    };
}

strength! {
    /// Locks the rows that a query finds, so that nobody else changes them.
    for_update, ForUpdate, "FOR UPDATE"
}
strength! {
    /// Locks those of the rows that nobody else has locked, and finds no others.
    for_update_skip_locked, ForUpdateSkipLocked, "FOR UPDATE SKIP LOCKED"
}
strength! {
    /// Locks rows that foreign keys point at, for a change that leaves their keys.
    for_no_key_update, ForNoKeyUpdate, "FOR NO KEY UPDATE"
}
strength! {
    /// The same for those of the rows that nobody else has locked, and finds no others.
    for_no_key_update_skip_locked, ForNoKeyUpdateSkipLocked, "FOR NO KEY UPDATE SKIP LOCKED"
}
strength! {
    /// Locks the rows against changes. Others may lock them in the same way.
    for_share, ForShare, "FOR SHARE"
}
strength! {
    /// Locks the rows against deletion.
    for_key_share, ForKeyShare, "FOR KEY SHARE"
}

/// A query for either database, whose rows PostgreSQL locks.
#[derive(Debug, Clone, Copy)]
pub struct Locked<Q, S> {
    query: Q,
    strength: PhantomData<S>,
}

impl<Q, S> QueryFragment<MultiBackend> for Locked<Q, S>
where
    Q: QueryFragment<MultiBackend>,
    S: Strength,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()> {
        self.query.walk_ast(pass.reborrow())?;
        if matches!(pass.backend(), MultiBackend::Postgres(_)) {
            pass.push_sql(S::SQL);
        }
        Ok(())
    }
}

impl<Q: QueryId, S: 'static> QueryId for Locked<Q, S> {
    type QueryId = Locked<Q::QueryId, S>;

    const HAS_STATIC_QUERY_ID: bool = Q::HAS_STATIC_QUERY_ID;
}

impl<Q: Query, S> Query for Locked<Q, S> {
    type SqlType = Q::SqlType;
}

impl<Q, S> RunQueryDsl<AnyConnection> for Locked<Q, S> {}
