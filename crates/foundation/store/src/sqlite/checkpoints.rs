//! Folding SQLite's write-ahead log back into the database, beside the writer.
//!
//! A checkpoint copies pages and waits for the disk, for which transactions would have to wait if the writer did it. It has
//! to only when changes never pause: the log begins anew where all of it was copied, and then it has grown to
//! [`LONGEST_LOG`](crate::connections::connection::LONGEST_LOG).

use crate::connections::connection::{Role, open_sqlite};
use diesel::connection::SimpleConnection;
use model::Result;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Transactions between two checkpoints. They change some 4,000 pages: those that change often are then copied once for many
/// changes.
const TRANSACTIONS: usize = 256;

/// What the writer asks for checkpoints.
pub(crate) struct Checkpoints {
    /// Transactions since it last asked.
    since: usize,
    asked: SyncSender<()>,
}

impl Checkpoints {
    /// Starts the thread of the checkpoints. It ends when nobody can ask any more.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub(crate) fn start(path: &str) -> Result<Self> {
        let mut connection = open_sqlite(path, Role::Writer)?;
        let (asked, asking) = sync_channel(1);
        let checkpoints = move || {
            while asking.recv().is_ok() {
                if let Err(error) = connection.batch_execute("PRAGMA wal_checkpoint(PASSIVE)") {
                    tracing::warn!(%error, "the write-ahead log could not be folded back");
                }
            }
        };
        std::thread::Builder::new().name("sqlite-checkpoints".to_owned()).spawn(checkpoints)?;
        Ok(Self { since: 0, asked })
    }

    /// Notes that transactions were committed.
    pub(crate) fn note(&mut self, transactions: usize) {
        self.since += transactions;
        // While one is asked for and has not begun, there is no need of another.
        if self.since >= TRANSACTIONS && self.asked.try_send(()).is_ok() {
            self.since = 0;
        }
    }
}
