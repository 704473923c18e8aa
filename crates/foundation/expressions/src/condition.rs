//! Conditions: trees of comparisons, or expressions that are true or false.

use crate::Expression;
use crate::context::Context;
use crate::eval::Evaluation;
use crate::functions::environment::Environment;
use crate::functions::pattern::Pattern;
use crate::functions::wanted::Wanted;
use crate::language::mistake::Mistake;
use crate::language::roots::Roots;
use crate::template::Template;
use crate::values::compare;
use crate::values::failure::{Failure, decided};
use crate::values::path::Path;
use crate::values::text;
use crate::values::value::Value;
use serde_json::{Map, Value as Json};
use std::cmp::Ordering;

/// The most levels of `and`, `or` and `not`.
const DEEPEST: usize = 5;
/// The most comparisons.
const MOST_LEAVES: usize = 100;

/// A condition. As JSON it is `{"left": …, "op": …, "right": …}`, `{"and": […]}`, `{"or": […]}`, `{"not": …}`, or a text with an
/// expression that is true or false. `left` and texts in `right` are templates, in which `$contact.$name` needs no braces.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Holds(Expression),
    Compare(Box<Comparison>),
}

#[derive(Debug, Clone, PartialEq)]
struct Comparison {
    left: Operand,
    op: Op,
    right: Operand,
    /// The regular expression of `matches`, if nothing in it is computed.
    pattern: Option<Pattern>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Json(Json),
    Template(Template),
    List(Vec<Operand>),
}

macro_rules! ops {
    ($($variant:ident $name:literal $about:literal;)+) => {
        /// A comparison of conditions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Op {
            $($variant),+
        }

        impl Op {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => $about),+
                }
            }
        }
    };
}

ops! {
    Eq "eq" "Both are equal.";
    Neq "neq" "They differ, or only one has a value.";
    Gt "gt" "The left is greater, or later.";
    Gte "gte" "The same, or equal.";
    Lt "lt" "The left is less, or earlier.";
    Lte "lte" "The same, or equal.";
    Like "like" "The text fits a pattern in which `%` is any text and `_` any character.";
    Ilike "ilike" "The same, regardless of case.";
    In "in" "The left equals an element of the list.";
    NotIn "not_in" "The left equals no element of the list.";
    Contains "contains" "The text contains the text, regardless of case, or the list contains the value.";
    StartsWith "starts_with" "The text begins with the text, regardless of case.";
    EndsWith "ends_with" "The text ends with the text, regardless of case.";
    Matches "matches" "The text has a part that fits the regular expression.";
    IsSet "is_set" "There is a value that is not null. It has no `right`.";
    IsEmpty "is_empty" "There is no value, an empty text or an empty list. It has no `right`.";
    Before "before" "The date or time is earlier.";
    After "after" "The date or time is later.";
    WithinDays "within_days" "The date or time is at most so many days before or after now.";
    HasTag "has_tag" "The list has this tag, regardless of case.";
}

/// The operators of conditions, with a sentence about each.
pub(crate) fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    Op::ALL.iter().map(|op| (op.name(), op.about()))
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// What is wrong with it, with the path below it.
    pub fn parse(json: &Json, roots: &Roots<'_>) -> Result<Self, Mistake> {
        let mut reader = Reader { roots, bare: roots.bare(), leaves: 0 };
        reader.node(json, 0).map(Self)
    }

    /// Whether it holds. A comparison with what is missing does not, except that it differs.
    ///
    /// # Errors
    /// Why it cannot be said: an error is never `false`. Of `and` and `or`, one part that decides does so though others fail.
    pub fn holds<'a>(&'a self, context: &Context<'a>) -> Result<bool, Failure> {
        self.0.holds(&Evaluation::new(context))
    }

    /// What it reads, in its order.
    pub fn references(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        self.0.collect(&mut paths);
        paths
    }
}

struct Reader<'a> {
    roots: &'a Roots<'a>,
    bare: Roots<'a>,
    leaves: usize,
}

