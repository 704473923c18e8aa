//! Which changes are worth keeping prepared.
//!
//! Diesel keeps no `UPDATE` and no `INSERT` of many rows prepared, because their texts can be very many: one for each choice
//! of columns, or number of rows. Most of those that are run are the same few, and preparing one costs PostgreSQL a round trip and
//! a plan. So a change is kept from its second time on, up to a limit.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// How many changes are remembered as run once.
const REMEMBERED: usize = 1_024;
/// The most changes that one connection keeps prepared.
const MOST: usize = 512;
/// The longest text that is kept, in bytes.
const LONGEST: usize = 4_096;

/// The changes that one connection has run.
#[derive(Default)]
pub(crate) struct Repeated {
    hashes: RandomState,
    /// The last one at each place, so that those that never come again cost no memory.
    once: Vec<u64>,
    kept: HashSet<u64>,
}

impl Repeated {
    /// Whether a statement with this text is to be kept prepared.
    pub(crate) fn keeps(&mut self, sql: &str) -> bool {
        let is_change = sql.starts_with("UPDATE ") || sql.starts_with("INSERT ");
        if !is_change || sql.len() > LONGEST {
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
    fn a_change_is_kept_from_its_second_time_on() {
        let mut repeated = Repeated::default();
        for (sql, kept) in [
            ("UPDATE t SET a = ?", [false, true, true]),
            ("INSERT INTO t (a) VALUES (?), (?)", [false, true, true]),
            ("SELECT a FROM t", [false, false, false]),
            ("DELETE FROM t", [false, false, false]),
        ] {
            assert_eq!([(); 3].map(|()| repeated.keeps(sql)), kept, "{sql}");
        }
        let long = format!("UPDATE t SET a = {}", "?".repeat(LONGEST));
        assert_eq!([(); 3].map(|()| repeated.keeps(&long)), [false; 3]);
    }

    #[test]
    fn what_never_comes_again_costs_no_memory() {
        let mut repeated = Repeated::default();
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
