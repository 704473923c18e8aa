//! Files of rows: what their bytes are, and how they are read. Imports and lists of recipients read them alike.
//!
//! [`encoding`] tells how the text is encoded, [`Dialect`] what stands between values, [`Rows`] reads CSV row by row, and
//! [`Values`] the elements of a JSON array.

mod dialect;
mod encoding;
mod json;
mod lines;
mod rows;

pub use dialect::{Dialect, refusal};
pub(crate) use encoding::fill;
pub use encoding::{SAMPLE, encoding};
pub use encoding_rs::Encoding;
pub(crate) use json::{Value as JsonValue, Values};
pub use lines::Lines;
pub use rows::{Fault, Row, Rows, is_short_of_a_quote};

/// The longest row or element, in bytes.
pub(crate) const LONGEST: usize = 2 << 20;
