//! A cache of rows read from the database, with a time to live of ten seconds. A change made by another replica is
//! therefore noticed within ten seconds, without any message between replicas.

use model::{Result, Timestamp};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Mutex;

/// The longest time for which a value that was found stays cached, in milliseconds.
const FOUND_MS: i64 = 10_000;
/// The upper bound of the jitter subtracted from [`FOUND_MS`], so that entries cached at the same moment do not all
/// expire at once.
const JITTER_MS: u64 = 1_000;
/// How long the absence of a value stays cached, in milliseconds.
const MISSING_MS: i64 = 5_000;
/// Capacity for values that were found.
const MOST_FOUND: usize = 50_000;
/// Capacity for values that were not found. It is separate, so that a client that sends many invented keys neither
/// fills the memory nor evicts keys that exist.
const MOST_MISSING: usize = 10_000;
/// Minimum interval between sweeps of a full map for expired entries.
const SWEEP_MS: i64 = 1_000;
/// Number of locks that serialize reads, and so the most reads that run at once.
const READERS: usize = 64;

/// A cache with a time to live. The absence of a value is cached too, for a shorter time.
pub struct Cache<K, V> {
    found: RwLock<Memory<K, Arc<V>>>,
    missing: RwLock<Memory<K, ()>>,
    /// One lock per hash bucket of keys, held during a read from the database.
    readers: [Mutex<()>; READERS],
}

impl<K: Hash + Eq, V> Cache<K, V> {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self {
            found: Memory::new(MOST_FOUND),
            missing: Memory::new(MOST_MISSING),
            readers: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Returns the cached answer for `key`: `Some(Some(value))`, `Some(None)` if the value is known not to exist, or
    /// `None` if nothing is cached.
    pub fn get(&self, key: &K, now: Timestamp) -> Option<Option<Arc<V>>> {
        let now = now.millis();
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner).get(key, now).cloned();
        if found.is_some() {
            return Some(found);
        }
        self.missing.read().unwrap_or_else(PoisonError::into_inner).get(key, now).map(|()| None)
    }

    /// Returns the cached answer for `key`, or runs `read` and caches its result. Concurrent callers of an expired
    /// entry wait for a single read.
    ///
    /// # Errors
    /// Those of `read`; nothing is cached then.
    pub async fn get_or_read(
        &self,
        key: K,
        now: Timestamp,
        read: impl Future<Output = Result<Option<V>>>,
    ) -> Result<Option<Arc<V>>> {
        if let Some(known) = self.get(&key, now) {
            return Ok(known);
        }
        let reader = self.readers.get(usize::try_from(hash(&key) % READERS as u64).unwrap_or_default());
        let _reading = match reader {
            Some(reader) => Some(reader.lock().await),
            None => None,
        };
        // Another task may have filled the entry while this one waited for the lock.
        if let Some(known) = self.get(&key, now) {
            return Ok(known);
        }
        let value = read.await?.map(Arc::new);
        self.put(key, value.clone(), now);
        Ok(value)
    }

    /// Returns `true` if the last read found this value, even if the entry has expired since. Returns `false` once it
    /// was evicted.
    pub fn was_found(&self, key: &K) -> bool {
        self.found.read().unwrap_or_else(PoisonError::into_inner).entries.contains_key(key)
    }

    /// Caches a value, or its absence.
    pub fn put(&self, key: K, value: Option<Arc<V>>, now: Timestamp) {
        let now = now.millis();
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = value {
            // Derive the jitter from the key, which needs no source of randomness.
            let less = i64::try_from(hash(&key) % JITTER_MS).unwrap_or_default();
            found.put(key, value, now + FOUND_MS - less, now);
            return;
        }
        // A key is in one map only: otherwise `get` would go on returning the deleted value.
        found.entries.remove(&key);
        drop(found);
        let mut missing = self.missing.write().unwrap_or_else(PoisonError::into_inner);
        missing.put(key, (), now + MISSING_MS, now);
    }

