//! The adapter of the chat network.

use chatnet::{ChannelAdapter, NetworkError};
use model::{Code, Error};
use std::sync::Arc;

/// The adapter of the network, as a service for operations.
#[derive(Clone)]
pub struct Network(pub Arc<dyn ChannelAdapter>);

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Network")
    }
}

/// Converts an error of the network. For invalid input the message is the network's own; if the network could not be
/// reached, the code is `service_unavailable`.
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
