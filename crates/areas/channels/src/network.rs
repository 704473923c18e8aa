//! The chat network, as the operations and the worker reach it.

use chatnet::{ChannelAdapter, NetworkError};
use model::{Code, Error};
use std::sync::Arc;

/// The adapter of the network. A service that operations ask for.
#[derive(Clone)]
pub struct Network(pub Arc<dyn ChannelAdapter>);

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Network")
    }
}

/// Returns the error of a request that the network refused: the network's own words for a wrong input, and
/// `service_unavailable` if the network could not be reached.
pub fn refused(error: &NetworkError, param: &str) -> Error {
    if error.is_unauthorized {
        return Error::new(
            Code::ChannelDisconnected,
            "The network does not accept the channel's credentials.",
        );
    }
    if error.is_retryable {
        let seconds = error.retry_after.map_or(5, |wait| wait.as_secs().max(1));
        let unavailable = Error::new(Code::ServiceUnavailable, "The chat network cannot be reached.");
        return unavailable.retry_after(i64::try_from(seconds).unwrap_or(5));
    }
    Error::invalid(param, format!("is refused by the network: {}", error.message))
}
