//! Scans of [columnar indexes](records::columnar): conditions are evaluated on whole columns, which are cached in
//! memory.

mod cache;
mod filter;
mod scan;
mod selected;
mod top;

pub(crate) use cache::ColumnCache;
pub(crate) use scan::{Changed, Columnar};
pub(crate) use selected::SelectedRows;
