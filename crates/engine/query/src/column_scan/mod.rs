//! Scans of [columnar indexes](records::columnar): conditions are tested on whole columns, which are kept in memory.

mod cache;
mod filter;
mod scan;
mod selected;
mod top;

pub(crate) use cache::ColumnCache;
pub(crate) use scan::{Changed, Columnar};
pub(crate) use selected::SelectedRows;
