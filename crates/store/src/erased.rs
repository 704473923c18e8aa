//! Connections that look at a statement through a pointer: what diesel does to prepare, bind and run one is compiled
//! once for each database and not once for each statement.
//!
//! Diesel's own connections are generic over the statement, down to the calls of the C library. With hundreds of
//! statements on two databases that was a third of what the compiler made of a crate that is full of them.

use diesel::backend::Backend;
use diesel::connection::{
    AnsiTransactionManager, CacheSize, Connection, DefaultLoadingMode, Instrumentation, LoadConnection,
    SimpleConnection,
};
use diesel::expression::QueryMetadata;
use diesel::internal::derives::multiconnection::{ConnectionSealed, MultiConnectionHelper};
use diesel::migration::MigrationConnection;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::r2d2::R2D2Connection;
use diesel::sql_types::{TypeMetadata, Untyped};
use diesel::sqlite::Sqlite;
use diesel::{ConnectionResult, QueryResult};
use std::any::{Any, TypeId};
use std::cell::Cell;

thread_local! {
    /// By what diesel's cache of prepared statements knows the one that this thread is about to run.
    static QUERY_ID: Cell<Option<TypeId>> = const { Cell::new(None) };
}

/// A statement whose type is forgotten. Diesel asks a type for its id, so the id is put beside it in [`QUERY_ID`].
struct Erased<P>(P);

impl<P, DB> QueryFragment<DB> for Erased<P>
where
    DB: Backend,
    P: std::ops::Deref,
    P::Target: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.0.deref().walk_ast(pass)
    }

    fn is_safe_to_cache_prepared(&self, backend: &DB) -> QueryResult<bool> {
        self.0.deref().is_safe_to_cache_prepared(backend)
    }
}

impl<P> QueryId for Erased<P> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;

    fn query_id() -> Option<TypeId> {
        QUERY_ID.get()
    }
}

impl<P> Query for Erased<P> {
    /// Nothing is asked of it: who loads knows the types of the columns.
    type SqlType = Untyped;
}

/// What a statement is to a connection: to be executed it is lent, to be loaded given away.
type Lent<'a, DB> = Erased<&'a (dyn QueryFragment<DB> + 'a)>;
type Given<'a, DB> = Erased<Box<dyn QueryFragment<DB> + 'a>>;

macro_rules! connection {
    ($(#[$doc:meta])* $name:ident over $inner:ty, $backend:ty, $run:ident, $load:ident) => {
        $(#[$doc])*
        pub struct $name($inner);

        #[inline(never)]
        fn $run(connection: &mut $inner, statement: &Lent<'_, $backend>) -> QueryResult<usize> {
            connection.execute_returning_count(statement)
        }

        #[inline(never)]
        fn $load<'conn, 'query>(
            connection: &'conn mut $inner,
            statement: Given<'query, $backend>,
        ) -> QueryResult<<$inner as LoadConnection>::Cursor<'conn, 'query>> {
            LoadConnection::<DefaultLoadingMode>::load(connection, statement)
        }

        impl ConnectionSealed for $name {}

        impl SimpleConnection for $name {
            fn batch_execute(&mut self, query: &str) -> QueryResult<()> {
                self.0.batch_execute(query)
            }
        }

        impl Connection for $name {
            type Backend = $backend;
            type TransactionManager = AnsiTransactionManager;

            fn establish(url: &str) -> ConnectionResult<Self> {
                <$inner>::establish(url).map(Self)
            }

            fn execute_returning_count<T>(&mut self, source: &T) -> QueryResult<usize>
            where
                T: QueryFragment<$backend> + QueryId,
            {
                QUERY_ID.set(T::query_id());
                $run(&mut self.0, &Erased(source))
            }

            fn transaction_state(&mut self) -> &mut AnsiTransactionManager {
                self.0.transaction_state()
            }

            fn instrumentation(&mut self) -> &mut dyn Instrumentation {
                self.0.instrumentation()
            }

            fn set_instrumentation(&mut self, instrumentation: impl Instrumentation) {
                self.0.set_instrumentation(instrumentation);
            }

            fn set_prepared_statement_cache_size(&mut self, size: CacheSize) {
                self.0.set_prepared_statement_cache_size(size);
            }
        }

        impl LoadConnection for $name {
            type Cursor<'conn, 'query> = <$inner as LoadConnection>::Cursor<'conn, 'query>;
            type Row<'conn, 'query> = <$inner as LoadConnection>::Row<'conn, 'query>;

            fn load<'conn, 'query, T>(&'conn mut self, source: T) -> QueryResult<Self::Cursor<'conn, 'query>>
            where
                T: Query + QueryFragment<$backend> + QueryId + 'query,
                $backend: QueryMetadata<T::SqlType>,
            {
                QUERY_ID.set(T::query_id());
                $load(&mut self.0, Erased(Box::new(source)))
            }
        }

        impl MultiConnectionHelper for $name {
            fn to_any<'a>(
                lookup: &mut <$backend as TypeMetadata>::MetadataLookup,
            ) -> &mut (dyn Any + 'a) {
                <$inner>::to_any(lookup)
            }

            fn from_any(lookup: &mut dyn Any) -> Option<&mut <$backend as TypeMetadata>::MetadataLookup> {
                <$inner>::from_any(lookup)
            }
        }

        impl MigrationConnection for $name {
            fn setup(&mut self) -> QueryResult<usize> {
                self.0.setup()
            }
        }

        impl R2D2Connection for $name {
            fn ping(&mut self) -> QueryResult<()> {
                self.0.ping()
            }

            fn is_broken(&mut self) -> bool {
                self.0.is_broken()
            }
        }
    };
}

connection! {
    /// A connection to SQLite.
    SqliteConnection over diesel::SqliteConnection, Sqlite, run_on_sqlite, load_from_sqlite
}

connection! {
    /// A connection to PostgreSQL.
    PgConnection over diesel::PgConnection, Pg, run_on_postgres, load_from_postgres
}
