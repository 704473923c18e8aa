//! The check of the numbers over which workspaces talk to their contacts.

use super::Finding;
use crate::Config;
use crate::cli::channel::{network, said};
use crate::database::backend;
use crate::operator_error::cause;
use crate::secret_key::Keys;
use auth::{Seal, installed_keys};
use channels::{ChannelProvider, ChannelStatus, list};
use chatnet::ChannelAdapter;
use futures::future::join_all;
use store::Db;

/// The most channels that are asked about. They are asked at once, within the time of one check.
const MOST: usize = 50;

/// Does the network accept the credentials of each channel that is not disabled?
pub(super) async fn channels(config: &Config, opened: Option<Db>) -> anyhow::Result<Finding> {
    let Some(db) = opened else {
        return Ok(Finding::warn("Not checked, because the database is not ready."));
    };
    let mut rows = db.read(list).await.map_err(cause)?;
    rows.retain(|row| row.summary().status != ChannelStatus::Disabled);
    if rows.is_empty() {
        return Ok(Finding::ok("No channel is connected."));
    }
    // The demo lets its own simulator be reached, which no setting says.
    if config.allow_outbound.is_empty() {
        rows.retain(|row| row.summary().provider != ChannelProvider::Simulator);
    }
    if rows.is_empty() {
        return Ok(Finding::ok(
            "Only a simulated network is connected. `svc serve --demo` reaches its own; another one needs SVC_ALLOW_OUTBOUND.",
        ));
    }
    let keys = Keys::read(config, &backend(config)?)?;
    let installed = db.read(installed_keys).await.map_err(cause)?;
    let Some((keys, installed)) = keys.zip(installed) else {
        return Ok(Finding::fail("The credentials cannot be opened without the secret key."));
    };
    let (active, other) = keys.chosen(&installed)?;
    let (seal, network) = (Seal::with_keys(active, other), network(config)?);
    let all = rows.len();
    let asked = rows.iter().take(MOST).map(async |row| {
        let problem = match row.account(&seal) {
            Ok(account) => network.health(&account).await.err().map(|error| said(&error)),
            Err(_) => Some("the credentials cannot be opened".to_owned()),
        };
        problem.map(|problem| format!("channel {}, {}: {problem}.", row.id(), row.summary().name))
    });
    let problems: Vec<String> = join_all(asked).await.into_iter().flatten().collect();
    Ok(match (problems.is_empty(), all.saturating_sub(MOST)) {
        (true, 0) => Finding::ok(format!("The network accepts the credentials of all channels: {all}.")),
        (true, others) => {
            Finding::ok(format!("The network accepts those of {MOST} channels; {others} were not checked."))
        }
        (false, _) => Finding::fail(format!(
            "{} `svc channel connect` gives a channel new credentials.",
            problems.join(" ")
        )),
    })
}
