//! What a function is, and the arguments of its calls.

use super::environment::Environment;
use super::pattern::Pattern;
use super::wanted::Wanted;
use crate::values::failure::Failure;
use crate::values::number::Number;
use crate::values::types::Type;
use crate::values::value::Value;
use std::borrow::Cow;

/// A function.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// What it takes. The last one may come again where `repeats`.
    pub(crate) takes: &'static [Wanted],
    /// How many of them must be there.
    pub(crate) least: usize,
    pub(crate) repeats: bool,
    pub(crate) gives: Given,
    /// A sentence for the documentation.
    pub(crate) about: &'static str,
    /// An expression, and its result as JSON. A test evaluates it.
    pub(crate) example: (&'static str, &'static str),
    pub(crate) body: Body,
}

/// What a function does.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// It computes with arguments that have the types it takes, or no value. If one of them fails, so does the call.
    Plain(for<'a> fn(&Arguments<'_, 'a>) -> Result<Value<'a>, Failure>),
    /// It evaluates the arguments that it needs, and may have a result though one of them fails.
    Lazy(for<'a> fn(&LazyArguments<'_, 'a>) -> Result<Value<'a>, Failure>),
}

/// What comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    Always(Type),
    /// What the arguments that are alike are.
    Alike,
    /// What the first argument is.
    First,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Function {
    pub(crate) fn takes(&self, count: usize) -> bool {
        count >= self.least && (self.repeats || count <= self.takes.len())
    }

    pub(crate) fn takes_pattern(&self) -> bool {
        self.takes.get(1) == Some(&Wanted::Pattern)
    }

    /// How many arguments, in words.
    pub(crate) fn arity(&self) -> String {
        match (self.least, self.takes.len()) {
            (least, _) if self.repeats => format!("at least {least} arguments"),
            (1, 1) => "one argument".to_owned(),
            (0, 0) => "no arguments".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        }
    }

    /// Its name with its arguments: `round(number[, number])`.
    pub(crate) fn signature(&self, is_formula: bool) -> String {
        let mut arguments = String::new();
        for (place, wanted) in self.takes.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            let is_optional = place >= self.least;
            let (open, close) = if is_optional { ("[", "]") } else { ("", "") };
            arguments += &format!("{open}{comma}{}{close}", wanted.word(is_formula));
        }
        let more = if self.repeats { ", …" } else { "" };
        format!("{}({arguments}{more})", self.name)
    }

    /// The type of its result, in a word.
    pub(crate) fn result(&self) -> &'static str {
        match self.gives {
            Given::Always(kind) => kind.name(),
            Given::Alike => "that of the values",
            Given::First => "that of the first argument",
        }
    }

    /// What the argument at `place` must be.
    pub(crate) fn wanted(&self, place: usize) -> Wanted {
        self.takes.get(place).or(self.takes.last()).copied().unwrap_or(Wanted::Anything)
    }
}

/// The arguments of a call, each of the type that the function takes, or without a value.
pub(crate) struct Arguments<'e, 'a> {
    pub(crate) values: &'e [Value<'a>],
    /// The regular expression, compiled once, if it is written in the call.
    pub(crate) pattern: Option<&'e Pattern>,
    pub(crate) environment: &'e Environment,
}

