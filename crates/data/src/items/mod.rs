//! Items: the rows of collections.

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![]
}
