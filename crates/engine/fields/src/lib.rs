//! Fields and values: definitions, validation, formulas, filters and orders, without a database.
//!
//! A [`FieldSet`] says what records of one kind have. [`value::check`] gives a value the one form in which it is kept,
//! [`Filter`] tests a [`Record`] in memory, and [`key`] turns values into bytes that sort as the values do, which is
//! what indexes are made of. What callers send wrong comes back as an error with the path of the mistake.

mod column;
pub mod computed;
mod computed_error;
pub mod convert;
pub mod decimal;
mod entry;
pub mod equality;
mod field;
pub mod field_keys;
pub mod filter;
pub mod formula;
pub mod invisible;
pub mod json_schema;
pub mod key;
mod kind;
pub mod option_rules;
mod options;
pub mod phone;
mod problem;
mod record;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
pub mod saved;
mod set;
pub mod sort;
mod subject;
pub mod terms;
pub mod text;
mod unique;
pub mod usual_names;
pub mod value;
pub mod words;

pub use column::SystemColumn;
pub use computed_error::{ComputedError, ComputedErrors};
pub use entry::{EntrySearcher, Outcome, UNKNOWN, is_columnar, push_entry, value_of_entry};
pub use field::{Compiled, Field, TextForm};
pub use filter::Filter;
pub use kind::{Family, FieldType};
pub use options::{Cardinality, Choice, FieldOptions, OnDelete, RollupAggregate};
pub use problem::Problem;
pub use record::{ColumnValue, Columns, Data, Record};
pub use set::FieldSet;
pub use subject::{Part, Subject};
pub use unique::identity;
