//! The expression of a formula. Nothing here knows the definitions of fields.

use crate::values::problem::Problem;
use expressions::{Expression, Mistake, Roots};
use std::collections::BTreeSet;

/// A parsed formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula(pub(crate) Expression);

impl Formula {
    /// Parses an expression.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Expression::parse(text, &Roots::FIELDS).map(Self).map_err(problem)
    }

    /// The keys of the fields that it reads.
    pub fn fields(&self) -> BTreeSet<&str> {
        self.0.references().into_iter().map(|path| path.root.as_str()).collect()
    }
}

/// What is wrong with a formula.
pub(crate) fn problem(mistake: Mistake) -> Problem {
    let code = match mistake.code {
        "expression_too_long" => "formula_too_long",
        "expression_too_complex" => "formula_too_complex",
        _ => "invalid_formula",
    };
    Problem::new(code, mistake.message)
}
