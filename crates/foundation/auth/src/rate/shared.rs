//! Rate windows in Redis, shared by all replicas.
//!
//! No request may wait for a broken Redis. If Redis does not respond within 100 ms, the replica counts on its own and
//! then retries Redis once a second.

use super::window::WINDOW_MS;
use model::{Random, Timestamp};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{Client, IntoConnectionInfo, RedisResult, Script};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

/// How long a request waits for a response of Redis.
const PATIENCE: Duration = Duration::from_millis(100);
/// Timeout for a new connection. No request waits for this.
const CONNECTING: Duration = Duration::from_secs(1);
/// TCP user timeout: a connection without acknowledgements for this long is closed.
const DEAD_AFTER: Duration = Duration::from_secs(5);
/// Interval between attempts while Redis does not respond.
const PAUSE_MS: i64 = 1_000;
/// Interval of heartbeats of a replica.
const BEAT: Duration = Duration::from_secs(5);
/// Time after which a replica without a heartbeat no longer counts, in seconds.
const GONE_SECONDS: i64 = 16;

/// Increments the counter and sets its expiry in one atomic step. A counter without expiry would lock its caller out
/// forever.
const COUNT: &str = "local n = redis.call('INCR', KEYS[1]) \
    local t = redis.call('PTTL', KEYS[1]) \
    if t < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) t = tonumber(ARGV[1]) end \
    return {n, t}";

/// Records a heartbeat and returns the number of live replicas, by the clock of Redis.
const BE_THERE: &str = "local now = tonumber(redis.call('TIME')[1]) \
    redis.call('ZADD', KEYS[1], now, ARGV[1]) \
    redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2])) \
    redis.call('EXPIRE', KEYS[1], 60) \
    return redis.call('ZCARD', KEYS[1])";

/// The rate windows in Redis, and the heartbeat of this replica.
pub(super) struct Shared {
    link: Arc<Link>,
    count: Script,
    beating: JoinHandle<()>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

/// The connection to Redis and its state.
struct Link {
    connection: ConnectionManager,
    answers: AtomicBool,
    /// Time of the next attempt while Redis does not respond.
    ask_at_ms: AtomicI64,
    replicas: AtomicI64,
}

/// Checks that the Redis at `url` responds. Changes nothing there.
///
/// # Errors
/// If the URL is not a Redis URL, or Redis does not respond.
pub async fn ping(url: &str) -> RedisResult<()> {
    let config =
        ConnectionManagerConfig::new().set_number_of_retries(0).set_connection_timeout(Some(CONNECTING));
    let mut connection = ConnectionManager::new_with_config(Client::open(url)?, config).await?;
    redis::cmd("PING").query_async(&mut connection).await
}

impl Shared {
    /// Creates a connection that connects in the background, and starts the heartbeat.
    pub(super) async fn open(url: &str, random: &dyn Random) -> RedisResult<Self> {
        let tcp = TcpSettings::default().set_nodelay(true).set_user_timeout(DEAD_AFTER);
        let client = Client::open(url.into_connection_info()?.set_tcp_settings(tcp))?;
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(CONNECTING))
            .set_response_timeout(Some(PATIENCE));
        let link = Arc::new(Link {
            connection: ConnectionManager::new_lazy_with_config(client, config)?,
            answers: AtomicBool::new(true),
            ask_at_ms: AtomicI64::new(0),
            replicas: AtomicI64::new(1),
        });
        let mut name = [0; 8];
        random.fill(&mut name);
        let replica = format!("{:016x}", u64::from_be_bytes(name));
        let script = Script::new(BE_THERE);
        // Send the first heartbeat now, so that the number of replicas is known before a request needs its share.
        link.be_there(&script, &replica).await;
        let beating = tokio::spawn(beat(link.clone(), script, replica));
        Ok(Self { link, count: Script::new(COUNT), beating })
    }

    /// Counts one request. Returns the requests in the window and its remaining milliseconds, or `None` if Redis does
    /// not respond.
    pub(super) async fn count(&self, caller: &str, now: Timestamp) -> Option<(i64, i64)> {
        if !self.link.may_be_queried(now.millis()) {
            return None;
        }
        // Clones share one connection, on which requests are pipelined.
        let mut connection = self.link.connection.clone();
        let mut counting = self.count.key(format!("svc:rate:{caller}"));
        let asked = timeout(PATIENCE, counting.arg(WINDOW_MS).invoke_async(&mut connection));
        let failure = match asked.await {
            Ok(Ok(counted)) => {
                self.link.did_answer();
                return Some(counted);
            }
            Ok(Err(error)) => error.to_string(),
            Err(elapsed) => elapsed.to_string(),
        };
        // Start the pause now: other requests must not wait for Redis too.
        self.link.ask_at_ms.store(now.millis() + PAUSE_MS, Ordering::Relaxed);
        self.link.did_not_answer(failure);
        None
    }

    /// Returns the share of a common `limit` for one of the replicas that were last known.
    pub(super) fn share_of(&self, limit: i64) -> i64 {
        (limit / self.link.replicas.load(Ordering::Relaxed).max(1)).max(1)
    }

    pub(super) fn answers(&self) -> bool {
        self.link.answers.load(Ordering::Relaxed)
    }
}

impl Link {
    /// Returns whether a request may use Redis. While Redis does not respond, only one request per second tries.
    fn may_be_queried(&self, now: i64) -> bool {
        if self.answers.load(Ordering::Relaxed) {
            return true;
        }
        let at = self.ask_at_ms.load(Ordering::Relaxed);
        let next = now + PAUSE_MS;
        now >= at && self.ask_at_ms.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn did_answer(&self) {
        // Load first: a swap on every request would make the threads compete for the cache line.
        if !self.answers.load(Ordering::Relaxed) && !self.answers.swap(true, Ordering::Relaxed) {
            tracing::info!("redis answers again");
        }
    }

    fn did_not_answer(&self, error: impl Display) {
        if self.answers.swap(false, Ordering::Relaxed) {
            let replicas = self.replicas.load(Ordering::Relaxed);
            tracing::warn!(%error, replicas, "redis does not answer; each replica counts its share of requests");
        }
    }

    async fn be_there(&self, script: &Script, replica: &str) {
        let mut connection = self.connection.clone();
        let mut saying = script.key("svc:replicas");
        match saying.arg(replica).arg(GONE_SECONDS).invoke_async(&mut connection).await {
            Ok(replicas) => {
                self.replicas.store(replicas, Ordering::Relaxed);
                self.did_answer();
            }
            Err(error) => self.did_not_answer(error),
        }
    }
}

async fn beat(link: Arc<Link>, script: Script, replica: String) {
    let mut beats = interval_at(Instant::now() + BEAT, BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        link.be_there(&script, &replica).await;
    }
}
