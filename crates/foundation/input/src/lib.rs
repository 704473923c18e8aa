//! Parsing of client input: JSON whose numbers keep their digits, errors with paths, comma-separated lists, and
//! suggestions for misspelled names.

mod json;
pub mod numbers;
mod text;

pub use json::{field_errors, parse_json, read_json, sentence};
pub use text::{comma_list, nearest};
