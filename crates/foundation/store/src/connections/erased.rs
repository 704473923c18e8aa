//! The connection that is one of two. It looks at a statement through a pointer: what diesel does to prepare, bind and
//! run one is compiled once for each database and not once for each statement.
//!
//! Diesel's own connections are generic over the statement, down to the calls of the C library, and so is what its
//! derive for two databases puts above them. With hundreds of statements that was a third of what the compiler made of
//! a crate that is full of them. That derive also writes out a statement's text whenever it is run; here it is written
//! only to be prepared.

use crate::connections::repeated::Repeated;
use diesel::backend::Backend;
use diesel::connection::{
    AnsiTransactionManager, CacheSize, Connection, DefaultLoadingMode, Instrumentation, LoadConnection,
    SimpleConnection, TransactionManager, TransactionManagerStatus,
};
use diesel::deserialize::FromSql;
use diesel::expression::QueryMetadata;
use diesel::internal::derives::multiconnection::{AstPassHelper, ConnectionSealed, MultiConnectionHelper};
use diesel::migration::MigrationConnection;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryBuilder, QueryFragment, QueryId};
use diesel::sql_types::{Timestamp, Untyped};
use diesel::sqlite::Sqlite;
use diesel::{ConnectionError, ConnectionResult, QueryResult};
use model::StoredTime;
use std::any::TypeId;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;

/// What diesel's derive makes of it is used: the backend that is either, its values and its rows. The connection itself
/// is not.
#[derive(diesel::MultiConnection)]
pub enum Either {
    Sqlite(diesel::SqliteConnection),
    Postgres(diesel::PgConnection),
}

impl FromSql<Timestamp, MultiBackend> for StoredTime {
    fn from_sql(value: <MultiBackend as Backend>::RawValue<'_>) -> diesel::deserialize::Result<Self> {
        value.from_sql::<Self, Timestamp>()
    }
}

type Builder = <MultiBackend as Backend>::QueryBuilder;
type Binds<'a> = <MultiBackend as Backend>::BindCollector<'a>;
type Cursor<'conn, 'query> = <Either as LoadConnection>::Cursor<'conn, 'query>;

thread_local! {
    /// By what diesel's cache of prepared statements knows the one that this thread is about to run.
    static QUERY_ID: Cell<Option<TypeId>> = const { Cell::new(None) };
}

/// What a statement is known by that is written for either database. Its text need not be the one that the same type has
/// when it is written for one of them, and both are prepared on the same connection.
struct ForEither<Q>(PhantomData<Q>);

fn id_for_either<T: QueryId>() -> Option<TypeId> {
    T::query_id().map(|_| TypeId::of::<ForEither<T::QueryId>>())
}

/// Whether diesel keeps a statement prepared.
enum Kept {
    /// Diesel would by itself.
    Always,
    /// It comes again. Its text takes the place of what would say that diesel is not to keep it.
    ByText(String),
    Never,
}

impl Kept {
    fn is_kept(&self) -> bool {
        !matches!(self, Self::Never)
    }
}

/// A statement whose type is forgotten. Diesel asks a type for its id, so the id is put beside it in [`QUERY_ID`].
struct Erased<P, DB> {
    statement: P,
    backend: DB,
    kept: Kept,
}

// Diesel passes a reference to a statement that it executes, and asks the parts of that whether they may be kept.
impl<P, DB> QueryFragment<DB> for Erased<P, DB>
where
    DB: Backend,
    P: Deref,
    P::Target: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let statement = self.statement.deref();
        let Kept::ByText(text) = &self.kept else { return statement.walk_ast(pass) };
        if let Some((out, lookup)) = pass.bind_collector() {
            return statement.collect_binds(out, lookup, &self.backend);
        }
        if let Some((formatter, _)) = pass.debug_binds() {
            return statement.walk_ast(AstPass::collect_debug_binds_pass(formatter, &self.backend));
        }
        pass.push_sql(text);
        Ok(())
    }

    fn is_safe_to_cache_prepared(&self, _: &DB) -> QueryResult<bool> {
        Ok(self.kept.is_kept())
    }
}

impl<P, DB> QueryId for Erased<P, DB> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;

    fn query_id() -> Option<TypeId> {
        QUERY_ID.get()
    }
}

impl<P, DB> Query for Erased<P, DB> {
    // Nothing is asked of it: who loads knows the types of the columns.
    type SqlType = Untyped;
}

/// A statement for either database, as one of them sees it.
struct Translated<P> {
    statement: P,
    backend: MultiBackend,
    kept: Kept,
}

impl<P> QueryId for Translated<P> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;

    fn query_id() -> Option<TypeId> {
        QUERY_ID.get()
    }
}

impl<P> Query for Translated<P> {
    type SqlType = Untyped;
}

