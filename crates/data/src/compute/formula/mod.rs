//! Formulas: pure, typed expressions over the other fields of an item.
//!
//! An expression is parsed and typed when the field is saved, and evaluated when an item is written; the result is
//! stored like any other value. There is no `now()`: what changes by itself cannot be stored. Evaluation never fails:
//! what has no answer (a division by zero, a date out of the calendar) is no value.

mod eval;
mod functions;
mod lex;
mod number;
mod parse;
#[cfg(test)]
mod tests;
mod typing;

pub use eval::Operand;

use super::ComputedError;
use crate::shape::{Field, FieldType, Shape};
use crate::value::Problem;
use serde_json::Value;
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

    /// The type of its result over the fields of `shape`.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn result_type(&self, shape: &Shape) -> Result<FieldType, Problem> {
        typing::result_type(&self.root, shape)
    }

    /// Its result for an item; `None` where it has no value.
    ///
    /// # Errors
    /// Why it has no answer for these values.
    pub fn value(
        &self,
        shape: &Shape,
        read: &dyn Fn(&Field) -> Result<Option<Value>, ComputedError>,
    ) -> Result<Option<Value>, ComputedError> {
        let field = |key: &str| {
            let field = shape.field(key)?;
            Some(match read(field) {
                Ok(value) => Operand::of(field, &value?),
                Err(error) => Operand::Failed(error),
            })
        };
        eval::eval(&self.root, &field).into_json()
    }
}
