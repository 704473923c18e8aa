//! The types of expressions: what does not fit is refused when an expression is saved, not when it is evaluated.

use crate::functions::function::Given;
use crate::functions::wanted::Wanted;
use crate::language::mistake::Mistake;
use crate::language::parse::{Call, Expr, Operator};
use crate::values::path::Path;
use crate::values::types::Type;
use crate::values::value::Value;

/// The types of what expressions read.
type Types<'t> = &'t dyn Fn(&Path) -> Result<Type, Mistake>;

fn wrong(message: String) -> Mistake {
    Mistake::invalid(message)
}

/// The type of an expression.
pub(crate) fn type_of(expr: &Expr, fields: Types<'_>) -> Result<Type, Mistake> {
    match expr {
        Expr::Literal(Value::Number(_)) => Ok(Type::Number),
        Expr::Literal(Value::Text(_)) => Ok(Type::Text),
        Expr::Literal(Value::Boolean(_)) => Ok(Type::Boolean),
        Expr::Literal(_) => Ok(Type::Null),
        Expr::Path(path) => fields(path),
        Expr::Below(inner, _) => type_of(inner, fields).map(|_| Type::Any),
        Expr::Negate(inner) => expect(inner, fields, Type::Number, "`-`"),
        Expr::Not(inner) => expect(inner, fields, Type::Boolean, "`not`"),
        Expr::Binary(operator, left, right) => binary(*operator, left, right, fields),
        Expr::Call(made) => call(made, fields),
    }
}

fn expect(expr: &Expr, fields: Types<'_>, wanted: Type, by: &str) -> Result<Type, Mistake> {
    let found = type_of(expr, fields)?;
    if found.fits(wanted) {
        return Ok(wanted);
    }
    Err(wrong(format!("has {} where {by} takes {}", found.word(), wanted.word())))
}

fn binary(operator: Operator, left: &Expr, right: &Expr, fields: Types<'_>) -> Result<Type, Mistake> {
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

fn call(call: &Call, fields: Types<'_>) -> Result<Type, Mistake> {
    let function = call.function;
    let (mut alike, mut first) = (Type::Null, Type::Null);
    for (place, argument) in call.arguments.iter().enumerate() {
        let found = type_of(argument, fields)?;
        if place == 0 {
            first = found;
        }
        let wanted = function.wanted(place);
        let fits = match wanted {
            Wanted::Number | Wanted::Numbers => found.fits(Type::Number),
            Wanted::Text | Wanted::TextOrList | Wanted::Pattern => found.fits(Type::Text),
            Wanted::Boolean => found.fits(Type::Boolean),
            Wanted::Time => found.fits(Type::Date) || found == Type::Time,
            Wanted::List => found.fits(Type::List),
            Wanted::Object => found.fits(Type::Object),
            Wanted::Anything => true,
            Wanted::Alike => {
                let fits = alike.fits(found);
                alike = if alike == Type::Null { found } else { alike };
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