impl Reader<'_> {
    fn node(&mut self, json: &Json, depth: usize) -> Result<Node, Mistake> {
        const SHAPE: &str =
            "must be `left`, `op` and `right`, or one of `and`, `or` and `not`, or an expression";
        match json {
            Json::String(text) => {
                self.count()?;
                Expression::parse(text, self.roots).map(Node::Holds)
            }
            Json::Object(members) => {
                let group =
                    ["and", "or", "not"].into_iter().find_map(|name| Some((name, members.get(name)?)));
                match group {
                    None if members.contains_key("op") => self.comparison(members),
                    Some((name, inner)) if members.len() == 1 => self.group(name, inner, depth),
                    _ => Err(Mistake::invalid(SHAPE)),
                }
            }
            _ => Err(Mistake::invalid(SHAPE)),
        }
    }

    fn count(&mut self) -> Result<(), Mistake> {
        self.leaves += 1;
        if self.leaves <= MOST_LEAVES {
            return Ok(());
        }
        Err(Mistake::new("expression_too_complex", format!("must have at most {MOST_LEAVES} comparisons")))
    }

    fn group(&mut self, name: &str, inner: &Json, depth: usize) -> Result<Node, Mistake> {
        if depth >= DEEPEST {
            return Err(Mistake::new(
                "expression_too_complex",
                format!("must have at most {DEEPEST} levels"),
            ));
        }
        if name == "not" {
            let inner = self.node(inner, depth + 1).map_err(|mistake| mistake.below(name))?;
            return Ok(Node::Not(Box::new(inner)));
        }
        let Json::Array(parts) = inner else {
            return Err(Mistake::invalid("must be a list of conditions").below(name));
        };
        let mut nodes = Vec::with_capacity(parts.len());
        for (place, part) in parts.iter().enumerate() {
            let node = self.node(part, depth + 1);
            nodes.push(node.map_err(|mistake| mistake.below(&format!("{name}[{place}]")))?);
        }
        Ok(if name == "and" { Node::All(nodes) } else { Node::Any(nodes) })
    }

    fn comparison(&mut self, members: &Map<String, Json>) -> Result<Node, Mistake> {
        self.count()?;
        if let Some(other) = members.keys().find(|name| !["left", "op", "right"].contains(&name.as_str())) {
            return Err(Mistake::invalid("is not a field of a condition").below(other));
        }
        let op = op_of(members.get("op")).map_err(|mistake| mistake.below("op"))?;
        let left = members.get("left").ok_or_else(|| Mistake::invalid("is required").below("left"))?;
        let left = self.operand(left).map_err(|mistake| mistake.below("left"))?;
        let right = match (members.get("right"), matches!(op, Op::IsSet | Op::IsEmpty)) {
            (Some(right), false) => self.operand(right).map_err(|mistake| mistake.below("right"))?,
            (None, true) => Operand::Json(Json::Null),
            (None, false) => return Err(Mistake::invalid("is required").below("right")),
            (Some(_), true) => {
                let message = format!("is not allowed for `{}`", op.name());
                return Err(Mistake::invalid(message).below("right"));
            }
        };
        let pattern = match (op, right.literal()) {
            (Op::Matches, Some(source)) => {
                Some(Pattern::new(source).map_err(|sentence| Mistake::invalid(sentence).below("right"))?)
            }
            _ => None,
        };
        Ok(Node::Compare(Box::new(Comparison { left, op, right, pattern })))
    }

    fn operand(&self, json: &Json) -> Result<Operand, Mistake> {
        match json {
            Json::String(text) => Template::parse(text, &self.bare).map(Operand::Template),
            Json::Array(elements) => {
                let parts = elements.iter().enumerate().map(|(place, element)| match element {
                    Json::String(text) => Template::parse(text, &self.bare)
                        .map(Operand::Template)
                        .map_err(|mistake| mistake.below(&format!("[{place}]"))),
                    plain => Ok(Operand::Json(plain.clone())),
                });
                parts.collect::<Result<_, _>>().map(Operand::List)
            }
            plain => Ok(Operand::Json(plain.clone())),
        }
    }
}

