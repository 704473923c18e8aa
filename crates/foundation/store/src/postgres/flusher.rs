//! Confirms commits on PostgreSQL once they are on disk.
//!
//! Connections of the pool commit without waiting for the disk (`synchronous_commit=off`), so that they and their row locks
//! are free at once. A write is answered, and its hooks run, only after a flush of the write-ahead log that began after
//! its commit. One thread flushes for all who wait: as in SQLite's writer, they share what a sync costs, however few
//! connections there are.
//!
//! Others can see a commit before it is on disk. So a read waits for a flush too while a commit of this process is
//! unconfirmed. It does not know of commits of other replicas; [`crate::Read::await_flush`] is for reads that must.

use crate::PgConnection;
use crate::connections::connection::open_postgres;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use diesel::connection::SimpleConnection;
use model::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The least time between the beginnings of two flushes. Under load it makes groups larger and costs little latency.
const APART: Duration = Duration::from_millis(1);

/// After so long without a commit the connection is tried.
const IDLE: Duration = Duration::from_secs(5);

/// Writes a record of a transaction and waits for it, and so for everything that was committed before: `txid_current()`
/// would not do, because PostgreSQL waits only for transactions that have written something. Where all is on disk nothing
/// is written. A standby that commits must wait for may be behind the disk, so then it is always written.
const FLUSH: &str = "SELECT pg_logical_emit_message(true, 'svc', '') \
    WHERE pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn() \
    OR current_setting('synchronous_standby_names') <> ''";

/// A connection that can flush the log.
pub(crate) trait Flush {
    /// Returns once everything that was committed before is on disk.
    ///
    /// # Errors
    /// When that is not known.
    fn flush(&mut self) -> Result<()>;
}

/// A connection to PostgreSQL that commits as the server is configured to.
pub(crate) struct PostgresLog(PgConnection);

impl PostgresLog {
    pub(crate) fn open(url: &str) -> Result<Self> {
        Ok(Self(open_postgres(url)?))
    }
}

impl Flush for PostgresLog {
    fn flush(&mut self) -> Result<()> {
        Ok(self.0.batch_execute(FLUSH)?)
    }
}

/// What is done once a flush has succeeded or failed.
type Ending = Box<dyn FnOnce(Result<()>) + Send>;

/// The flusher's connection at some moment. A flush on it confirms what was committed or seen since: a restart of the
/// server, which may lose commits, would have closed the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Session(u64);

struct Waiting {
    since: Session,
    /// Whether it is a commit, which [`State::unconfirmed`] counts.
    is_commit: bool,
    ending: Ending,
}

#[derive(Default)]
struct State {
    session: AtomicU64,
    /// Commits that have begun and are not known to be on disk.
    unconfirmed: AtomicU64,
}

impl State {
    fn session(&self) -> Session {
        Session(self.session.load(Ordering::SeqCst))
    }
}

/// The flusher. Its thread ends when it is dropped.
pub(crate) struct Flusher {
    queue: Sender<Waiting>,
    state: Arc<State>,
}

impl Flusher {
    /// Starts the thread. `open` is called now, and whenever a flush has failed.
    ///
    /// # Errors
    /// What `open` fails with.
    pub(crate) fn start<F: Flush + Send + 'static>(
        mut open: impl FnMut() -> Result<F> + Send + 'static,
    ) -> Result<Self> {
        let (queue, waiting) = unbounded();
        let state = Arc::new(State::default());
        let connection = Some(open()?);
        let thread = Thread { open, connection, state: state.clone(), unconfirmed: 0 };
        std::thread::Builder::new()
            .name("postgres-flusher".to_owned())
            .spawn(move || thread.serve(&waiting))?;
        Ok(Self { queue, state })
    }

    /// The present session: to be asked before a commit or a read begins.
    pub(crate) fn session(&self) -> Session {
        self.state.session()
    }

    /// Whether no commit of this process is unconfirmed.
    pub(crate) fn is_settled(&self) -> bool {
        self.state.unconfirmed.load(Ordering::SeqCst) == 0
    }

    /// Notes that a transaction is about to commit: whatever comes of it, [`confirm`](Self::confirm) must follow.
    pub(crate) fn begin_commit(&self) {
        self.state.unconfirmed.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends a transaction that committed after `since`, once that is on disk.
    pub(crate) fn confirm(&self, since: Session, ending: impl FnOnce(Result<()>) + Send + 'static) {
        self.wait(Waiting { since, is_commit: true, ending: Box::new(ending) });
    }

    /// Does something once everything is on disk that was committed before now.
    pub(crate) fn after_flush(&self, since: Session, ending: impl FnOnce(Result<()>) + Send + 'static) {
        self.wait(Waiting { since, is_commit: false, ending: Box::new(ending) });
    }

    fn wait(&self, waiting: Waiting) {
        if let Err(unsent) = self.queue.send(waiting) {
            (unsent.0.ending)(Err(Error::internal("the flusher has stopped")));
        }
    }
}

struct Thread<F, O> {
    open: O,
    connection: Option<F>,
    state: Arc<State>,
    /// Commits that a failed flush left unconfirmed. The next one that succeeds covers them.
    unconfirmed: u64,
}

