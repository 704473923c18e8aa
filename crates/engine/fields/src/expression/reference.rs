//! The language for readers: its functions and operators, from the tables that the parser uses.

use super::functions::{FUNCTIONS, Function};
use super::parse::{INFIX, Infix};
use super::types::Type;
use crate::values::kind::FieldType;

/// A function or an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// How it is written: `round(number[, number])`, or `=`.
    pub form: Vec<String>,
    /// The type of the result. Those of operators are in `about`.
    pub result: &'static str,
    /// A sentence that says what it computes.
    pub about: &'static str,
    /// An expression over the fields of the examples.
    pub example: &'static str,
    /// What the example computes, as JSON.
    pub example_result: &'static str,
}

/// All functions, by subject.
pub fn functions() -> Vec<Entry> {
    let entry = |function: &Function| Entry {
        form: vec![function.signature()],
        result: function.result(),
        about: function.about,
        example: function.example.0,
        example_result: function.example.1,
    };
    FUNCTIONS.iter().map(entry).collect()
}

/// All operators, those that bind most tightly first.
pub fn operators() -> Vec<Entry> {
    let entry = |infix: &Infix| Entry {
        form: infix.marks.iter().map(ToString::to_string).collect(),
        result: "",
        about: infix.about,
        example: infix.example.0,
        example_result: infix.example.1,
    };
    INFIX.iter().map(entry).collect()
}

/// The type that the values of a field have in a formula; `None` if formulas cannot read it, or if it is that of the
/// field's result.
pub fn type_in_formulas(kind: FieldType) -> Option<&'static str> {
    let is_readable = kind != FieldType::Json && !kind.is_computed();
    is_readable.then(|| Type::of(kind.own_family()).name())
}