fn op_of(json: Option<&Json>) -> Result<Op, Mistake> {
    let name = json.and_then(Json::as_str).unwrap_or_default();
    Op::ALL.iter().copied().find(|op| op.name() == name).ok_or_else(|| {
        let near = input::nearest(name, Op::ALL.iter().map(|op| op.name()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Mistake::invalid(format!("is not an operator of conditions{hint}"))
    })
}

impl Operand {
    fn literal(&self) -> Option<&str> {
        match self {
            Self::Template(template) => template.literal(),
            _ => None,
        }
    }

    fn value<'a>(&'a self, evaluation: &Evaluation<'_, 'a>) -> Result<Value<'a>, Failure> {
        match self {
            Self::Json(json) => Ok(Value::of(json)),
            Self::Template(template) => template.value(evaluation),
            Self::List(parts) => {
                let values = parts.iter().map(|part| part.value(evaluation)?.into_json());
                Ok(Value::List(values.collect::<Result<Vec<_>, _>>()?.into()))
            }
        }
    }

    fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Json(_) => Vec::new(),
            Self::Template(template) => vec![template],
            Self::List(parts) => parts.iter().flat_map(Self::templates).collect(),
        }
    }
}

impl Node {
    fn holds<'a>(&'a self, evaluation: &Evaluation<'_, 'a>) -> Result<bool, Failure> {
        match self {
            Self::All(parts) => decided(parts.iter().map(|part| part.holds(evaluation)), true),
            Self::Any(parts) => decided(parts.iter().map(|part| part.holds(evaluation)), false),
            Self::Not(inner) => inner.holds(evaluation).map(|holds| !holds),
            Self::Holds(expression) => evaluation.is_true(Some(expression.root())),
            Self::Compare(comparison) => comparison.holds(evaluation),
        }
    }

    fn collect<'a>(&'a self, paths: &mut Vec<&'a Path>) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.collect(paths)),
            Self::Not(inner) => inner.collect(paths),
            Self::Holds(expression) => paths.extend(expression.references()),
            Self::Compare(comparison) => {
                let templates =
                    [&comparison.left, &comparison.right].into_iter().flat_map(Operand::templates);
                paths.extend(templates.flat_map(Template::references));
            }
        }
    }
}

impl Comparison {
    fn holds<'a>(&'a self, evaluation: &Evaluation<'_, 'a>) -> Result<bool, Failure> {
        evaluation.environment.charge(1)?;
        let (left, right) = (self.left.value(evaluation)?, self.right.value(evaluation)?);
        self.holds_of(&evaluation.environment, left, right)
    }

    fn holds_of(
        &self,
        environment: &Environment,
        left: Value<'_>,
        right: Value<'_>,
    ) -> Result<bool, Failure> {
        let zone = environment.zone;
        let order = |holds: fn(Ordering) -> bool| {
            Ok(compare::order_of_shown(&left, &right, zone)?.is_some_and(holds))
        };
        match self.op {
            Op::Eq => Ok(compare::equal(&left, &right, zone)),
            Op::Neq => Ok(!compare::equal(&left, &right, zone)),
            Op::Gt => order(Ordering::is_gt),
            Op::Gte => order(Ordering::is_ge),
            Op::Lt => order(Ordering::is_lt),
            Op::Lte => order(Ordering::is_le),
            Op::IsSet => Ok(!left.is_nothing()),
            Op::IsEmpty => Ok(left.is_empty()),
            Op::In | Op::NotIn => {
                let among = match &right {
                    Value::List(elements) => {
                        environment.charge(elements.len())?;
                        compare::is_among(&left, elements, zone)
                    }
                    other => compare::equal(&left, other, zone),
                };
                Ok(among == (self.op == Op::In))
            }
            Op::HasTag | Op::Contains if matches!(left, Value::List(_)) => {
                has_element(environment, &left, &right, self.op)
            }
            Op::Before | Op::After => {
                let left = environment.fitted(left, Wanted::Time)?;
                let right = environment.fitted(right, Wanted::Time)?;
                let wanted = if self.op == Op::Before { Ordering::Less } else { Ordering::Greater };
                Ok(compare::order(&left, &right, zone)? == Some(wanted))
            }
            Op::WithinDays => within_days(environment, left, right),
            Op::HasTag if left.is_nothing() => Ok(false),
            Op::HasTag => environment.fitted(left, Wanted::List).map(|_| false),
            Op::Contains | Op::StartsWith | Op::EndsWith | Op::Like | Op::Ilike | Op::Matches => {
                self.text_holds(environment, left, right)
            }
        }
    }

    fn text_holds(
        &self,
        environment: &Environment,
        left: Value<'_>,
        right: Value<'_>,
    ) -> Result<bool, Failure> {
        let left = environment.fitted(left, Wanted::Text)?;
        let right = environment.fitted(right, Wanted::Text)?;
        if left.is_nothing() || right.is_nothing() {
            return Ok(false);
        }
        let (left, right) = (left.to_text(), right.to_text());
        environment.expect_short(left.len())?;
        match self.op {
            Op::Contains => Ok(text::fold(&left).contains(&text::fold(&right))),
            Op::StartsWith => Ok(text::fold(&left).starts_with(&text::fold(&right))),
            Op::EndsWith => Ok(text::fold(&left).ends_with(&text::fold(&right))),
            Op::Like => fits(environment, &text::nfc(&left), &text::nfc(&right)),
            Op::Ilike => fits(environment, &text::fold(&left), &text::fold(&right)),
            _ => match &self.pattern {
                Some(pattern) => Ok(pattern.regex().is_match(&left)),
                None => Ok(Pattern::computed(&right)?.regex().is_match(&left)),
            },
        }
    }
}

