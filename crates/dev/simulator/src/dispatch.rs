//! Delivery of callbacks.

use crate::world::{Callback, Shared};
use chatnet::{SIGNATURE_HEADER, sign};
use egress::{Connector, Limits, Request};
use futures::StreamExt;
use model::Clock;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a callback.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a part that is held back waits for a later one.
const LONELY: Duration = Duration::from_millis(30);

/// Poll interval, because a base clock that the test moves sends no notification.
const LOOK: Duration = Duration::from_millis(10);

/// Delivers due callbacks, forever.
pub(crate) async fn run(shared: Arc<Shared>, connector: Connector) {
    let mut moves = shared.clock.moves();
    loop {
        let (callbacks, due, connections, is_holding) = {
            let mut world = shared.lock();
            let now = world.now();
            let before = world.queue.len();
            let callbacks = world.take_due(now);
            world.underway += callbacks.len();
            if world.queue.len() != before {
                shared.progress.send_replace(());
            }
            let is_holding = !world.held.is_empty() || !world.joining.is_empty();
            (callbacks, world.queue.next(), world.settings.callback_connections.max(1), is_holding)
        };
        if !callbacks.is_empty() {
            deliver(&shared, &connector, callbacks, connections).await;
            continue;
        }
        if due.is_some_and(|due| due <= shared.clock.now()) {
            // `take_due` limits the work of one call, so more may be due.
            continue;
        }
        let wait = match (is_holding, due) {
            (true, _) => LONELY,
            (false, Some(_)) => LOOK,
            (false, None) => Duration::from_secs(3600),
        };
        tokio::select! {
            () = shared.wake.notified() => {}
            changed = moves.changed() => {
                // The sender of the clock lives as long as `shared`, so this is no error.
                let _ = changed;
            }
            () = tokio::time::sleep(wait) => {
                if is_holding {
                    let late = {
                        let mut world = shared.lock();
                        let late = world.release_held();
                        world.underway += late.len();
                        late
                    };
                    deliver(&shared, &connector, late, connections).await;
                }
            }
        }
    }
}

async fn deliver(shared: &Arc<Shared>, connector: &Connector, callbacks: Vec<Callback>, connections: usize) {
    futures::stream::iter(callbacks)
        .for_each_concurrent(connections, |callback| async {
            let is_taken = post(shared, connector, &callback).await;
            shared.change(|world| {
                world.underway = world.underway.saturating_sub(1);
                let now = world.now();
                world.answered(callback, is_taken, now);
            });
        })
        .await;
}

/// Sends a callback. Returns whether the response was 200.
async fn post(shared: &Shared, connector: &Connector, callback: &Callback) -> bool {
    let target = {
        let world = shared.lock();
        world
            .numbers
            .get(&callback.number_id)
            .and_then(|number| Some((number.callback_url.clone()?, number.app_secret.clone())))
    };
    let Some((url, secret)) = target else { return true };
    let secret = if callback.is_badly_signed { format!("not {secret}") } else { secret };
    let request = Request::post(url, callback.body.clone())
        .header("content-type", "application/json")
        .header(SIGNATURE_HEADER, sign(&secret, &callback.body))
        .limits(Limits { total: PATIENCE, ..Limits::default() });
    match connector.send(request).await {
        Ok(response) if response.status == 200 => true,
        Ok(response) => {
            tracing::debug!(status = response.status, "a callback was not taken");
            false
        }
        Err(error) => {
            tracing::debug!(%error, "a callback was not answered");
            false
        }
    }
}
