//! Requests per minute: a window of sixty seconds that the first counted request opens (platform-billing.md C.3).

mod cells;
mod shared;
mod window;

pub use shared::ping;
pub use window::Window;

use cells::Cells;
use model::{Random, Timestamp};
use shared::Shared;
use std::net::{IpAddr, Ipv6Addr};

/// The windows of all callers: in this process, or in Redis for all replicas together.
pub struct RateWindows {
    callers: Cells,
    /// Apart from the others, because whoever has many addresses can make many windows.
    addresses: Cells,
    shared: Option<Shared>,
}

impl RateWindows {
    /// Windows of this process alone: exact where there is one replica.
    pub fn local() -> Self {
        Self { callers: Cells::new(), addresses: Cells::new(), shared: None }
    }

    /// Windows that all replicas share, exactly. Needs a tokio runtime, on which the replica says every few seconds
    /// that it is there. Redis need not answer yet; it is waited for no longer than a moment.
    ///
    /// # Errors
    /// When the URL is none of Redis.
    pub async fn shared(url: &str, random: &dyn Random) -> redis::RedisResult<Self> {
        Ok(Self { shared: Some(Shared::open(url, random).await?), ..Self::local() })
    }

    /// Counts one request of `caller`, such as a key's lineage, and says where its window stands.
    ///
    /// While Redis does not answer, each replica counts for itself and gives its share of `limit`: as much as there
    /// were replicas when Redis was last heard of, and at least one request.
    pub async fn count(&self, caller: &str, limit: i64, now: Timestamp) -> Window {
        match self.count_shared(caller, now).await {
            Some((used, left_ms)) => Window::new(limit, used, left_ms),
            None => self.callers.count(caller, self.own_share(limit), now),
        }
    }

    /// Counts one request of an address at `door`, such as one without a valid key.
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

    /// The window of an address that has used it up, as far as this process knows: asked before anything is done that
    /// costs more than the answer. Counts nothing.
    pub fn used_up(&self, door: &str, peer: IpAddr, limit: i64, now: Timestamp) -> Option<Window> {
        self.addresses.used_up(&address(door, peer), self.own_share(limit), now)
    }

    /// Whether Redis answers; `None` where there is none.
    pub fn redis_answers(&self) -> Option<bool> {
        self.shared.as_ref().map(Shared::answers)
    }

    async fn count_shared(&self, caller: &str, now: Timestamp) -> Option<(i64, i64)> {
        self.shared.as_ref()?.count(caller, now).await
    }

    /// What this process may let through by itself.
    fn own_share(&self, limit: i64) -> i64 {
        match &self.shared {
            Some(shared) if !shared.answers() => shared.share_of(limit),
            _ => limit,
        }
    }
}

/// An address as a caller. Of IPv6 the network counts, since whoever has one address there has 2^64.
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
