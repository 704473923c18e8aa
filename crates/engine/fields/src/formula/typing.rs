//! The types of expressions: what does not fit is refused when a formula is saved, not when it is computed.

use super::Formula;
use crate::definitions::set::FieldSet;
use crate::expression::functions::{Function, Given, Wanted};
use crate::expression::operand::Operand;
use crate::expression::parse::{Expr, Operator};
use crate::expression::types::Type;
use crate::values::kind::FieldType;
use crate::values::problem::Problem;

impl Formula {
    /// The type of its result over these fields.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn result_type(&self, fields: &FieldSet) -> Result<FieldType, Problem> {
        result_type(&self.root, fields)
    }
}

fn wrong(message: String) -> Problem {
    Problem::new("invalid_formula", message)
}

fn result_type(expr: &Expr, fields: &FieldSet) -> Result<FieldType, Problem> {
    match type_of(expr, fields)? {
        Type::Number => Ok(FieldType::Number),
        Type::Text => Ok(FieldType::LongText),
        Type::Boolean => Ok(FieldType::Boolean),
        Type::Date => Ok(FieldType::Date),
        Type::Moment => Ok(FieldType::Datetime),
        Type::List => Err(wrong("gives a list; make it one value with `count`, `has` or `join`".to_owned())),
        Type::Nothing => Err(wrong("never has a value".to_owned())),
    }
}

fn type_of(expr: &Expr, fields: &FieldSet) -> Result<Type, Problem> {
    match expr {
        Expr::Literal(Operand::Number(_)) => Ok(Type::Number),
        Expr::Literal(Operand::Text(_)) => Ok(Type::Text),
        Expr::Literal(Operand::Boolean(_)) => Ok(Type::Boolean),
        Expr::Literal(_) => Ok(Type::Nothing),
        Expr::Field(key) => field_type(key, fields),
        Expr::Negate(inner) => expect(inner, fields, Type::Number, "`-`"),
        Expr::Not(inner) => expect(inner, fields, Type::Boolean, "`not`"),
        Expr::Binary(operator, left, right) => binary(*operator, left, right, fields),
        Expr::Call(function, arguments) => call(function, arguments, fields),
    }
}

fn field_type(key: &str, fields: &FieldSet) -> Result<Type, Problem> {
    let Some(field) = fields.field(key) else {
        let near = input::nearest(key, fields.iter().map(|field| field.key.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let noun = fields.noun();
        return Err(wrong(format!("names `{key}`, which is no field of this {noun}{hint}")));
    };
    match field.kind {
        FieldType::Json => Err(wrong(format!("cannot read `{key}`, whose values are JSON of any type"))),
        _ => Ok(Type::of(field.family())),
    }
}

fn expect(expr: &Expr, fields: &FieldSet, wanted: Type, by: &str) -> Result<Type, Problem> {
    let found = type_of(expr, fields)?;
    if found.fits(wanted) {
        return Ok(wanted);
    }
    Err(wrong(format!("has {} where {by} takes {}", found.word(), wanted.word())))
}

fn binary(operator: Operator, left: &Expr, right: &Expr, fields: &FieldSet) -> Result<Type, Problem> {
    match operator {
        Operator::And | Operator::Or => {
            expect(left, fields, Type::Boolean, "`and` and `or`")?;
            expect(right, fields, Type::Boolean, "`and` and `or`")
        }
        Operator::Concat => {
            type_of(left, fields)?;
            type_of(right, fields)?;
            Ok(Type::Text)
        }
        Operator::Equal
        | Operator::Unequal
        | Operator::Less
        | Operator::LessOrEqual
        | Operator::Greater
        | Operator::GreaterOrEqual => {
            let (left, right) = (type_of(left, fields)?, type_of(right, fields)?);
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
                fields,
                Type::Number,
                "arithmetic (texts are joined with `&`, dates moved with `date_add`)",
            )?;
            expect(
                right,
                fields,
                Type::Number,
                "arithmetic (texts are joined with `&`, dates moved with `date_add`)",
            )
        }
    }
}

fn call(function: &Function, arguments: &[Expr], fields: &FieldSet) -> Result<Type, Problem> {
    let (mut alike, mut first) = (Type::Nothing, Type::Nothing);
    for (place, argument) in arguments.iter().enumerate() {
        let found = type_of(argument, fields)?;
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
