//! The event log: what is kept of an event and how it is read.

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![]
}
