//! Connection of a service to the simulator: the data of its channel, and the network's handshake.

use crate::control_error::ControlError;
use crate::settings::Connection;
use crate::world::Shared;
use egress::{Connector, Request, Url};

/// Returns the data to connect a channel to the number of the settings.
pub(crate) fn connection(shared: &Shared) -> Connection {
    let world = shared.lock();
    let settings = &world.settings;
    Connection {
        base_url: format!("{}/v23.0", shared.origin),
        number_id: settings.number_id.clone(),
        business_id: settings.business_id.clone(),
        access_token: settings.access_token.clone(),
        app_secret: settings.app_secret.clone(),
        verify_token: settings.verify_token.clone(),
        page: shared.origin.clone(),
    }
}

/// Verifies a callback URL with the network's handshake.
pub(crate) async fn verify(connector: &Connector, url: &str, verify_token: &str) -> Result<(), ControlError> {
    const CHALLENGE: &str = "1158201444";
    let mut with_query = Url::parse(url).map_err(|_| ControlError::invalid("The URL is malformed."))?;
    with_query
        .query_pairs_mut()
        .append_pair("hub.mode", "subscribe")
        .append_pair("hub.challenge", CHALLENGE)
        .append_pair("hub.verify_token", verify_token);
    let answer = connector.send(Request::get(with_query.as_str())).await;
    let answer =
        answer.map_err(|error| ControlError::invalid(format!("The URL does not answer: {error}.")))?;
    if answer.status == 200 && answer.body.as_ref() == CHALLENGE.as_bytes() {
        return Ok(());
    }
    let message = format!("The URL answered {} and not with the challenge.", answer.status);
    Err(ControlError::invalid(message))
}
