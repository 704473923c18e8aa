//! Arguments of operations: paths, queries, bodies, pages, and bodies that are read while they arrive.

pub(crate) mod arriving;
pub(crate) mod cursor;
pub(crate) mod input;
pub(crate) mod paging;
pub(crate) mod streamed;
pub(crate) mod version;
