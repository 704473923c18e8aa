//! Rate windows in the memory of this process.

use super::window::{WINDOW_MS, Window};
use model::Timestamp;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

const SHARDS: usize = 16;
/// The maximum number of windows in a shard.
const MOST: usize = 16_384;
/// Minimum interval between sweeps of a full shard for expired windows.
const SWEEP_MS: i64 = 1_000;

/// A bounded set of windows, sharded to reduce lock contention.
pub(super) struct Cells {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
}

#[derive(Default)]
struct Shard {
    cells: HashMap<String, Cell>,
    /// A common window for all callers that find the shard full.
    crowd: Cell,
    sweep_at_ms: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    opened_ms: i64,
    used: i64,
}

impl Cells {
    pub(super) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }

    /// Counts one request.
    pub(super) fn count(&self, caller: &str, limit: i64, now: Timestamp) -> Window {
        let counted = self.within(caller, |shard| shard.count(caller, limit, now.millis()));
        counted.unwrap_or_else(|| Window::new(limit, 1, WINDOW_MS))
    }

    /// Stores the state of a window that was counted in Redis.
    pub(super) fn note(&self, caller: &str, used: i64, left_ms: i64, now: Timestamp) {
        let opened_ms = now.millis() + left_ms - WINDOW_MS;
        self.within(caller, |shard| {
            if let Some(cell) = shard.place(caller, now.millis()) {
                *cell = Cell { opened_ms, used };
            }
        });
    }

    /// Returns the window of a caller whose next request would exceed `limit`.
    pub(super) fn used_up(&self, caller: &str, limit: i64, now: Timestamp) -> Option<Window> {
        let now = now.millis();
        let cell = self.within(caller, |shard| shard.cells.get(caller).copied())??;
        (cell.is_open(now) && cell.used >= limit)
            .then(|| Window::new(limit, limit + 1, cell.opened_ms + WINDOW_MS - now))
    }

    fn within<T>(&self, caller: &str, work: impl FnOnce(&mut Shard) -> T) -> Option<T> {
        let place = usize::try_from(self.hasher.hash_one(caller) % SHARDS as u64).unwrap_or_default();
        let shard = self.shards.get(place)?;
        Some(work(&mut shard.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Shard {
    fn count(&mut self, caller: &str, limit: i64, now: i64) -> Window {
        // Known callers first: `place` would have to allocate their name.
        if let Some(cell) = self.cells.get_mut(caller) {
            return cell.count(limit, now);
        }
        match self.place(caller, now) {
            Some(cell) => cell.count(limit, now),
            None => self.crowd.count(limit, now),
        }
    }

    /// Returns the caller's cell, or `None` if the shard is full.
    fn place(&mut self, caller: &str, now: i64) -> Option<&mut Cell> {
        if self.cells.len() >= MOST && now >= self.sweep_at_ms {
            self.sweep_at_ms = now + SWEEP_MS;
            self.cells.retain(|_, cell| cell.is_open(now));
        }
        if self.cells.len() >= MOST && !self.cells.contains_key(caller) {
            return None;
        }
        Some(self.cells.entry(caller.to_owned()).or_default())
    }
}

impl Cell {
    fn is_open(&self, now: i64) -> bool {
        // A default cell has no requests and counts as closed.
        self.used > 0 && now < self.opened_ms + WINDOW_MS
    }

    fn count(&mut self, limit: i64, now: i64) -> Window {
        if !self.is_open(now) {
            *self = Self { opened_ms: now, used: 0 };
        }
        self.used += 1;
        Window::new(limit, self.used, self.opened_ms + WINDOW_MS - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_opens_with_the_first_request_and_ends_after_a_minute() {
        let windows = Cells::new();
        let start = Timestamp::from_millis(1_000);
        let at = |ms: i64| Timestamp::from_millis(1_000 + ms);
        assert_eq!(
            windows.count("k", 2, start),
            Window { limit: 2, remaining: 1, reset_seconds: 60, exceeded: false }
        );
        assert_eq!(windows.used_up("k", 2, start), None);
        assert_eq!(windows.count("k", 2, at(500)).remaining, 0);
        let over = windows.count("k", 2, at(59_001));
        assert!(over.exceeded);
        assert_eq!((over.remaining, over.reset_seconds), (0, 1));
        assert_eq!(windows.used_up("k", 2, at(59_001)), Some(over));
        assert!(!windows.count("other", 2, at(59_001)).exceeded);
        assert_eq!(windows.used_up("k", 2, at(60_000)), None);
        let next = windows.count("k", 2, at(60_000));
        assert_eq!((next.remaining, next.reset_seconds, next.exceeded), (1, 60, false));
    }

    #[test]
    fn a_changed_limit_counts_at_once() {
        let windows = Cells::new();
        let now = Timestamp::from_millis(0);
        for _ in 0..5 {
            windows.count("k", 100, now);
        }
        assert!(windows.count("k", 5, now).exceeded);
        assert!(!windows.count("k", 7, now).exceeded);
    }

    #[test]
    fn what_was_counted_elsewhere_is_remembered() {
        let windows = Cells::new();
        let now = Timestamp::from_millis(100_000);
        windows.note("a", 2, 10_000, now);
        assert_eq!(windows.used_up("a", 3, now), None);
        windows.note("a", 3, 10_000, now);
        assert_eq!(windows.used_up("a", 3, now).unwrap().reset_seconds, 10);
        assert_eq!(windows.used_up("a", 3, now.plus_seconds(10)), None);
    }

    #[test]
    fn memory_is_bounded_and_comes_free_again() {
        let windows = Cells::new();
        let now = Timestamp::from_millis(5_000);
        let known = windows.count("known", 100, now);
        for number in 0..SHARDS * MOST * 2 {
            windows.count(&format!("caller-{number}"), 100, now);
        }
        let held = |windows: &Cells| -> usize {
            windows.shards.iter().map(|shard| shard.lock().unwrap().cells.len()).sum()
        };
        assert_eq!(held(&windows), SHARDS * MOST);
        // Known callers keep their windows. New callers share one window, so that they are still limited.
        assert_eq!(windows.count("known", 100, now).remaining, known.remaining - 1);
        assert!(windows.count("late-comer", 100, now).exceeded);
        let later = now.plus_seconds(61);
        assert_eq!(windows.count("late-comer", 100, later).remaining, 99);
        assert!(held(&windows) <= (SHARDS - 1) * MOST + 1);
    }
}
