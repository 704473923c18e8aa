//! Rate limits per minute. The first counted request opens a window of sixty seconds.

mod cells;
mod shared;
mod window;

pub use shared::ping;
pub use window::Window;

use cells::Cells;
use model::{Random, Timestamp};
use shared::Shared;
use std::net::{IpAddr, Ipv6Addr};

/// The rate windows of all callers, in the memory of this process or in Redis for all replicas together.
pub struct RateWindows {
    callers: Cells,
    /// Separate, because a client with many addresses can fill the set with its windows.
    addresses: Cells,
    shared: Option<Shared>,
}

impl RateWindows {
    /// Creates windows in this process only. Exact if there is a single replica.
    pub fn local() -> Self {
        Self { callers: Cells::new(), addresses: Cells::new(), shared: None }
    }

    /// Creates windows in Redis, which are exact across all replicas. Needs a tokio runtime for a task that registers
    /// this replica every few seconds. Redis need not be reachable yet; this waits for it only briefly.
    ///
    /// # Errors
    /// If the URL is not a Redis URL.
    pub async fn shared(url: &str, random: &dyn Random) -> redis::RedisResult<Self> {
        Ok(Self { shared: Some(Shared::open(url, random).await?), ..Self::local() })
    }

    /// Counts one request of `caller`, such as a key's lineage, and returns the state of its window.
    ///
    /// While Redis does not respond, each replica counts on its own and applies its share of `limit`: the limit
    /// divided by the last known number of replicas, and at least one request.
    pub async fn count(&self, caller: &str, limit: i64, now: Timestamp) -> Window {
        match self.count_shared(caller, now).await {
            Some((used, left_ms)) => Window::new(limit, used, left_ms),
            None => self.callers.count(caller, self.own_share(limit), now),
        }
    }

    /// Counts one request of an address at `door`, such as a request without a valid key.
    pub async fn count_address(&self, door: &str, peer: IpAddr, limit: i64, now: Timestamp) -> Window {
        let caller = address(door, peer);
        match self.count_shared(&caller, now).await {
            Some((used, left_ms)) => {
                self.addresses.note(&caller, used, left_ms, now);
                Window::new(limit, used, left_ms)
            }
            None => self.addresses.count(&caller, self.own_share(limit), now),
        }
    }

    /// Returns the window of an address that has used it up, as far as this process knows. Checked before any more
    /// expensive work. Does not count a request.
    pub fn used_up(&self, door: &str, peer: IpAddr, limit: i64, now: Timestamp) -> Option<Window> {
        self.addresses.used_up(&address(door, peer), self.own_share(limit), now)
    }

    /// Returns whether Redis responds, or `None` if Redis is not configured.
    pub fn redis_answers(&self) -> Option<bool> {
        self.shared.as_ref().map(Shared::answers)
    }

    async fn count_shared(&self, caller: &str, now: Timestamp) -> Option<(i64, i64)> {
        self.shared.as_ref()?.count(caller, now).await
    }

    /// Returns the limit that this process applies when it counts on its own.
    fn own_share(&self, limit: i64) -> i64 {
        match &self.shared {
            Some(shared) if !shared.answers() => shared.share_of(limit),
            _ => limit,
        }
    }
}

/// Returns the caller name of an address. IPv6 addresses count per /64 network, because a client usually controls all
/// of its network.
fn address(door: &str, peer: IpAddr) -> String {
    match peer.to_canonical() {
        IpAddr::V4(peer) => format!("{door}:{peer}"),
        IpAddr::V6(peer) => format!("{door}:{}/64", Ipv6Addr::from_bits(peer.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_caller() {
        let of = |text: &str| address("ip", text.parse().unwrap());
        assert_eq!(of("192.0.2.7"), "ip:192.0.2.7");
        assert_eq!(of("::ffff:192.0.2.7"), "ip:192.0.2.7");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "ip:2001:db8:1:2::/64");
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    }
}
