//! The evaluation of expressions.

use crate::context::Context;
use crate::functions::environment::Environment;
use crate::functions::function::{Arguments, Body, LazyArguments};
use crate::functions::wanted::Wanted;
use crate::language::parse::{Call, Expr, Operator};
use crate::values::compare;
use crate::values::failure::{Failure, decided};
use crate::values::number::Number;
use crate::values::path::{Path, Step};
use crate::values::value::Value;
use std::cmp::Ordering;

/// An evaluation under way.
pub(crate) struct Evaluation<'c, 'a> {
    context: &'c Context<'a>,
    pub(crate) environment: Environment,
}

impl<'c, 'a> Evaluation<'c, 'a> {
    pub(crate) fn new(context: &'c Context<'a>) -> Self {
        let environment = Environment::new(context.now, context.zone, context.limits);
        Self { context, environment }
    }

    /// The value of an expression.
    pub(crate) fn value(&self, expr: &'a Expr) -> Result<Value<'a>, Failure> {
        self.environment.charge(1)?;
        match expr {
            Expr::Literal(value) => Ok(value.borrowed()),
            Expr::Path(path) => self.read(path),
            Expr::Below(inner, steps) => Ok(steps.iter().fold(self.value(inner)?, Value::step)),
            Expr::Negate(inner) => match self.environment.fitted(self.value(inner)?, Wanted::Number)? {
                Value::Number(number) => number.negate().map(Value::Number),
                _ => Ok(Value::Null),
            },
            Expr::Not(inner) => Ok(Value::Boolean(!self.is_true(Some(inner))?)),
            Expr::Binary(Operator::And, left, right) => self.all([&**left, &**right], true),
            Expr::Binary(Operator::Or, left, right) => self.all([&**left, &**right], false),
            Expr::Binary(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.binary(*operator, left, right)
            }
            Expr::Call(call) => self.call(call),
        }
    }

    fn read(&self, path: &'a Path) -> Result<Value<'a>, Failure> {
        let (value, rest) = match path.steps.split_first() {
            Some((Step::Name(name), rest)) => (self.context.scope.member(&path.root, name)?, rest),
            _ => (self.context.scope.root(&path.root)?, path.steps.as_slice()),
        };
        match rest.iter().fold(value, Value::step) {
            Value::Missing if self.context.strict => Err(Failure::Missing(path.to_string())),
            value => Ok(value),
        }
    }

    fn call(&self, call: &'a Call) -> Result<Value<'a>, Failure> {
        match call.function.body {
            Body::Lazy(run) => {
                let argument = |place: usize| call.arguments.get(place).map(|argument| self.value(argument));
                run(&LazyArguments { argument: &argument, environment: &self.environment })
            }
            Body::Plain(run) => {
                let mut values = Vec::with_capacity(call.arguments.len());
                for (place, argument) in call.arguments.iter().enumerate() {
                    let value = self.environment.fitted(self.value(argument)?, call.function.wanted(place));
                    let value = value.map_err(|failure| of_argument(failure, call, place))?;
                    if let Value::Text(text) = &value {
                        self.environment.charge(text.len() / 64)?;
                    }
                    values.push(value);
                }
                let pattern = call.pattern.as_ref();
                run(&Arguments { values: &values, pattern, environment: &self.environment })
            }
        }
    }

    /// Whether an expression is true. No value is not.
    pub(crate) fn is_true(&self, expr: Option<&'a Expr>) -> Result<bool, Failure> {
        let value = expr.map_or(Ok(Value::Null), |expr| self.value(expr))?;
        Ok(self.environment.fitted(value, Wanted::Boolean)? == Value::Boolean(true))
    }

    /// Whether all expressions are true, or whether any is. One that decides does so though others fail.
    pub(crate) fn all(
        &self,
        parts: impl IntoIterator<Item = &'a Expr>,
        wanted: bool,
    ) -> Result<Value<'a>, Failure> {
        let results = parts.into_iter().map(|part| self.is_true(Some(part)));
        decided(results, wanted).map(Value::Boolean)
    }

    fn binary(&self, operator: Operator, left: Value<'a>, right: Value<'a>) -> Result<Value<'a>, Failure> {
        let order = |holds: fn(Ordering) -> bool| {
            Ok(Value::Boolean(compare::order(&left, &right, self.environment.zone)?.is_some_and(holds)))
        };
        match operator {
            Operator::Equal => Ok(Value::Boolean(compare::equal(&left, &right, self.environment.zone))),
            Operator::Unequal => Ok(Value::Boolean(!compare::equal(&left, &right, self.environment.zone))),
            Operator::Less => order(Ordering::is_lt),
            Operator::LessOrEqual => order(Ordering::is_le),
            Operator::Greater => order(Ordering::is_gt),
            Operator::GreaterOrEqual => order(Ordering::is_ge),
            Operator::Concat => {
                let mut text = String::new();
                self.environment.append(&mut text, &left)?;
                self.environment.append(&mut text, &right)?;
                Ok(Value::text(text))
            }
            _ => {
                let numbers = (
                    self.environment.fitted(left, Wanted::Number)?,
                    self.environment.fitted(right, Wanted::Number)?,
                );
                match numbers {
                    (Value::Number(left), Value::Number(right)) => {
                        arithmetic(operator, &left, &right).map(Value::Number)
                    }
                    _ => Ok(Value::Null),
                }
            }
        }
    }
}

/// The failure, which says whose argument it is.
fn of_argument(failure: Failure, call: &Call, place: usize) -> Failure {
    match failure {
        Failure::WrongType(sentence) => {
            let number = place + 1;
            Failure::WrongType(format!("{sentence}: argument {number} of `{}`", call.function.name))
        }
        other => other,
    }
}

fn arithmetic(operator: Operator, left: &Number, right: &Number) -> Result<Number, Failure> {
    match operator {
        Operator::Add => left.add(right),
        Operator::Subtract => left.subtract(right),
        Operator::Multiply => left.multiply(right),
        Operator::Divide => left.divide(right),
        _ => left.remainder(right),
    }
}
