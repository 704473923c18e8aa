//! Links between records: their rows, the locks that writing them takes, and the values of relation fields.

mod copies;
pub mod locks;
pub mod relation;
pub mod table;
mod trash;

pub use copies::{inline, targets_of};
pub use locks::{LockSet, hold};
pub(crate) use relation::take_references;
pub use relation::{differences, plan_locks, point};
pub(crate) use trash::CASCADE;
pub(crate) use trash::Fallout;
pub(crate) use trash::fallout;
pub(crate) use trash::let_go;
pub(crate) use trash::return_to;
pub(crate) use trash::take_back;
pub use trash::{cascade, forget, hold_leaving, hold_purged, hold_returning};
