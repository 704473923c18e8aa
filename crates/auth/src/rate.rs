//! Requests per minute: a window of sixty seconds that the first counted request opens (platform-billing.md C.3).

use model::Timestamp;
use redis::aio::ConnectionManager;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

const WINDOW_MS: i64 = 60_000;
const SHARDS: usize = 16;

/// Where a caller's window stands after its request was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The ceiling.
    pub limit: i64,
    /// Requests left.
    pub remaining: i64,
    /// Seconds until the window ends, 1 to 60.
    pub reset_seconds: i64,
    /// Whether this request is over the ceiling.
    pub exceeded: bool,
}

impl Window {
    fn new(limit: i64, used: i64, left_ms: i64) -> Self {
        Self {
            limit,
            remaining: (limit - used).max(0),
            reset_seconds: ((left_ms + 999) / 1000).clamp(1, 60),
            exceeded: used > limit,
        }
    }
}

/// The windows of all callers: in this process, or in Redis for all replicas together.
pub struct RateWindows {
    local: Vec<Mutex<HashMap<String, Cell>>>,
    hasher: RandomState,
    redis: Option<Shared>,
}

struct Shared {
    connection: ConnectionManager,
    script: redis::Script,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    opened_ms: i64,
    used: i64,
}

impl RateWindows {
    /// Windows of this process alone: exact where there is one replica.
    pub fn local() -> Self {
        let local = (0..SHARDS).map(|_| Mutex::new(HashMap::new())).collect();
        Self { local, hasher: RandomState::new(), redis: None }
    }

    /// Windows that all replicas share, exactly.
    ///
    /// # Errors
    /// When Redis cannot be reached.
    pub async fn shared(url: &str) -> redis::RedisResult<Self> {
        let connection = redis::Client::open(url)?.get_connection_manager().await?;
        // Counting and setting the end in one step: a counter without an end would lock its caller out for ever.
        let script = redis::Script::new(
            "local n = redis.call('INCR', KEYS[1]) \
             local t = redis.call('PTTL', KEYS[1]) \
             if t < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) t = tonumber(ARGV[1]) end \
             return {n, t}",
        );
        Ok(Self { redis: Some(Shared { connection, script }), ..Self::local() })
    }

    /// Counts one request of `caller` (a key's lineage, or an address) and says where its window stands.
    ///
    /// While Redis does not answer, each replica counts for itself: limits grow by the number of replicas, but
    /// never vanish.
    pub async fn count(&self, caller: &str, limit: i64, now: Timestamp) -> Window {
        if let Some(shared) = &self.redis {
            match shared.count(caller).await {
                Ok((used, left_ms)) => return Window::new(limit, used, left_ms),
                Err(error) => {
                    tracing::warn!(%error, "redis did not count a request; counting in this process");
                }
            }
        }
        self.count_locally(caller, limit, now)
    }

    fn count_locally(&self, caller: &str, limit: i64, now: Timestamp) -> Window {
        let now = now.millis();
        let place = usize::try_from(self.hasher.hash_one(caller) % SHARDS as u64).unwrap_or_default();
        let Some(shard) = self.local.get(place) else { return Window::new(limit, 1, WINDOW_MS) };
        let mut cells = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if cells.len() > 10_000 && !cells.contains_key(caller) {
            cells.retain(|_, cell| now < cell.opened_ms + WINDOW_MS);
        }
        if let Some(cell) = cells.get_mut(caller) {
            if now >= cell.opened_ms + WINDOW_MS {
                *cell = Cell { opened_ms: now, used: 0 };
            }
            cell.used += 1;
            return Window::new(limit, cell.used, cell.opened_ms + WINDOW_MS - now);
        }
        cells.insert(caller.to_owned(), Cell { opened_ms: now, used: 1 });
        Window::new(limit, 1, WINDOW_MS)
    }
}

impl Shared {
    async fn count(&self, caller: &str) -> redis::RedisResult<(i64, i64)> {
        let mut connection = self.connection.clone();
        self.script.key(format!("svc:rate:{caller}")).arg(WINDOW_MS).invoke_async(&mut connection).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_opens_with_the_first_request_and_ends_after_a_minute() {
        let windows = RateWindows::local();
        let start = Timestamp::from_millis(1_000);
        let at = |ms: i64| Timestamp::from_millis(1_000 + ms);
        assert_eq!(
            windows.count_locally("k", 2, start),
            Window { limit: 2, remaining: 1, reset_seconds: 60, exceeded: false }
        );
        assert_eq!(windows.count_locally("k", 2, at(500)).remaining, 0);
        let over = windows.count_locally("k", 2, at(59_001));
        assert!(over.exceeded);
        assert_eq!((over.remaining, over.reset_seconds), (0, 1));
        assert!(!windows.count_locally("other", 2, at(59_001)).exceeded);
        let next = windows.count_locally("k", 2, at(60_000));
        assert_eq!((next.remaining, next.reset_seconds, next.exceeded), (1, 60, false));
    }

    #[test]
    fn a_changed_limit_counts_at_once() {
        let windows = RateWindows::local();
        let now = Timestamp::from_millis(0);
        for _ in 0..5 {
            windows.count_locally("k", 100, now);
        }
        assert!(windows.count_locally("k", 5, now).exceeded);
        assert!(!windows.count_locally("k", 7, now).exceeded);
    }
}
