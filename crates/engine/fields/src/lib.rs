//! Fields and values: definitions, validation, formulas, filters and orders, without a database.
//!
//! A [`FieldSet`] says what records of one kind have. [`value::check`] gives a value the one form in which it is kept,
//! [`Filter`] tests a [`Record`] in memory, and [`key`] turns values into bytes that sort as the values do, which is
//! what indexes are made of. What callers send wrong comes back as an error with the path of the mistake.

mod checking;
pub mod computed;
mod definitions;
mod entry;
mod expression;
pub mod filter;
pub mod formula;
pub mod key;
mod record;
pub mod saved;
mod search;
pub mod sort;
mod values;

pub use checking::{convert, value};
#[cfg(any(test, feature = "samples"))]
pub use definitions::sample;
pub use definitions::{field_keys, option_rules};
pub use expressions::{decimal, equality, text};
pub use search::{terms, usual_names, words};
pub use values::{invisible, json_schema, phone};

pub use definitions::column::SystemColumn;
pub use definitions::field::{Compiled, Field, TextForm};
pub use definitions::options::{Cardinality, Choice, FieldOptions, OnDelete, RollupAggregate};
pub use definitions::set::FieldSet;
pub use definitions::subject::{Part, Subject};
pub use definitions::unique::identity;
pub use entry::{EntrySearcher, Outcome, UNKNOWN, is_columnar, push_entry, value_of_entry};
pub use filter::Filter;
pub use record::{ColumnValue, Columns, Data, Record};
pub use values::computed_error::{ComputedError, ComputedErrors};
pub use values::kind::{Family, FieldType};
pub use values::problem::Problem;
