//! New records: checked before a transaction, and stored many at a time.

pub(crate) mod new_item;
pub(crate) mod new_items;
pub(crate) mod new_rows;
pub(crate) mod stored_on_postgres;
pub(crate) mod stored_on_sqlite;
