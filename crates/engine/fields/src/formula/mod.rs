//! Formulas: pure, typed expressions over the other fields of a record.
//!
//! An expression is parsed and typed when the field is saved, and evaluated when a record is written; the result is
//! stored like any other value. There is no `now()`: what changes by itself cannot be stored. Evaluation never fails:
//! what has no answer (a division by zero, a date out of the calendar) is no value.

mod eval;
mod functions;
mod lex;
mod moment;
mod operand;
mod parse;
pub mod reference;
#[cfg(test)]
mod tests;
mod times;
mod types;
mod typing;

pub use times::zone_of;

use crate::problem::Problem;
use std::collections::BTreeSet;

/// The most characters of an expression.
const LONGEST: usize = 2_000;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    root: parse::Expr,
}

impl Formula {
    /// Parses an expression.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if text.chars().count() > LONGEST {
            return Err(Problem::new("formula_too_long", format!("must have at most {LONGEST} characters")));
        }
        Ok(Self { root: parse::parse(&lex::tokens(text)?)? })
    }

    /// The keys of the fields that it reads.
    pub fn fields(&self) -> BTreeSet<&str> {
        let mut keys = BTreeSet::new();
        self.root.visit(&mut |expr| {
            if let parse::Expr::Field(key) = expr {
                keys.insert(key.as_str());
            }
        });
        keys
    }
}