/// Whether a list has an element: by value, and tags regardless of case.
fn has_element(
    environment: &Environment,
    left: &Value<'_>,
    right: &Value<'_>,
    op: Op,
) -> Result<bool, Failure> {
    let Value::List(elements) = left else { return Ok(false) };
    environment.charge(elements.len())?;
    if op == Op::Contains {
        return Ok(compare::is_among(right, elements, environment.zone));
    }
    let wanted = text::fold(&right.to_text());
    Ok(elements.iter().any(|element| text::fold(&Value::of(element).to_text()) == wanted))
}

fn within_days(environment: &Environment, left: Value<'_>, right: Value<'_>) -> Result<bool, Failure> {
    const DAY: u64 = 86_400_000;
    let left = environment.fitted(left, Wanted::Time)?;
    let days = environment.fitted(right, Wanted::Number)?;
    let (Some(at), Value::Number(days)) = (crate::values::times::instant(&left, environment.zone), days)
    else {
        return Ok(false);
    };
    let distance = at.millis().abs_diff(environment.now.millis());
    let most = u64::try_from(days.whole()).unwrap_or_default().saturating_mul(DAY);
    Ok(distance <= most)
}

/// Whether a text fits a pattern in which `%` is any text, `_` any character, and a backslash takes the meaning from the next
/// character.
fn fits(environment: &Environment, text: &str, pattern: &str) -> Result<bool, Failure> {
    #[derive(PartialEq)]
    enum Sign {
        AnyText,
        AnyLetter,
        Letter(char),
    }
    let mut signs = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        signs.push(match letter {
            '%' => Sign::AnyText,
            '_' => Sign::AnyLetter,
            '\\' => Sign::Letter(letters.next().unwrap_or('\\')),
            other => Sign::Letter(other),
        });
    }
    let text: Vec<char> = text.chars().collect();
    let (mut place, mut sign) = (0, 0);
    // Where to go on if what follows the last `%` does not fit: it takes one character more.
    let mut again: Option<(usize, usize)> = None;
    while let Some(letter) = text.get(place) {
        environment.charge(usize::from(place % 64 == 0))?;
        match (signs.get(sign), again) {
            (Some(Sign::AnyText), _) => {
                sign += 1;
                again = Some((place, sign));
            }
            (Some(found), _) if *found == Sign::AnyLetter || *found == Sign::Letter(*letter) => {
                place += 1;
                sign += 1;
            }
            (_, Some((from, behind))) => {
                environment.charge(1)?;
                place = from + 1;
                sign = behind;
                again = Some((place, behind));
            }
            (_, None) => return Ok(false),
        }
    }
    Ok(signs.get(sign..).unwrap_or_default().iter().all(|sign| *sign == Sign::AnyText))
}
