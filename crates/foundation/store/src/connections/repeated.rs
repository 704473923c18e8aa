//! Which statements are worth keeping prepared.
//!
//! Diesel keeps no `UPDATE`, no `INSERT` of many rows and nothing with a piece of SQL text prepared, because their texts can be
//! very many: one for each choice of columns, or number of rows. Most of those that are run are the same few, and preparing one can
//! cost SQLite more than running it, and PostgreSQL a round trip and a plan. So a statement is kept from its second time on, up
//! to a limit. On PostgreSQL only changes are: it plans a query that is kept for any values, and so worse than for those given.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// How many statements are remembered as run once.
const REMEMBERED: usize = 1_024;
/// The most statements that one connection keeps prepared, beside those that diesel keeps by itself.
const MOST: usize = 512;
/// The longest text that is kept, in bytes.
const LONGEST: usize = 4_096;

/// The statements that one connection has run.
pub(crate) struct Repeated {
    only_changes: bool,
    hashes: RandomState,
    /// The last one at each place, so that those that never come again cost no memory.
    once: Vec<u64>,
    kept: HashSet<u64>,
}

impl Repeated {
    /// For a connection that keeps all that comes again.
    pub(crate) fn of_all() -> Self {
        Self { only_changes: false, hashes: RandomState::new(), once: Vec::new(), kept: HashSet::new() }
    }

    /// For a connection that keeps changes that come again.
    pub(crate) fn of_changes() -> Self {
        Self { only_changes: true, ..Self::of_all() }
    }

    /// Whether a statement with this text is to be kept prepared.
    pub(crate) fn keeps(&mut self, sql: &str) -> bool {
        let is_change = || sql.starts_with("UPDATE ") || sql.starts_with("INSERT ");
        if sql.len() > LONGEST || (self.only_changes && !is_change()) {
            return false;
        }
        let hash = self.hashes.hash_one(sql);
        if self.kept.contains(&hash) {
            return true;
        }
        if self.once.is_empty() {
            self.once.resize(REMEMBERED, 0);
        }
        let place = usize::try_from(hash % REMEMBERED as u64).unwrap_or(0);
        let Some(last) = self.once.get_mut(place) else { return false };
        if *last != hash {
            *last = hash;
            return false;
        }
        self.kept.len() < MOST && self.kept.insert(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, MOST, Repeated};

    #[test]
    fn a_statement_is_kept_from_its_second_time_on() {
        let (mut changes, mut repeated) = (Repeated::of_changes(), Repeated::of_all());
        for (sql, is_change) in [
            ("UPDATE t SET a = ?", true),
            ("INSERT INTO t (a) VALUES (?), (?)", true),
            ("SELECT a FROM t", false),
            ("DELETE FROM t", false),
        ] {
            assert_eq!([(); 3].map(|()| repeated.keeps(sql)), [false, true, true], "{sql}");
            assert_eq!([(); 3].map(|()| changes.keeps(sql)), [false, is_change, is_change], "{sql}");
        }
        let long = format!("UPDATE t SET a = {}", "?".repeat(LONGEST));
        assert_eq!([(); 3].map(|()| repeated.keeps(&long)), [false; 3]);
    }

    #[test]
    fn what_never_comes_again_costs_no_memory() {
        let mut repeated = Repeated::of_all();
        for number in 0..100_000 {
            assert!(!repeated.keeps(&format!("UPDATE t SET a = {number}")));
        }
        assert!(repeated.kept.is_empty());
        for number in 0..10 * MOST {
            repeated.keeps(&format!("UPDATE t SET a = {number}"));
            repeated.keeps(&format!("UPDATE t SET a = {number}"));
        }
        assert_eq!(repeated.kept.len(), MOST);
        assert!(repeated.keeps("UPDATE t SET a = 0"));
    }
}
