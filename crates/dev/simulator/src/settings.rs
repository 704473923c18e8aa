//! The settings of a simulator.

use model::{Clock, Random as _, SystemClock, SystemRandom};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The settings of a simulator. The defaults suit both tests and the demo.
#[derive(Clone)]
pub struct Settings {
    /// The address to listen on, which must be a loopback address. Port 0 selects any free port.
    pub listen: SocketAddr,
    /// The seed of ids and faults.
    pub seed: u64,
    /// The base clock, which the simulator's clock follows until it is advanced.
    pub clock: Arc<dyn Clock>,
    /// The callback URL of the number. It can be registered later.
    pub callback_url: Option<String>,
    /// The secret that signs callbacks.
    pub app_secret: String,
    /// The token that verifies the callback URL.
    pub verify_token: String,
    /// The bearer token of requests.
    pub access_token: String,
    /// The id of the number.
    pub number_id: String,
    /// The id of the business, which owns templates.
    pub business_id: String,
    /// The number in display format, as digits.
    pub display_number: String,
    /// The name of the business.
    pub verified_name: String,
    /// Whether to enforce the network's rate limits, of the number and to one recipient.
    pub rates: bool,
    /// The number of recipients that may be written to first within 24 hours.
    pub daily_recipients: Option<usize>,
    /// When a template is approved after its submission. `None` waits for a manual review.
    pub approve_after: Option<Duration>,
    /// The delay between `sent` and `delivered`.
    pub deliver_after: Duration,
    /// The maximum number of accepted messages kept. The oldest are removed.
    pub transcript_limit: usize,
    /// The maximum number of files kept. The oldest are removed.
    pub media_limit: usize,
    /// The number of concurrent callbacks. With 1 they arrive in order.
    pub callback_connections: usize,
    /// The maximum number of messages and statuses in one callback. Waiting parts share a callback; with 1 each has
    /// its own.
    pub callback_batch: usize,
    /// The number of server threads.
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
    /// Returns a random seed. Two simulators with the same seed use the same ids, so a service with stored messages
    /// would mistake those of the second for duplicates.
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

/// The data to connect a channel to the simulator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// The base URL of the network's API.
    pub base_url: String,
    /// The id of the number.
    pub number_id: String,
    /// The id of the business.
    pub business_id: String,
    /// The bearer token of requests.
    pub access_token: String,
    /// The secret that signs callbacks.
    pub app_secret: String,
    /// The token that verifies the callback URL.
    pub verify_token: String,
    /// The URL of the page where a person chats as a customer.
    pub page: String,
}

impl Connection {
    /// Returns the account for an adapter.
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

/// The service that the page's business side uses.
#[derive(Clone)]
pub struct Service {
    /// The base URL of its API, such as `http://127.0.0.1:8080/api/v1`.
    pub base_url: String,
    /// A key with the scopes `contacts:read`, `conversations:read` and `handoff:manage`. The page never receives it.
    pub key: String,
}

/// Omits the key.
impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

/// The reason why a simulator cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The address is not a loopback address. The simulator has no authentication, so it must not be reachable from
    /// elsewhere.
    NotLoopback(SocketAddr),
    /// The address cannot be used.
    Listen(std::io::Error),
    /// The client for callbacks cannot be created.
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
