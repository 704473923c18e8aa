//! Expressions as text, which parses back to the same expression.

use crate::Expression;
use crate::language::parse::{Expr, Operator};
use crate::values::path::quoted;
use crate::values::value::Value;
use std::fmt::{self, Display, Formatter};

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer { is_formula: self.is_formula }.expr(&self.root, f)
    }
}

struct Printer {
    is_formula: bool,
}

impl Printer {
    fn expr(&self, expr: &Expr, f: &mut Formatter<'_>) -> fmt::Result {
        match expr {
            Expr::Literal(Value::Text(text)) => f.write_str(&quoted(text)),
            Expr::Literal(Value::Number(number)) => f.write_str(&number.text()),
            Expr::Literal(Value::Boolean(value)) => write!(f, "{value}"),
            Expr::Literal(_) => f.write_str("null"),
            Expr::Path(path) if self.is_formula => write!(f, "{{{}}}", path.root),
            Expr::Path(path) => path.fmt(f),
            Expr::Below(inner, steps) => {
                self.grouped(inner, !matches!(**inner, Expr::Call(_)), f)?;
                steps.iter().try_for_each(|step| step.fmt(f))
            }
            Expr::Negate(inner) => {
                f.write_str("-")?;
                self.grouped(inner, is_loose(inner), f)
            }
            Expr::Not(inner) => {
                f.write_str("!")?;
                self.grouped(inner, is_loose(inner), f)
            }
            Expr::Binary(operator, left, right) => self.binary(*operator, left, right, f),
            Expr::Call(call) => {
                write!(f, "{}(", call.function.name)?;
                for (place, argument) in call.arguments.iter().enumerate() {
                    f.write_str(if place > 0 { ", " } else { "" })?;
                    self.expr(argument, f)?;
                }
                f.write_str(")")
            }
        }
    }

    fn binary(&self, operator: Operator, left: &Expr, right: &Expr, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(infix) = operator.infix() else { return Err(fmt::Error) };
        // Operators of one strength are grouped from the left.
        self.grouped(left, binds(left) < infix.binds, f)?;
        write!(f, " {} ", infix.marks.first().unwrap_or(&""))?;
        self.grouped(right, binds(right) <= infix.binds, f)
    }

    fn grouped(&self, expr: &Expr, in_parentheses: bool, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if in_parentheses { "(" } else { "" })?;
        self.expr(expr, f)?;
        f.write_str(if in_parentheses { ")" } else { "" })
    }
}

/// How tightly the parts of an expression are bound: those without an operator between them the most.
fn binds(expr: &Expr) -> u8 {
    match expr {
        Expr::Binary(operator, ..) => operator.infix().map_or(0, |infix| infix.binds),
        _ => u8::MAX,
    }
}

fn is_loose(expr: &Expr) -> bool {
    matches!(expr, Expr::Binary(..))
}
