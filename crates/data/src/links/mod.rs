//! Links from items to other objects.

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![]
}
