//! Windows in Redis, which all replicas share.
//!
//! Nothing here may make a request wait: what Redis does not answer within a moment is counted by the caller, and then
//! Redis is asked once a second until it answers again.

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

/// How long a request waits for Redis.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a connection may take, which no request waits for.
const CONNECTING: Duration = Duration::from_secs(1);
/// After which silence of the other end a connection is given up.
const DEAD_AFTER: Duration = Duration::from_secs(5);
/// How long Redis is left alone after it did not answer.
const PAUSE_MS: i64 = 1_000;
/// How often a replica says that it is there.
const BEAT: Duration = Duration::from_secs(5);
/// After how many seconds without a word it is taken for gone.
const GONE_SECONDS: i64 = 16;

/// Counting and setting the end in one step: a counter without an end would lock its caller out for ever.
const COUNT: &str = "local n = redis.call('INCR', KEYS[1]) \
    local t = redis.call('PTTL', KEYS[1]) \
    if t < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) t = tonumber(ARGV[1]) end \
    return {n, t}";

/// Gives the number of replicas that have said lately that they are there, by Redis's own clock.
const BE_THERE: &str = "local now = tonumber(redis.call('TIME')[1]) \
    redis.call('ZADD', KEYS[1], now, ARGV[1]) \
    redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2])) \
    redis.call('EXPIRE', KEYS[1], 60) \
    return redis.call('ZCARD', KEYS[1])";

/// The windows, and the replicas that count in them.
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

/// The way to Redis, and what is known of it.
struct Link {
    connection: ConnectionManager,
    answers: AtomicBool,
    /// Not to be asked earlier, while it does not answer.
    ask_at_ms: AtomicI64,
    replicas: AtomicI64,
}

/// Whether the Redis at `url` answers at this moment. Changes nothing there.
///
/// # Errors
/// When the URL is none of Redis, or Redis does not answer.
pub async fn ping(url: &str) -> RedisResult<()> {
    let config =
        ConnectionManagerConfig::new().set_number_of_retries(0).set_connection_timeout(Some(CONNECTING));
    let mut connection = ConnectionManager::new_with_config(Client::open(url)?, config).await?;
    redis::cmd("PING").query_async(&mut connection).await
}

impl Shared {
    /// Connects as soon as Redis can be reached.
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
        link.be_there(&script, &replica).await;
        let beating = tokio::spawn(beat(link.clone(), script, replica));
        Ok(Self { link, count: Script::new(COUNT), beating })
    }

    /// Counts one request: how many the window has now, and how many milliseconds it has left. `None` where Redis does
    /// not answer.
    pub(super) async fn count(&self, caller: &str, now: Timestamp) -> Option<(i64, i64)> {
        if !self.link.may_be_queried(now.millis()) {
            return None;
        }
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
        self.link.ask_at_ms.store(now.millis() + PAUSE_MS, Ordering::Relaxed);
        self.link.did_not_answer(failure);
        None
    }

    /// What one replica of those that were last heard of may let through of a common `limit`.
    pub(super) fn share_of(&self, limit: i64) -> i64 {
        (limit / self.link.replicas.load(Ordering::Relaxed).max(1)).max(1)
    }

    pub(super) fn answers(&self) -> bool {
        self.link.answers.load(Ordering::Relaxed)
    }
}

impl Link {
    /// While Redis does not answer, one request in a second tries, and the others do not wait for it.
    fn may_be_queried(&self, now: i64) -> bool {
        if self.answers.load(Ordering::Relaxed) {
            return true;
        }
        let at = self.ask_at_ms.load(Ordering::Relaxed);
        let next = now + PAUSE_MS;
        now >= at && self.ask_at_ms.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn did_answer(&self) {
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
