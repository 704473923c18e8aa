//! Collections: what shape items have, and how they are looked at.

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![]
}
