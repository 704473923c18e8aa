//! Functions as they are written: drafts, published versions, and the operations on them.

mod breaking;
pub(crate) mod compile;
pub(crate) mod model;
pub(crate) mod operations;
pub(crate) mod publish;
pub(crate) mod settings;
pub(crate) mod versions;
