//! A separate database per test, copied from a migrated template within milliseconds.

use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection, QueryableByName, RunQueryDsl};
use model::{Clock, ManualClock, Random, SystemRandom, Timestamp};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use store::{Backend, Db, Options};

/// The database backend of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Embedded SQLite, in a temporary folder.
    Sqlite,
    /// PostgreSQL at `SVC_TEST_POSTGRES_URL`, which `make test` sets.
    Postgres,
}

/// The size of a test's connection pool.
const CONNECTIONS: u32 = 4;

/// A separate database, which is deleted when this is dropped. Its time stands still until the test advances it.
pub struct TestDb {
    /// The database.
    pub db: Db,
    /// The clock.
    pub clock: Arc<ManualClock>,
    /// The location, for tests that open it a second time.
    pub backend: Backend,
    #[cfg(feature = "app")]
    events: crate::emitted::EmittedEvents,
    _place: Place,
}

enum Place {
    Folder(#[expect(dead_code, reason = "kept to be dropped")] tempfile::TempDir),
    Postgres {
        admin: String,
        name: String,
    },
    /// Another `TestDb` owns the database.
    Elsewhere,
}

impl TestDb {
    /// Creates a database at 2026-01-15 12:00 UTC.
    pub fn new(kind: Kind) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::parse("2026-01-15T12:00:00Z").unwrap()));
        let (backend, place) = match kind {
            Kind::Sqlite => sqlite(),
            Kind::Postgres => postgres(),
        };
        Self::around(backend, clock, place)
    }

    fn around(backend: Backend, clock: Arc<ManualClock>, place: Place) -> Self {
        let db = open(&backend, clock.clone());
        #[cfg(feature = "app")]
        let events = crate::emitted::EmittedEvents::default();
        #[cfg(feature = "app")]
        events.observe(&db);
        Self {
            db,
            clock,
            backend,
            #[cfg(feature = "app")]
            events,
            _place: place,
        }
    }

    /// Opens the same database again, as another process would.
    pub fn reopen(&self) -> Db {
        let db = open(&self.backend, self.clock.clone());
        #[cfg(feature = "app")]
        self.events.observe(&db);
        db
    }

    /// Returns the same database for a second process. It is deleted when the first is dropped.
    pub fn share(&self) -> Self {
        Self::around(self.backend.clone(), self.clock.clone(), Place::Elsewhere)
    }

    /// Returns the number of deadlocks that the database has resolved. Their transactions were repeated, so tests do
    /// not notice them otherwise. SQLite has a single writer and no deadlocks. Nothing else may use the database
    /// meanwhile.
    pub async fn deadlocks(&self) -> i64 {
        if matches!(self.backend, Backend::Sqlite(_)) {
            return 0;
        }
        // A connection reports its statistics only when asked, so ask all connections of the pool.
        let all = Arc::new(Barrier::new(CONNECTIONS as usize));
        let flush = || {
            let all = all.clone();
            self.db.read(move |read| {
                all.wait();
                let sql = "SELECT pg_stat_force_next_flush()::text AS done";
                diesel::sql_query(sql).load::<Flushed>(read.connection())?;
                Ok(())
            })
        };
        let (one, two, three, four) = tokio::join!(flush(), flush(), flush(), flush());
        for done in [one, two, three, four] {
            done.unwrap();
        }
        let count = self.db.read(|read| {
            let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
            Ok(diesel::sql_query(sql).get_result::<Deadlocks>(read.connection())?.deadlocks)
        });
        count.await.unwrap()
    }
}

#[derive(QueryableByName)]
struct Flushed {
    #[diesel(sql_type = diesel::sql_types::Text)]
    #[expect(dead_code, reason = "asked for the sake of its effect")]
    done: String,
}

#[derive(QueryableByName)]
struct Deadlocks {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    deadlocks: i64,
}

fn open(backend: &Backend, clock: Arc<dyn Clock>) -> Db {
    let random: Arc<dyn Random> = Arc::new(SystemRandom::default());
    Db::open(Options { backend: backend.clone(), connections: CONNECTIONS, clock, random })
        .expect("the test database opens")
}

/// Returns a hash of all migrations. A template of other migrations has another name and is not used.
fn schema_hash(kind: &str) -> u64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../migrations").join(kind);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the migrations are there")
        .map(|entry| entry.unwrap().path().join("up.sql"))
        .collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        std::fs::read(&file).unwrap().hash(&mut hasher);
    }
    hasher.finish()
}

fn sqlite() -> (Backend, Place) {
    let template = std::env::temp_dir().join(format!("svc-template-{:016x}.db", schema_hash("sqlite")));
    let folder = tempfile::tempdir().unwrap();
    if !template.exists() {
        let fresh = folder.path().join("template.db");
        Db::migrate(&Backend::Sqlite(fresh.display().to_string())).expect("the migrations run");
        // Another test may create the template concurrently. The last rename wins, and both files are equal.
        std::fs::rename(&fresh, &template).or_else(|_| std::fs::copy(&fresh, &template).map(drop)).unwrap();
    }
    let path = folder.path().join("svc.db");
    std::fs::copy(&template, &path).unwrap();
    (Backend::Sqlite(path.display().to_string()), Place::Folder(folder))
}

#[derive(QueryableByName)]
struct Exists {
    #[diesel(sql_type = diesel::sql_types::Bool)]
    exists: bool,
}

fn postgres() -> (Backend, Place) {
    let admin = std::env::var("SVC_TEST_POSTGRES_URL").unwrap_or_else(|_| {
        panic!("SVC_TEST_POSTGRES_URL is not set: run tests with `scripts/with-services`")
    });
    let mut connection = PgConnection::establish(&admin).expect("the test server answers");
    let template = format!("svc_template_{:016x}", schema_hash("postgres"));
    connection.batch_execute("SELECT pg_advisory_lock(815)").unwrap();
    let query = format!("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = '{template}') AS exists");
    if !diesel::sql_query(query).get_result::<Exists>(&mut connection).unwrap().exists {
        let making = format!("{template}_new");
        connection.batch_execute(&format!("DROP DATABASE IF EXISTS {making}")).unwrap();
        connection.batch_execute(&format!("CREATE DATABASE {making}")).unwrap();
        Db::migrate(&Backend::Postgres(with_database(&admin, &making))).expect("the migrations run");
        connection.batch_execute(&format!("ALTER DATABASE {making} RENAME TO {template}")).unwrap();
    }
    let mut bytes = [0; 8];
    SystemRandom::default().fill(&mut bytes);
    let name = format!("svc_test_{:016x}", u64::from_be_bytes(bytes));
    connection.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}")).unwrap();
    connection.batch_execute("SELECT pg_advisory_unlock(815)").unwrap();
    (Backend::Postgres(with_database(&admin, &name)), Place::Postgres { admin, name })
}

fn with_database(url: &str, name: &str) -> String {
    let (server, _) = url.rsplit_once('/').expect("the URL names a database");
    format!("{server}/{name}")
}

impl Drop for Place {
    fn drop(&mut self) {
        let Self::Postgres { admin, name } = self else { return };
        if let Ok(mut connection) = PgConnection::establish(admin) {
            // A failed test may have left connections. The whole server is deleted anyway.
            let _ = connection.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}