    /// Removes all entries, so that the next read of each goes to the database.
    pub fn clear(&self) {
        self.found.write().unwrap_or_else(PoisonError::into_inner).entries.clear();
        self.missing.write().unwrap_or_else(PoisonError::into_inner).entries.clear();
    }
}

impl<K: Hash + Eq, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// A map with a bounded number of entries, each with an expiry time.
struct Memory<K, T> {
    entries: HashMap<K, (T, i64)>,
    most: usize,
    sweep_at_ms: i64,
}

impl<K: Hash + Eq, T> Memory<K, T> {
    fn new(most: usize) -> RwLock<Self> {
        RwLock::new(Self { entries: HashMap::new(), most, sweep_at_ms: 0 })
    }

    fn get(&self, key: &K, now: i64) -> Option<&T> {
        self.entries.get(key).filter(|(_, until_ms)| now < *until_ms).map(|(value, _)| value)
    }

    fn put(&mut self, key: K, value: T, until_ms: i64, now: i64) {
        if self.entries.len() >= self.most && now >= self.sweep_at_ms {
            self.sweep_at_ms = now + SWEEP_MS;
            self.entries.retain(|_, (_, until_ms)| now < *until_ms);
        }
        // A full map rejects new keys instead of evicting: the value is then read from the database each time.
        if self.entries.len() < self.most || self.entries.contains_key(&key) {
            self.entries.insert(key, (value, until_ms));
        }
    }
}

fn hash(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
        assert!(cache.was_found(&"a") && !cache.was_found(&"b"));
        cache.put("a", None, now);
        assert!(!cache.was_found(&"a"));
        assert!(cache.get(&"a", now).unwrap().is_none());
    }

    #[test]
    fn entries_of_one_moment_end_apart() {
        let cache = Cache::new();
        let now = Timestamp::from_millis(0);
        (0..100).for_each(|key| cache.put(key, Some(Arc::new(key)), now));
        let left =
            |ms: i64| (0..100).filter(|key| cache.get(key, Timestamp::from_millis(ms)).is_some()).count();
        assert_eq!((left(9_000), left(10_000)), (100, 0));
        assert!((20..80).contains(&left(9_500)), "{}", left(9_500));
    }

    #[test]
    fn what_does_not_exist_takes_no_room_of_what_does() {
        let cache = Cache::new();
        let now = Timestamp::from_millis(1_000);
        (0..MOST_MISSING * 2).for_each(|key| cache.put(key, None::<Arc<()>>, now));
        assert_eq!(cache.missing.read().unwrap().entries.len(), MOST_MISSING);
        (0..MOST_FOUND + 1).for_each(|key| cache.put(key, Some(Arc::new(())), now));
        assert!(cache.get(&7, now).unwrap().is_some());
        assert_eq!(cache.found.read().unwrap().entries.len(), MOST_FOUND);
        // Expired entries make room.
        cache.put(MOST_FOUND, Some(Arc::new(())), now.plus_seconds(10));
        assert!(cache.get(&MOST_FOUND, now.plus_seconds(10)).unwrap().is_some());
    }

    #[tokio::test]
    async fn one_reads_for_all_who_ask_at_once() {
        let cache = Cache::new();
        let now = Timestamp::from_millis(0);
        let reads = AtomicUsize::new(0);
        let ask = || {
            cache.get_or_read("a", now, async {
                reads.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                Ok(Some(1))
            })
        };
        let (one, two, three) = tokio::join!(ask(), ask(), ask());
        assert_eq!(reads.load(Ordering::SeqCst), 1);
        for answer in [one, two, three] {
            assert_eq!(answer.unwrap().as_deref(), Some(&1));
        }
        // After a failed read the next caller tries again.
        let failed = cache.get_or_read("b", now, async { Err(Error::internal("no database")) });
        assert!(failed.await.is_err());
        assert_eq!(cache.get_or_read("b", now, async { Ok(Some(2)) }).await.unwrap().as_deref(), Some(&2));
    }
}
