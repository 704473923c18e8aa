//! Rows of records: reading, locking and writing them.

mod change;
mod create;
mod editor;
mod fetch;
mod find;
mod keys;
mod lookup;
mod new_item;
mod new_items;
pub mod order;
mod pick;
mod place;
pub mod purge;
mod removal;
mod reshape;
mod row;
mod stored;
pub mod values;
pub mod write;

pub use lookup::matching;

pub use change::ItemChange;
pub use create::create_ready;
pub use editor::Editor;
pub use fetch::{TestedRow, by_ids, live_by_ids, tested_rows};
pub use find::{
    count_comment, expect_version, find, find_all_locked, find_locked, find_with_shape, hold_free,
    holder_of_key, live, live_among, lock, locked, refuse_locked, titles,
};
pub use keys::{digest, holder, holder_of_value, reindex};
pub(crate) use keys::{digests, index_keys};
pub use lookup::lookahead::holders_of_values;
pub use new_item::{Creation, NewItem, PreparedItem};
pub use pick::pick;
pub use row::ItemRow;
pub(crate) use stored::new_rows::KeyRow;
pub(crate) use stored::store::key_rows;

pub use values::{Missing, merge};
pub use write::{Draft, Writer, Written};
