//! What was read from the database, remembered for at most ten seconds: the longest that a change made elsewhere can go
//! unnoticed, on every replica and without any message between them.

use model::Timestamp;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// How long something found is remembered, in milliseconds.
const FOUND_MS: i64 = 10_000;
/// How long it is remembered that something does not exist.
const MISSING_MS: i64 = 5_000;
/// More entries than this are never kept: whoever sends many invented keys must not fill the memory.
const MOST: usize = 50_000;

/// Values that are remembered for a while. A missing value is remembered too, for less long.
pub struct Cache<K, V>(RwLock<HashMap<K, Entry<V>>>);

struct Entry<V> {
    value: Option<Arc<V>>,
    until_ms: i64,
}

impl<K: Hash + Eq, V> Cache<K, V> {
    /// Nothing remembered.
    pub fn new() -> Self {
        Self(RwLock::new(HashMap::new()))
    }

    /// What is remembered of `key`: a value, or that there is none. `None` where nothing is.
    pub fn get(&self, key: &K, now: Timestamp) -> Option<Option<Arc<V>>> {
        let entries = self.0.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(key).filter(|entry| now.millis() < entry.until_ms).map(|entry| entry.value.clone())
    }

    /// Remembers a value, or that there is none.
    pub fn put(&self, key: K, value: Option<Arc<V>>, now: Timestamp) {
        let until_ms = now.millis() + if value.is_some() { FOUND_MS } else { MISSING_MS };
        let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MOST {
            entries.retain(|_, entry| now.millis() < entry.until_ms);
        }
        if entries.len() < MOST {
            entries.insert(key, Entry { value, until_ms });
        }
    }

    /// Forgets everything, so that what was changed is read anew.
    pub fn clear(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl<K: Hash + Eq, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_forgotten() {
        let cache = Cache::new();
        let now = Timestamp::from_millis(0);
        cache.put("a", Some(Arc::new(1)), now);
        cache.put("b", None, now);
        assert_eq!(cache.get(&"a", now.plus_seconds(9)).flatten().as_deref(), Some(&1));
        assert!(cache.get(&"a", now.plus_seconds(10)).is_none());
        assert!(cache.get(&"b", now.plus_seconds(4)).is_some());
        assert!(cache.get(&"b", now.plus_seconds(5)).is_none());
    }
}