impl<F: Flush, O: FnMut() -> Result<F>> Thread<F, O> {
    fn serve(mut self, queue: &Receiver<Waiting>) {
        let mut began: Option<Instant> = None;
        loop {
            let first = match queue.recv_timeout(IDLE) {
                Ok(first) => first,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    // A connection that was lost meanwhile is replaced before somebody waits for it.
                    if let Err(error) = self.flush() {
                        tracing::warn!(?error, "the connection that confirms commits is lost");
                    }
                    continue;
                }
            };
            if let Some(early) = began.and_then(|began| APART.checked_sub(began.elapsed())) {
                std::thread::sleep(early);
            }
            began = Some(Instant::now());
            let group: Vec<Waiting> = std::iter::once(first).chain(queue.try_iter()).collect();
            self.unconfirmed += group.iter().map(|waiting| u64::from(waiting.is_commit)).sum::<u64>();
            let flushed = self.flush();
            match &flushed {
                Ok(()) => {
                    let confirmed = std::mem::take(&mut self.unconfirmed);
                    self.state.unconfirmed.fetch_sub(confirmed, Ordering::SeqCst);
                }
                Err(error) => tracing::error!(?error, "commits could not be confirmed"),
            }
            let session = self.state.session();
            for Waiting { since, ending, .. } in group {
                let known = flushed.is_ok() && since == session;
                ending(if known { Ok(()) } else { Err(Error::internal("a commit could not be confirmed")) });
            }
        }
    }

    /// Flushes. After a failure it begins a new session, which confirms nothing of earlier ones.
    fn flush(&mut self) -> Result<()> {
        if let Some(mut connection) = self.connection.take()
            && connection.flush().is_ok()
        {
            self.connection = Some(connection);
            return Ok(());
        }
        let mut connection = (self.open)()?;
        self.state.session.fetch_add(1, Ordering::SeqCst);
        connection.flush()?;
        self.connection = Some(connection);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A log whose flushes a test ends.
    struct Script {
        begun: mpsc::Sender<()>,
        results: Arc<std::sync::Mutex<mpsc::Receiver<bool>>>,
    }

    impl Flush for Script {
        fn flush(&mut self) -> Result<()> {
            self.begun.send(()).unwrap();
            let ok = self.results.lock().unwrap().recv().unwrap();
            if ok { Ok(()) } else { Err(Error::internal("on purpose")) }
        }
    }

    struct Bed {
        flusher: Flusher,
        begun: mpsc::Receiver<()>,
        results: mpsc::Sender<bool>,
        ended: mpsc::Receiver<(&'static str, bool)>,
        end: mpsc::Sender<(&'static str, bool)>,
    }

    impl Bed {
        fn new() -> Self {
            let (began, begun) = mpsc::channel();
            let (results, scripted) = mpsc::channel();
            let (end, ended) = mpsc::channel();
            let scripted = Arc::new(std::sync::Mutex::new(scripted));
            let open = move || Ok(Script { begun: began.clone(), results: scripted.clone() });
            Self { flusher: Flusher::start(open).unwrap(), begun, results, ended, end }
        }

        fn commit(&self, name: &'static str, since: Session) {
            let end = self.end.clone();
            self.flusher.begin_commit();
            self.flusher.confirm(since, move |flushed| end.send((name, flushed.is_ok())).unwrap());
        }
    }

    #[test]
    fn a_commit_ends_after_a_flush_that_began_after_it() {
        let bed = Bed::new();
        let session = bed.flusher.session();
        bed.commit("first", session);
        bed.begun.recv().unwrap();
        // They come during a flush, which does not cover them.
        bed.commit("second", session);
        bed.commit("third", session);
        assert!(bed.ended.try_recv().is_err(), "answered before the flush");
        assert!(!bed.flusher.is_settled());
        bed.results.send(true).unwrap();
        assert_eq!(bed.ended.recv().unwrap(), ("first", true));
        bed.begun.recv().unwrap();
        assert!(bed.ended.try_recv().is_err(), "answered before the next flush");
        assert!(!bed.flusher.is_settled());
        bed.results.send(true).unwrap();
        assert_eq!(
            [bed.ended.recv().unwrap(), bed.ended.recv().unwrap()],
            [("second", true), ("third", true)]
        );
        assert!(bed.flusher.is_settled());
        assert!(bed.begun.try_recv().is_err(), "one flush is for all who wait");
    }

    #[test]
    fn what_was_committed_before_a_lost_connection_is_not_confirmed_by_the_next() {
        let bed = Bed::new();
        let session = bed.flusher.session();
        bed.commit("before", session);
        bed.begun.recv().unwrap();
        bed.commit("meanwhile", session);
        bed.results.send(false).unwrap();
        // The flush of the new session.
        bed.begun.recv().unwrap();
        bed.results.send(true).unwrap();
        assert_eq!(bed.ended.recv().unwrap(), ("before", false));
        bed.begun.recv().unwrap();
        bed.results.send(true).unwrap();
        assert_eq!(bed.ended.recv().unwrap(), ("meanwhile", false));
        let renewed = bed.flusher.session();
        assert_ne!(renewed, session);
        bed.commit("after", renewed);
        bed.begun.recv().unwrap();
        bed.results.send(true).unwrap();
        assert_eq!(bed.ended.recv().unwrap(), ("after", true));
    }

    #[test]
    fn commits_of_a_failed_flush_stay_unconfirmed_until_one_succeeds() {
        let bed = Bed::new();
        let session = bed.flusher.session();
        bed.commit("lost", session);
        for _ in 0..2 {
            bed.begun.recv().unwrap();
            bed.results.send(false).unwrap();
        }
        assert_eq!(bed.ended.recv().unwrap(), ("lost", false));
        assert!(!bed.flusher.is_settled());
        let end = bed.end.clone();
        let since = bed.flusher.session();
        bed.flusher.after_flush(since, move |flushed| end.send(("read", flushed.is_ok())).unwrap());
        bed.begun.recv().unwrap();
        bed.results.send(true).unwrap();
        // Its session ended with the second failure.
        assert_eq!(bed.ended.recv().unwrap(), ("read", false));
        assert!(bed.flusher.is_settled());
    }
}
