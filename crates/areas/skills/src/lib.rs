//! Skills: procedures that agents load when they need them.

mod group;

pub use group::GROUP;
