//! Expressions, templates and conditions: one pure language for formulas, texts with placeholders, and rules.
//!
//! An [`Expression`] computes a typed [`Value`] from paths such as `$contact.$name`, operators, functions and filters. A
//! [`Template`] is a text with expressions between braces. A [`Condition`] is a tree of comparisons, or an expression that is
//! true or false. The place that uses them names the [`Roots`] that can be read, gives the values with a [`Scope`], and the
//! time as an argument, so that the same input always gives the same result.
//!
//! Numbers are exact decimals or refused. What is missing is no value; an error is a [`Failure`], never a value. Parsing and
//! evaluating are bounded by characters, nesting, steps and bytes, and there is nothing of the host to reach.

mod condition;
mod context;
mod document;
mod eval;
mod functions;
mod language;
pub mod placeholder;
pub mod reference;
mod template;
#[cfg(test)]
mod tests;
mod values;

pub use condition::Condition;
pub use context::{Context, Limits, Scope};
pub use document::document;
pub use language::mistake::Mistake;
pub use language::roots::Roots;
pub use template::Template;
pub use values::compare::{equal, order};
pub use values::failure::Failure;
pub use values::moment::Moment;
pub use values::number::Number;
pub use values::path::{Path, Step};
pub use values::types::Type;
pub use values::value::Value;
pub use values::{decimal, equality, text};

use eval::Evaluation;
use language::parse::Expr;
use language::{lex, parse, typing};

/// The most characters of an expression.
const LONGEST: usize = 2_000;

/// A parsed expression, such as `$order.total * 1.21 | round: 2`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    root: Expr,
    is_formula: bool,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// What is wrong with it, and where; for an unknown root or function with the nearest name.
    pub fn parse(text: &str, roots: &Roots<'_>) -> Result<Self, Mistake> {
        if text.chars().count() > LONGEST {
            return Err(Mistake::new(
                "expression_too_long",
                format!("must have at most {LONGEST} characters"),
            ));
        }
        let is_formula = roots.are_fields();
        Ok(Self { root: parse::parse(&lex::tokens(text, is_formula)?, roots)?, is_formula })
    }

    /// The value that it has.
    ///
    /// # Errors
    /// Why it has none: a division by zero, values whose types do not fit, a limit.
    pub fn evaluate<'a>(&'a self, context: &Context<'a>) -> Result<Value<'a>, Failure> {
        Evaluation::new(context).value(&self.root)
    }

    /// Whether it is true. No value is not.
    ///
    /// # Errors
    /// As [`Self::evaluate`], and for a value that is neither true nor false.
    pub fn is_true<'a>(&'a self, context: &Context<'a>) -> Result<bool, Failure> {
        Evaluation::new(context).is_true(Some(&self.root))
    }

    /// The type of its value, where `types` gives those of what it reads.
    ///
    /// # Errors
    /// The first part that does not fit.
    pub fn result_type(&self, types: &dyn Fn(&Path) -> Result<Type, Mistake>) -> Result<Type, Mistake> {
        typing::type_of(&self.root, types)
    }

    pub(crate) fn root(&self) -> &Expr {
        &self.root
    }

    /// What it reads, in its order.
    pub fn references(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        self.root.visit(&mut |expr| {
            if let Expr::Path(path) = expr {
                paths.push(path);
            }
        });
        paths
    }
}
