//! Declares the group of the workbench.

use crate::Workbench;
use operation::{Group, Parts};

/// The group of the workbench.
pub const GROUP: Group =
    Group { declare: |declarations| Ok(declarations.area::<Workbench>()), start: |_| Ok(Parts::default()) };
