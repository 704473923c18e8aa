//! The declaration of this group.

use crate::Media;
use operation::{Group, Parts};

/// The operations on files.
pub const GROUP: Group =
    Group { declare: |declarations| Ok(declarations.area::<Media>()), start: |_| Ok(Parts::default()) };
