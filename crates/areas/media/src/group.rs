//! What the operations on files add to the service.

use crate::Media;
use operation::{Group, Parts};

/// Files of a workspace.
pub const GROUP: Group =
    Group { declare: |declarations| Ok(declarations.area::<Media>()), start: |_| Ok(Parts::default()) };
