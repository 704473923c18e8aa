//! Declares the group of skills.

use operation::{Group, Parts};

/// The group of skills.
pub const GROUP: Group = Group { declare: Ok, start: |_| Ok(Parts::default()) };