/// A statement to be executed is lent, one to be loaded is given away.
type Lent<'a, DB> = &'a (dyn QueryFragment<DB> + 'a);
type Given<'a, DB> = Box<dyn QueryFragment<DB> + 'a>;

/// Whether a statement is kept prepared: where diesel says so, and where it comes again.
fn kept<DB: Backend>(
    repeated: &mut Repeated,
    statement: Lent<'_, DB>,
    backend: &DB,
    mut text: DB::QueryBuilder,
) -> QueryResult<Kept> {
    if statement.is_safe_to_cache_prepared(backend)? {
        return Ok(Kept::Always);
    }
    statement.to_sql(&mut text, backend)?;
    let text = text.finish();
    Ok(if repeated.keeps(&text) { Kept::ByText(text) } else { Kept::Never })
}

macro_rules! connection {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $backend:ty, $variant:ident, $run:ident, $load:ident, $repeated:ident) => {
        $(#[$doc])*
        pub struct $name {
            inner: $inner,
            repeated: Box<Repeated>,
        }

        #[inline(never)]
        fn $run(connection: &mut $name, statement: Lent<'_, $backend>) -> QueryResult<usize> {
            let backend = <$backend>::default();
            let kept = kept(&mut connection.repeated, statement, &backend, Default::default())?;
            connection.inner.execute_returning_count(&Erased { statement, backend, kept })
        }

        #[inline(never)]
        fn $load<'conn, 'query>(
            connection: &'conn mut $name,
            statement: Given<'query, $backend>,
        ) -> QueryResult<<$inner as LoadConnection>::Cursor<'conn, 'query>> {
            let backend = <$backend>::default();
            let kept = kept(&mut connection.repeated, &*statement, &backend, Default::default())?;
            LoadConnection::<DefaultLoadingMode>::load(&mut connection.inner, Erased { statement, backend, kept })
        }

        impl ConnectionSealed for $name {}

        impl SimpleConnection for $name {
            fn batch_execute(&mut self, query: &str) -> QueryResult<()> {
                self.inner.batch_execute(query)
            }
        }

        impl Connection for $name {
            type Backend = $backend;
            type TransactionManager = AnsiTransactionManager;

            fn establish(url: &str) -> ConnectionResult<Self> {
                Ok(Self { inner: <$inner>::establish(url)?, repeated: Box::new(Repeated::$repeated()) })
            }

            fn execute_returning_count<T>(&mut self, source: &T) -> QueryResult<usize>
            where
                T: QueryFragment<$backend> + QueryId,
            {
                QUERY_ID.set(T::query_id());
                $run(self, source)
            }

            fn transaction_state(&mut self) -> &mut AnsiTransactionManager {
                self.inner.transaction_state()
            }

            fn instrumentation(&mut self) -> &mut dyn Instrumentation {
                self.inner.instrumentation()
            }

            fn set_instrumentation(&mut self, instrumentation: impl Instrumentation) {
                self.inner.set_instrumentation(instrumentation);
            }

            fn set_prepared_statement_cache_size(&mut self, size: CacheSize) {
                self.inner.set_prepared_statement_cache_size(size);
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
                $load(self, Box::new(source))
            }
        }

        impl MigrationConnection for $name {
            fn setup(&mut self) -> QueryResult<usize> {
                self.inner.setup()
            }
        }

        impl<P> QueryFragment<$backend> for Translated<P>
        where
            P: Deref,
            P::Target: QueryFragment<MultiBackend>,
        {
            fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, $backend>) -> QueryResult<()> {
                let statement = self.statement.deref();
                if let Some((out, lookup)) = pass.bind_collector() {
                    let mut binds = Binds::$variant(Default::default());
                    statement.collect_binds(&mut binds, <$inner>::to_any(lookup), &self.backend)?;
                    if let Binds::$variant(binds) = binds {
                        *out = binds;
                    }
                    return Ok(());
                }
                if let Some((formatter, _)) = pass.debug_binds() {
                    let pass = AstPass::<MultiBackend>::collect_debug_binds_pass(formatter, &self.backend);
                    return statement.walk_ast(pass);
                }
                match &self.kept {
                    Kept::ByText(text) => pass.push_sql(text),
                    kept => {
                        if !kept.is_kept() {
                            pass.unsafe_to_cache_prepared();
                        }
                        let mut builder = Builder::$variant(Default::default());
                        statement.to_sql(&mut builder, &self.backend)?;
                        pass.push_sql(&builder.finish());
                    }
                }
                Ok(())
            }

            fn is_safe_to_cache_prepared(&self, _: &$backend) -> QueryResult<bool> {
                Ok(self.kept.is_kept())
            }
        }
    };
}

connection! {
    /// A connection to SQLite.
    SqliteConnection, diesel::SqliteConnection, Sqlite, Sqlite, run_on_sqlite, load_from_sqlite, of_all
}

connection! {
    /// A connection to PostgreSQL.
    PgConnection, diesel::PgConnection, Pg, Postgres, run_on_postgres, load_from_postgres, of_changes
}

