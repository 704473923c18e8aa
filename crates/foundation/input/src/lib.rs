//! Reading of what callers send: JSON whose numbers keep their digits, mistakes with their paths, lists with commas, and
//! suggestions for names that were probably meant.

mod json;
pub mod numbers;
mod text;

pub use json::{field_errors, parse_json, read_json, sentence};
pub use text::{comma_list, nearest};
