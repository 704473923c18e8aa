//! What a simulator is started with.

use model::{Clock, Random as _, SystemClock, SystemRandom};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// What a simulator is started with. The default suits tests and the demo alike.
#[derive(Clone)]
pub struct Settings {
    /// Where to listen; loopback addresses only. Port 0 for any free port.
    pub listen: SocketAddr,
    /// Makes ids, and decides which messages meet a fault.
    pub seed: u64,
    /// The time that the simulator's own clock goes by until it is moved.
    pub clock: Arc<dyn Clock>,
    /// Where callbacks of the number go. Can be registered later.
    pub callback_url: Option<String>,
    /// Signs callbacks.
    pub app_secret: String,
    /// Answered by the service when a callback URL is verified.
    pub verify_token: String,
    /// The token that requests must carry.
    pub access_token: String,
    /// The number's id.
    pub number_id: String,
    /// The id of the business, which owns templates.
    pub business_id: String,
    /// The number as people read it, in digits.
    pub display_number: String,
    /// The business's name.
    pub verified_name: String,
    /// Whether messages per second, of the number and to one recipient, are limited as by the network.
    pub rates: bool,
    /// How many recipients may be written to first within 24 hours.
    pub daily_recipients: Option<usize>,
    /// How long after its submission a template is approved. `None`: it waits for a review by hand.
    pub approve_after: Option<Duration>,
    /// How long after `sent` a message is `delivered`.
    pub deliver_after: Duration,
    /// Accepted messages that are kept; the oldest are forgotten.
    pub transcript_limit: usize,
    /// Files that are kept; the oldest are forgotten.
    pub media_limit: usize,
    /// Callbacks that are under way at the same time. With 1 they arrive in order.
    pub callback_connections: usize,
    /// The most messages and statuses in one callback. They are put together when they wait; with 1 each is alone.
    pub callback_batch: usize,
    /// Threads that answer requests.
    pub workers: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            seed: 1,
            clock: Arc::new(SystemClock),
            callback_url: None,
            app_secret: "simulated-app-secret".to_owned(),
            verify_token: "simulated-verify-token".to_owned(),
            access_token: "simulated-access-token".to_owned(),
            number_id: "106540352242922".to_owned(),
            business_id: "102290129340398".to_owned(),
            display_number: "15550783881".to_owned(),
            verified_name: "Simulated shop".to_owned(),
            rates: true,
            daily_recipients: None,
            approve_after: Some(Duration::from_secs(3)),
            deliver_after: Duration::ZERO,
            transcript_limit: 100_000,
            media_limit: 10_000,
            callback_connections: 1,
            callback_batch: 50,
            workers: 1,
        }
    }
}

impl Settings {
    /// A seed that differs at each call. A service that keeps what it received takes the messages of a second simulator
    /// with the same seed for those of the first, because their ids are the same.
    #[must_use]
    pub fn random_seed() -> u64 {
        let mut bytes = [0; 4];
        SystemRandom::default().fill(&mut bytes);
        u32::from_be_bytes(bytes).into()
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("listen", &self.listen)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// What a channel needs to be connected to the simulator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// Where the network's API is.
    pub base_url: String,
    /// The number's id.
    pub number_id: String,
    /// The id of the business.
    pub business_id: String,
    /// The token that requests carry.
    pub access_token: String,
    /// Signs callbacks.
    pub app_secret: String,
    /// Asked for when a callback URL is verified.
    pub verify_token: String,
    /// The page on which a person chats as a customer.
    pub page: String,
}

impl Connection {
    /// The same for an adapter.
    #[must_use]
    pub fn account(&self) -> chatnet::Account {
        chatnet::Account {
            base_url: self.base_url.clone(),
            number_id: self.number_id.clone(),
            business_id: self.business_id.clone(),
            access_token: self.access_token.clone(),
        }
    }
}

/// The service on whose behalf the page's business side reads and writes.
#[derive(Clone)]
pub struct Service {
    /// Where its API is, such as `http://127.0.0.1:8080/api/v1`.
    pub base_url: String,
    /// A key with the scopes `contacts:read`, `conversations:read` and `handoff:manage`. No page gets it.
    pub key: String,
}

/// Without the key.
impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

/// Why a simulator cannot be started.
#[derive(Debug)]
pub enum StartError {
    /// It has no protection of its own, so it serves this machine only.
    NotLoopback(SocketAddr),
    /// The address cannot be used.
    Listen(std::io::Error),
    /// The client of callbacks cannot be made.
    Client(egress::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotLoopback(address) => {
                write!(f, "{address} is not a loopback address, and the simulator serves this machine only")
            }
            Self::Listen(error) => write!(f, "the address cannot be used: {error}"),
            Self::Client(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for StartError {}
