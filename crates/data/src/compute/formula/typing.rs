//! The types of expressions: what does not fit is refused when a formula is saved, not when it is computed.

use super::functions::{Function, Given, Wanted};
use super::parse::{Expr, Operator};
use crate::shape::{Family, FieldType, Shape};
use crate::value::Problem;

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// That of `null`, which fits everywhere.
    Nothing,
    Number,
    Text,
    Boolean,
    Date,
    Moment,
    List,
}

impl Type {
    fn of(family: Family) -> Self {
        match family {
            Family::Number => Self::Number,
            Family::Text | Family::Time | Family::Select => Self::Text,
            Family::Boolean => Self::Boolean,
            Family::Date => Self::Date,
            Family::Datetime => Self::Moment,
            Family::Choices | Family::Ids | Family::Json => Self::List,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Nothing => "null",
            Self::Number => "a number",
            Self::Text => "text",
            Self::Boolean => "true or false",
            Self::Date => "a date",
            Self::Moment => "a time",
            Self::List => "a list",
        }
    }

    fn fits(self, other: Self) -> bool {
        self == other || self == Self::Nothing || other == Self::Nothing
    }
}

fn wrong(message: String) -> Problem {
    Problem::new("invalid_formula", message)
}

pub(super) fn result_type(expr: &Expr, shape: &Shape) -> Result<FieldType, Problem> {
    match type_of(expr, shape)? {
        Type::Number => Ok(FieldType::Number),
        Type::Text => Ok(FieldType::LongText),
        Type::Boolean => Ok(FieldType::Boolean),
        Type::Date => Ok(FieldType::Date),
        Type::Moment => Ok(FieldType::Datetime),
        Type::List => Err(wrong("gives a list; make it one value with `count`, `has` or `join`".to_owned())),
        Type::Nothing => Err(wrong("never has a value".to_owned())),
    }
}

fn type_of(expr: &Expr, shape: &Shape) -> Result<Type, Problem> {
    use super::eval::Operand;
    match expr {
        Expr::Literal(Operand::Number(_)) => Ok(Type::Number),
        Expr::Literal(Operand::Text(_)) => Ok(Type::Text),
        Expr::Literal(Operand::Boolean(_)) => Ok(Type::Boolean),
        Expr::Literal(_) => Ok(Type::Nothing),
        Expr::Field(key) => field_type(key, shape),
        Expr::Negate(inner) => expect(inner, shape, Type::Number, "`-`"),
        Expr::Not(inner) => expect(inner, shape, Type::Boolean, "`not`"),
        Expr::Binary(operator, left, right) => binary(*operator, left, right, shape),
        Expr::Call(function, arguments) => call(function, arguments, shape),
    }
}

fn field_type(key: &str, shape: &Shape) -> Result<Type, Problem> {
    let Some(field) = shape.field(key) else {
        let near = crate::text::nearest(key, shape.fields.iter().map(|field| field.key.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(wrong(format!("names `{key}`, which is no field of this collection{hint}")));
    };
    match field.kind {
        FieldType::Json => Err(wrong(format!("cannot read `{key}`, whose values are JSON of any type"))),
        _ => Ok(Type::of(field.family())),
    }
}

fn expect(expr: &Expr, shape: &Shape, wanted: Type, by: &str) -> Result<Type, Problem> {
    let found = type_of(expr, shape)?;
    if found.fits(wanted) {
        return Ok(wanted);
    }
    Err(wrong(format!("has {} where {by} takes {}", found.word(), wanted.word())))
}

fn binary(operator: Operator, left: &Expr, right: &Expr, shape: &Shape) -> Result<Type, Problem> {
    match operator {
        Operator::And | Operator::Or => {
            expect(left, shape, Type::Boolean, "`and` and `or`")?;
            expect(right, shape, Type::Boolean, "`and` and `or`")
        }
        Operator::Concat => {
            type_of(left, shape)?;
            type_of(right, shape)?;
            Ok(Type::Text)
        }
        Operator::Equal
        | Operator::Unequal
        | Operator::Less
        | Operator::LessOrEqual
        | Operator::Greater
        | Operator::GreaterOrEqual => {
            let (left, right) = (type_of(left, shape)?, type_of(right, shape)?);
            if !left.fits(right) {
                return Err(wrong(format!("compares {} with {}", left.word(), right.word())));
            }
            let ordered = !matches!(operator, Operator::Equal | Operator::Unequal);
            let unordered = [left, right].into_iter().find(|side| matches!(side, Type::Boolean | Type::List));
            match unordered.filter(|_| ordered) {
                Some(side) => Err(wrong(format!("asks for the order of {}, which has none", side.word()))),
                None => Ok(Type::Boolean),
            }
        }
        Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            expect(
                left,
                shape,
                Type::Number,
                "arithmetic (texts are joined with `&`, dates moved with `date_add`)",
            )?;
            expect(
                right,
                shape,
                Type::Number,
                "arithmetic (texts are joined with `&`, dates moved with `date_add`)",
            )
        }
    }
}

fn call(function: &Function, arguments: &[Expr], shape: &Shape) -> Result<Type, Problem> {
    let (mut alike, mut first) = (Type::Nothing, Type::Nothing);
    for (place, argument) in arguments.iter().enumerate() {
        let found = type_of(argument, shape)?;
        if place == 0 {
            first = found;
        }
        let wanted = function.wanted(place);
        let fits = match wanted {
            Wanted::Number => found.fits(Type::Number),
            Wanted::Text => found.fits(Type::Text),
            Wanted::Boolean => found.fits(Type::Boolean),
            Wanted::Time => found.fits(Type::Date) || found == Type::Moment,
            Wanted::List => found.fits(Type::List),
            Wanted::Anything => true,
            Wanted::Alike => {
                let fits = alike.fits(found);
                alike = if alike == Type::Nothing { found } else { alike };
                fits
            }
        };
        if !fits {
            let number = place + 1;
            return Err(wrong(format!(
                "gives `{}` {} as argument {number}, which does not fit",
                function.name,
                found.word()
            )));
        }
    }
    Ok(match function.gives {
        Given::Always(kind) => kind,
        Given::Alike => alike,
        Given::First => first,
    })
}
