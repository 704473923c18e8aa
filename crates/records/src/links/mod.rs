//! Links between records: their rows, the locks that writing them takes, and the values of relation fields.

mod copies;
pub mod locks;
pub mod relation;
pub mod table;
mod trash;

pub use copies::{inline, targets_of};
pub use locks::{LockSet, hold};
pub use relation::{differences, plan_locks, point, take_references};
pub use trash::{
    CASCADE, Fallout, cascade, fallout, forget, hold_leaving, hold_purged, hold_returning, let_go, return_to,
    take_back,
};
