//! Whether there is room to write: a write that finds the disk full is remembered.

use model::{Code, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the last write that is known of found no room.
#[derive(Default)]
pub(crate) struct Room {
    is_full: AtomicBool,
}

impl Room {
    /// Remembers a write that found no room.
    pub(crate) fn note<T>(&self, written: &Result<T>) {
        let Err(error) = written else { return };
        if error.code() == Code::StorageFull && !self.is_full.swap(true, Ordering::AcqRel) {
            tracing::error!(cause = ?error.cause(), "there is no room to write");
        }
    }

    /// Whether the last write that is known of found no room.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// Remembers that there is room again.
    pub(crate) fn free(&self) {
        self.is_full.store(false, Ordering::Release);
    }
}
