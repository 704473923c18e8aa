//! Inputs of operations: paths, queries, bodies, pages, and bytes that arrive.

pub(crate) mod arriving;
pub(crate) mod cursor;
pub(crate) mod input;
pub(crate) mod paging;
pub(crate) mod streamed;
pub(crate) mod version;
