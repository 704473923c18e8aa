//! How long logs are kept.

use super::kind::LogKind;
use std::collections::BTreeMap;

/// How long the rows of a log are kept, and how many bytes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Rows that are older are deleted.
    pub days: i64,
    /// When the log has more bytes, its oldest rows are deleted. An estimate of what it takes on disk, with its indexes.
    pub bytes: i64,
}

impl Retention {
    /// So many days, and 1 GiB.
    pub const fn of_days(days: i64) -> Self {
        Self { days, bytes: 1 << 30 }
    }

    /// The same in seconds.
    pub fn seconds(&self) -> i64 {
        self.days * 24 * 3600
    }
}

/// How long each log is kept, by its name, where the operator has said so.
#[derive(Debug, Clone, Default)]
pub struct Retentions(BTreeMap<&'static str, Retention>);

impl Retentions {
    /// With another retention for the log of this name.
    #[must_use]
    pub fn with(mut self, log: &'static str, retention: Retention) -> Self {
        self.0.insert(log, retention);
        self
    }

    /// How long a log is kept.
    pub fn of(&self, log: &LogKind) -> Retention {
        self.0.get(log.name).copied().unwrap_or(Retention::of_days(log.days))
    }

    /// The first name that is not that of one of these logs.
    pub(super) fn unknown(&self, logs: &[LogKind]) -> Option<&'static str> {
        self.0.keys().find(|name| logs.iter().all(|log| log.name != **name)).copied()
    }
}
