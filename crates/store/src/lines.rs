//! Transactions of PostgreSQL that change the same rows, such as the account of a workspace.
//!
//! Side by side they would wait for each other's row locks, each with a connection of its own, and every lock that is handed on
//! costs the server more than the change itself. So those of one line wait here, one after another, and all that wait when
//! a transaction ends share the next one.

use crate::db::Inner;
use crate::threads::Priority;
use crate::tx::Tx;
use crate::writer::{Pending, Work};
use model::{Result, WorkspaceId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// The most transactions that share one: bounds how long the first of them waits.
const MOST: usize = 32;

/// How a transaction that others share begins. Work that is done together may lock in another order than each alone would,
/// so that it gives way where somebody else holds a row for longer than a change takes.
pub(crate) const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '50ms'";

/// Work that waits in a line.
pub(crate) trait InLine: Work {
    /// Does the work in a transaction of its own, and answers.
    fn alone(self: Box<Self>, inner: &Inner);
}

impl<T: Send + 'static, F: Fn(&mut Tx) -> Result<T> + Send> InLine for Pending<T, F> {
    fn alone(self: Box<Self>, inner: &Inner) {
        let (work, answer) = self.into_parts();
        inner.write(&work, answer);
    }
}

/// Which line: that of a workspace for one kind of transaction.
pub(crate) type Line = (WorkspaceId, &'static str);

/// The lines that have work.
#[derive(Default)]
pub(crate) struct Lines(Mutex<HashMap<Line, VecDeque<Box<dyn InLine>>>>);

impl Lines {
    /// Puts work at the end of a line. Gives whether it is the first: then the line is to be served.
    pub(crate) fn join(&self, line: Line, work: Box<dyn InLine>) -> bool {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !lines.contains_key(&line);
        lines.entry(line).or_default().push_back(work);
        is_first
    }

    /// What is to be done next in a line; nothing once it has come to its end.
    fn next(&self, line: Line) -> Vec<Box<dyn InLine>> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(waiting) = lines.get_mut(&line) else { return Vec::new() };
        let next: Vec<_> = waiting.drain(..waiting.len().min(MOST)).collect();
        if next.is_empty() {
            lines.remove(&line);
        }
        next
    }
}

/// Serves a line until nobody waits in it.
pub(crate) fn serve(inner: &Arc<Inner>, line: Line) {
    let works = inner.lines.next(line);
    if works.is_empty() {
        return;
    }
    let _next = Next { inner, line };
    if works.len() == 1 {
        works.into_iter().for_each(|work| work.alone(inner));
    } else {
        inner.write_together(works);
    }
}

/// Has the line served on when it is dropped, whatever became of the work before. It waits for a thread anew, so that a busy
/// line does not keep others from theirs.
struct Next<'a> {
    inner: &'a Arc<Inner>,
    line: Line,
}

impl Drop for Next<'_> {
    fn drop(&mut self) {
        let (inner, line) = (self.inner.clone(), self.line);
        if let Err(error) = self.inner.threads.spawn(Priority::Normal, move || serve(&inner, line)) {
            tracing::error!(%error, "a line of transactions cannot go on");
        }
    }
}
