//! Files of rows, for imports and for lists of recipients.
//!
//! [`encoding`](mod@encoding) detects the text encoding and [`Dialect`] the delimiter. [`Rows`] reads CSV row by row, and
//! [`Values`] reads the elements of a JSON array.

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

/// The maximum length of a row or an element, in bytes.
pub(crate) const LONGEST: usize = 2 << 20;