/// A connection to either database. Ordinary diesel queries run on it as they are.
pub enum AnyConnection {
    /// Embedded SQLite.
    Sqlite(SqliteConnection),
    /// PostgreSQL.
    Postgres(PgConnection),
}

#[inline(never)]
fn run(connection: &mut AnyConnection, statement: Lent<'_, MultiBackend>) -> QueryResult<usize> {
    match connection {
        AnyConnection::Sqlite(connection) => {
            let backend = MultiBackend::Sqlite(Sqlite);
            let kept =
                kept(&mut connection.repeated, statement, &backend, Builder::Sqlite(Default::default()))?;
            connection.inner.execute_returning_count(&Translated { statement, backend, kept })
        }
        AnyConnection::Postgres(connection) => {
            let backend = MultiBackend::Postgres(Pg);
            let kept =
                kept(&mut connection.repeated, statement, &backend, Builder::Postgres(Default::default()))?;
            connection.inner.execute_returning_count(&Translated { statement, backend, kept })
        }
    }
}

#[inline(never)]
fn load<'conn, 'query>(
    connection: &'conn mut AnyConnection,
    statement: Given<'query, MultiBackend>,
) -> QueryResult<Cursor<'conn, 'query>> {
    match connection {
        AnyConnection::Sqlite(connection) => {
            let backend = MultiBackend::Sqlite(Sqlite);
            let kept =
                kept(&mut connection.repeated, &*statement, &backend, Builder::Sqlite(Default::default()))?;
            let statement = Translated { statement, backend, kept };
            LoadConnection::<DefaultLoadingMode>::load(&mut connection.inner, statement).map(Cursor::Sqlite)
        }
        AnyConnection::Postgres(connection) => {
            let backend = MultiBackend::Postgres(Pg);
            let kept =
                kept(&mut connection.repeated, &*statement, &backend, Builder::Postgres(Default::default()))?;
            let statement = Translated { statement, backend, kept };
            LoadConnection::<DefaultLoadingMode>::load(&mut connection.inner, statement).map(Cursor::Postgres)
        }
    }
}

impl ConnectionSealed for AnyConnection {}

impl SimpleConnection for AnyConnection {
    fn batch_execute(&mut self, query: &str) -> QueryResult<()> {
        crate::each!(self, |connection| connection.batch_execute(query))
    }
}

impl Connection for AnyConnection {
    type Backend = MultiBackend;
    type TransactionManager = Self;

    /// Nobody opens one by URL alone: how is in `connection.rs`.
    fn establish(_: &str) -> ConnectionResult<Self> {
        Err(ConnectionError::BadConnection("a connection is opened for a backend".into()))
    }

    fn execute_returning_count<T>(&mut self, source: &T) -> QueryResult<usize>
    where
        T: QueryFragment<MultiBackend> + QueryId,
    {
        QUERY_ID.set(id_for_either::<T>());
        run(self, source)
    }

    fn transaction_state(&mut self) -> &mut Self {
        self
    }

    fn instrumentation(&mut self) -> &mut dyn Instrumentation {
        crate::each!(self, |connection| connection.instrumentation())
    }

    fn set_instrumentation(&mut self, instrumentation: impl Instrumentation) {
        crate::each!(self, |connection| connection.set_instrumentation(instrumentation));
    }

    fn set_prepared_statement_cache_size(&mut self, size: CacheSize) {
        crate::each!(self, |connection| connection.set_prepared_statement_cache_size(size));
    }
}

impl LoadConnection for AnyConnection {
    type Cursor<'conn, 'query> = Cursor<'conn, 'query>;
    type Row<'conn, 'query> = MultiRow<'conn, 'query>;

    fn load<'conn, 'query, T>(&'conn mut self, source: T) -> QueryResult<Cursor<'conn, 'query>>
    where
        T: Query + QueryFragment<MultiBackend> + QueryId + 'query,
        MultiBackend: QueryMetadata<T::SqlType>,
    {
        QUERY_ID.set(id_for_either::<T>());
        load(self, Box::new(source))
    }
}

impl TransactionManager<Self> for AnyConnection {
    type TransactionStateData = Self;

    fn begin_transaction(connection: &mut Self) -> QueryResult<()> {
        crate::each!(connection, |connection| AnsiTransactionManager::begin_transaction(connection))
    }

    fn rollback_transaction(connection: &mut Self) -> QueryResult<()> {
        crate::each!(connection, |connection| AnsiTransactionManager::rollback_transaction(connection))
    }

    fn commit_transaction(connection: &mut Self) -> QueryResult<()> {
        crate::each!(connection, |connection| AnsiTransactionManager::commit_transaction(connection))
    }

    fn transaction_manager_status_mut(connection: &mut Self) -> &mut TransactionManagerStatus {
        crate::each!(connection, |connection| AnsiTransactionManager::transaction_manager_status_mut(
            connection
        ))
    }
}
