//! Webhooks out: subscriptions of HTTPS endpoints and the engine that delivers to them.

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![]
}
