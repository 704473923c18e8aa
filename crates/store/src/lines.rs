//! Transactions of PostgreSQL that change the same rows, such as the account of a workspace.
//!
//! Side by side they would wait for each other's row locks, each with a connection of its own, and every lock that is handed on
//! costs the server more than the change itself. So those of one line wait here, one after another, and all that wait when
//! a transaction ends share the next one.

use model::WorkspaceId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The most transactions that share one: bounds how long the first of them waits.
const MOST: usize = 32;

/// How a transaction that others share begins. Work that is done together may lock in another order than each alone would,
/// so that it gives way where somebody else holds a row for longer than a change takes.
pub(crate) const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '50ms'";

/// The lines that have work, by their workspaces.
pub(crate) struct Lines<W>(Mutex<HashMap<WorkspaceId, VecDeque<W>>>);

impl<W> Lines<W> {
    /// Nobody waits.
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Puts work at the end of a line. Gives whether it is the first: then the line is to be served.
    pub(crate) fn join(&self, line: WorkspaceId, work: W) -> bool {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !lines.contains_key(&line);
        lines.entry(line).or_default().push_back(work);
        is_first
    }

    /// What is to be done next in a line; nothing once it has come to its end.
    pub(crate) fn next(&self, line: WorkspaceId) -> Vec<W> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(waiting) = lines.get_mut(&line) else { return Vec::new() };
        let next: Vec<W> = waiting.drain(..waiting.len().min(MOST)).collect();
        if next.is_empty() {
            lines.remove(&line);
        }
        next
    }
}
