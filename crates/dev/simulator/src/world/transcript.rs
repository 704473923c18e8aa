//! The accepted messages.

use model::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};

/// A message that the network accepted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sent {
    /// The number of the message, from 1.
    pub sequence: u64,
    /// The network's id.
    pub provider_id: String,
    /// The number that sent it.
    pub number_id: String,
    /// The recipient, as in the request.
    pub to: String,
    /// The recipient's user id.
    pub user_id: String,
    /// The reference, as in the request.
    pub reference: Option<String>,
    /// The network's name of its type.
    pub kind: String,
    /// The part of the request with that name.
    pub content: Value,
    /// The id of the message that this is a reply to.
    pub reply_to: Option<String>,
    /// When it was accepted.
    pub at: Timestamp,
    /// The statuses so far, in chronological order.
    pub statuses: Vec<SentStatus>,
}

/// A status of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SentStatus {
    /// `sent`, `delivered`, `read` or `failed`.
    pub status: String,
    /// The time of the status.
    pub at: Timestamp,
}

/// A message of a customer that the business marked as read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadMark {
    /// The number that marked it.
    pub number_id: String,
    /// The id of the message.
    pub message_id: String,
    /// Whether the customer also sees a typing indicator.
    pub typing: bool,
    /// The time of the mark.
    pub at: Timestamp,
}

/// The accepted messages that are kept.
pub(crate) struct Transcript {
    kept: VecDeque<Sent>,
    by_id: HashMap<String, u64>,
    most: usize,
    pub(crate) total: u64,
}

impl Transcript {
    pub(crate) fn new(most: usize) -> Self {
        Self { kept: VecDeque::new(), by_id: HashMap::new(), most: most.max(1), total: 0 }
    }

    pub(crate) fn push(&mut self, mut sent: Sent) {
        while self.kept.len() >= self.most {
            if let Some(oldest) = self.kept.pop_front() {
                self.by_id.remove(&oldest.provider_id);
            }
        }
        self.total += 1;
        sent.sequence = self.total;
        self.by_id.insert(sent.provider_id.clone(), sent.sequence);
        self.kept.push_back(sent);
    }

    fn place(&self, id: &str) -> Option<usize> {
        let first = self.kept.front()?.sequence;
        usize::try_from(self.by_id.get(id)?.checked_sub(first)?).ok()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Sent> {
        self.kept.get(self.place(id)?)
    }

    pub(crate) fn note_status(&mut self, id: &str, status: &str, at: Timestamp) {
        if let Some(sent) = self.place(id).and_then(|place| self.kept.get_mut(place)) {
            sent.statuses.push(SentStatus { status: status.to_owned(), at });
        }
    }

    /// Returns the messages after a sequence number, oldest first.
    pub(crate) fn after(&self, sequence: u64, most: usize) -> Vec<Sent> {
        let first = self.kept.front().map_or(0, |sent| sent.sequence);
        let skip = usize::try_from((sequence + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skip).take(most).cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.by_id.clear();
    }
}
