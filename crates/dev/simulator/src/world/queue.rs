//! The queue of future events, ordered by time.

use super::callbacks::{Callback, Part};
use super::users::Action;
use model::Timestamp;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tokio::sync::oneshot;

/// A part of a callback that is to be delivered.
#[derive(Debug)]
pub(crate) struct Emission {
    pub(crate) number_id: String,
    pub(crate) part: Part,
    /// The message and the status to record.
    pub(crate) note: Option<(String, &'static str)>,
    /// Whether faults have been drawn for it.
    pub(crate) is_drawn: bool,
    pub(crate) seen: Option<oneshot::Sender<()>>,
}

/// A scheduled event.
#[derive(Debug)]
pub(crate) enum Work {
    Emit(Emission),
    Act { user_id: String, number_id: String, action: Action },
    Approve { template: u64 },
    Deliver(Callback),
}

struct Job {
    due: Timestamp,
    sequence: u64,
    work: Work,
}

impl PartialEq for Job {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Job {}

impl PartialOrd for Job {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order is reversed, because the heap returns the greatest first.
impl Ord for Job {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.sequence).cmp(&(self.due, self.sequence))
    }
}

/// The queue of events.
#[derive(Default)]
pub(crate) struct Queue {
    jobs: BinaryHeap<Job>,
    sequence: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, due: Timestamp, work: Work) {
        self.sequence += 1;
        self.jobs.push(Job { due, sequence: self.sequence, work });
    }

    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<Work> {
        if self.jobs.peek()?.due > now {
            return None;
        }
        self.jobs.pop().map(|job| job.work)
    }

    /// Returns when the next event is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.jobs.peek().map(|job| job.due)
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }
}
