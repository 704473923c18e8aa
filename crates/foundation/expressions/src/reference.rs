//! The language for readers: its functions and operators, from the tables that the parser uses.

use crate::functions;
use crate::functions::function::Function;
use crate::language::parse::{INFIX, Infix};

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

/// The functions of formulas, by subject.
pub fn functions_of_formulas() -> Vec<Entry> {
    functions::OF_FORMULAS.iter().map(|function| entry(function, true)).collect()
}

/// All functions, by subject.
pub fn functions() -> Vec<Entry> {
    functions::all().map(|function| entry(function, false)).collect()
}

fn entry(function: &Function, is_formula: bool) -> Entry {
    Entry {
        form: vec![function.signature(is_formula)],
        result: function.result(),
        about: function.about,
        example: function.example.0,
        example_result: function.example.1,
    }
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

/// The operators of conditions, each with a sentence about it.
pub fn comparisons() -> Vec<(&'static str, &'static str)> {
    crate::condition::operators().collect()
}