impl<'a> Arguments<'_, 'a> {
    /// The argument at `place`; null where it was left out.
    pub(super) fn at(&self, place: usize) -> &Value<'a> {
        self.values.get(place).unwrap_or(&Value::Null)
    }

    pub(super) fn number(&self, place: usize) -> Option<&Number> {
        match self.at(place) {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// All numbers, also those of lists.
    pub(super) fn numbers(&self) -> Result<Vec<Number>, Failure> {
        let mut numbers = Vec::with_capacity(self.values.len());
        for value in self.values {
            match value {
                Value::Number(number) => numbers.push(number.clone()),
                Value::List(elements) => {
                    self.environment.charge(elements.len())?;
                    for element in elements.iter() {
                        if let Value::Number(number) =
                            self.environment.fitted(Value::of(element), Wanted::Number)?
                        {
                            numbers.push(number);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(numbers)
    }

    /// The text of the argument at `place`, empty where there is none.
    pub(super) fn text(&self, place: usize) -> Cow<'_, str> {
        self.at(place).to_text()
    }

    /// Whether the argument at `place` has a value.
    pub(super) fn has(&self, place: usize) -> bool {
        !self.at(place).is_nothing()
    }

    /// A count; 0 for less than 1, and for none.
    pub(super) fn count(&self, place: usize) -> usize {
        let count = self.number(place).map_or(0, |number| number.whole().max(0));
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// The elements of the list at `place`; none where there is no value. Each is a step.
    pub(super) fn elements(&self, place: usize) -> Result<&[serde_json::Value], Failure> {
        match self.at(place) {
            Value::List(elements) => {
                self.environment.charge(elements.len())?;
                Ok(elements)
            }
            _ => Ok(&[]),
        }
    }

    /// What a function makes of the text at 0, if there is one.
    pub(super) fn of_text(&self, make: impl FnOnce(&str) -> String) -> Result<Value<'a>, Failure> {
        self.of_text_or_fail(|text| Ok(make(text)))
    }

    pub(super) fn of_text_or_fail(
        &self,
        make: impl FnOnce(&str) -> Result<String, Failure>,
    ) -> Result<Value<'a>, Failure> {
        if !self.has(0) {
            return Ok(Value::Null);
        }
        let text = make(&self.text(0))?;
        self.environment.expect_short(text.len())?;
        Ok(Value::text(text))
    }
}

/// The arguments of a call that evaluates those that it needs.
pub(crate) struct LazyArguments<'e, 'a> {
    /// The value of the argument at a place. `None` behind the last one.
    pub(crate) argument: &'e dyn Fn(usize) -> Option<Result<Value<'a>, Failure>>,
    pub(crate) environment: &'e Environment,
}

impl<'a> LazyArguments<'_, 'a> {
    /// The value of the argument at `place`; null where it was left out.
    pub(super) fn value(&self, place: usize) -> Result<Value<'a>, Failure> {
        (self.argument)(place).unwrap_or(Ok(Value::Null))
    }

    /// The values of all arguments, each when it is its turn.
    pub(super) fn values(&self) -> impl Iterator<Item = Result<Value<'a>, Failure>> {
        (0..).map_while(|place| (self.argument)(place))
    }

    /// Whether a value is true. No value is not.
    pub(super) fn is_true(&self, value: Value<'a>) -> Result<bool, Failure> {
        Ok(self.environment.fitted(value, Wanted::Boolean)? == Value::Boolean(true))
    }
}

pub(super) fn whole(count: usize) -> Value<'static> {
    Value::Number(i64::try_from(count).unwrap_or(i64::MAX).into())
}

/// Declares functions: the name and what it takes, `least` arguments if some can be left out, `repeats` if the last can come
/// again, what it gives, a sentence, an example with its result, and the body.
macro_rules! functions {
    ($($name:literal ($($takes:expr),*) $(least $least:literal)? $(repeats $repeats:literal)? gives $gives:expr, $about:literal, $example:literal => $result:literal, $kind:ident $body:expr;)+) => {
        pub(super) const FUNCTIONS: &[$crate::functions::function::Function] = &[$($crate::functions::function::Function {
            name: $name,
            takes: &[$($takes),*],
            least: { const TAKES: &[W] = &[$($takes),*]; #[allow(unused_mut, unused_assignments, reason = "set where said")] { let mut least = TAKES.len(); $(least = $least;)? least } },
            repeats: { #[allow(unused_mut, unused_assignments, reason = "set where said")] { let mut repeats = false; $(repeats = $repeats;)? repeats } },
            gives: $gives,
            about: $about,
            example: ($example, $result),
            body: $crate::functions::function::Body::$kind($body),
        }),+];
    };
}
pub(super) use functions;
