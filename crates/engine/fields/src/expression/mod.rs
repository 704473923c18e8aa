//! Expressions of formulas: their grammar, their functions, and the operands that they compute with. Nothing here knows fields.

pub(crate) mod functions;
mod lex;
pub(crate) mod moment;
pub(crate) mod operand;
pub(crate) mod parse;
pub mod reference;
pub(crate) mod times;
pub(crate) mod types;

use crate::values::problem::Problem;
use std::collections::BTreeSet;

/// The most characters of an expression.
const LONGEST: usize = 2_000;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    pub(crate) root: parse::Expr,
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
