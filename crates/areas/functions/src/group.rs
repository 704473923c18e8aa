//! Declares the group of functions.

use operation::{Group, Parts};

/// The group of functions.
pub const GROUP: Group = Group { declare: Ok, start: |_| Ok(Parts::default()) };
