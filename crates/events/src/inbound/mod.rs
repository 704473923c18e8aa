//! Webhooks in: URLs that outside systems post to.

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![]
}
