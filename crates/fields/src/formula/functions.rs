//! The functions of the language: what each takes, gives and does stands here and nowhere else.

use super::operand::{Figure, Operand};
use super::times;
use super::types::Type;
use crate::decimal;
use crate::text;
use bigdecimal::RoundingMode;
use chrono::{Datelike, NaiveDate};
use std::cmp::Ordering;

/// A function.
pub(super) struct Function {
    pub(super) name: &'static str,
    /// What it takes. The last one may come again where `repeats`.
    pub(super) takes: &'static [Wanted],
    /// How many of them must be there.
    pub(super) least: usize,
    pub(super) repeats: bool,
    pub(super) gives: Given,
    pub(super) run: fn(&[Operand]) -> Operand,
}

/// What an argument must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Number,
    Text,
    Boolean,
    /// A day or a moment.
    Time,
    List,
    Anything,
    /// Anything, of the same type as the others that are marked so.
    Alike,
}

/// What comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
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
    pub(super) fn takes(&self, count: usize) -> bool {
        count >= self.least && (self.repeats || count <= self.takes.len())
    }

    /// How many arguments, in words.
    pub(super) fn arity(&self) -> String {
        match (self.least, self.takes.len()) {
            (least, _) if self.repeats => format!("at least {least} arguments"),
            (1, 1) => "one argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        }
    }

    /// What the argument at `place` must be.
    pub(super) fn wanted(&self, place: usize) -> Wanted {
        self.takes.get(place).or(self.takes.last()).copied().unwrap_or(Wanted::Anything)
    }
}

/// The function with this name, in whatever case.
pub(super) fn named(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

/// What was probably meant, as the end of a sentence.
pub(super) fn hint(name: &str) -> String {
    let near = text::nearest(&name.to_ascii_lowercase(), FUNCTIONS.iter().map(|function| function.name));
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

use Given::{Alike, Always, First};
use Wanted as W;

macro_rules! functions {
    ($($name:literal ($($takes:expr),*) $(least $least:literal)? $(repeats $repeats:literal)? gives $gives:expr, $run:expr;)+) => {
        const FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            takes: &[$($takes),*],
            least: { const TAKES: &[W] = &[$($takes),*]; #[allow(unused_mut, unused_assignments, reason = "set where said")] { let mut least = TAKES.len(); $(least = $least;)? least } },
            repeats: { #[allow(unused_mut, unused_assignments, reason = "set where said")] { let mut repeats = false; $(repeats = $repeats;)? repeats } },
            gives: $gives,
            run: $run,
        }),+];
    };
}

functions! {
    "if"(W::Boolean, W::Alike, W::Alike) least 2 gives Alike, |a| if at(a, 0).is_true() { at(a, 1).clone() } else { at(a, 2).clone() };
    "coalesce"(W::Alike) repeats true gives Alike, |a| a.iter().find(|value| !value.is_empty()).cloned().unwrap_or(Operand::Nothing);
    "is_empty"(W::Anything) gives Always(Type::Boolean), |a| Operand::Boolean(at(a, 0).is_empty());
    "and"(W::Boolean) repeats true gives Always(Type::Boolean), |a| Operand::Boolean(a.iter().all(Operand::is_true));
    "or"(W::Boolean) repeats true gives Always(Type::Boolean), |a| Operand::Boolean(a.iter().any(Operand::is_true));

    "abs"(W::Number) gives Always(Type::Number), |a| number(a, Figure::abs);
    "floor"(W::Number) gives Always(Type::Number), |a| number(a, |value| value.round(0, RoundingMode::Floor));
    "ceil"(W::Number) gives Always(Type::Number), |a| number(a, |value| value.round(0, RoundingMode::Ceiling));
    "sqrt"(W::Number) gives Always(Type::Number), |a| number(a, Figure::sqrt);
    "round"(W::Number, W::Number) least 1 gives Always(Type::Number), round;
    "power"(W::Number, W::Number) gives Always(Type::Number), |a| match (at(a, 0), at(a, 1)) {
        (Operand::Number(base), Operand::Number(exponent)) => base.power(exponent),
        _ => Operand::Nothing,
    };
    "sum"(W::Number) repeats true gives Always(Type::Number), sum;
    "min"(W::Number) repeats true gives Always(Type::Number), |a| best(a, Ordering::Less);
    "max"(W::Number) repeats true gives Always(Type::Number), |a| best(a, Ordering::Greater);
    "number"(W::Text) gives Always(Type::Number), read_number;

    "text"(W::Anything) gives Always(Type::Text), |a| Operand::Text(at(a, 0).text());
    "concat"(W::Anything) repeats true gives Always(Type::Text), |a| Operand::Text(a.iter().map(Operand::text).collect());
    "len"(W::Text) gives Always(Type::Number), |a| whole(at(a, 0).text().chars().count());
    "lower"(W::Text) gives Always(Type::Text), |a| text_of(a, str::to_lowercase);
    "upper"(W::Text) gives Always(Type::Text), |a| text_of(a, str::to_uppercase);
    "trim"(W::Text) gives Always(Type::Text), |a| text_of(a, |text| text.trim().to_owned());
    "left"(W::Text, W::Number) gives Always(Type::Text), |a| text_of(a, |text| text.chars().take(count(a, 1)).collect());
    "right"(W::Text, W::Number) gives Always(Type::Text), |a| text_of(a, |text| {
        text.chars().skip(text.chars().count().saturating_sub(count(a, 1))).collect()
    });
    "mid"(W::Text, W::Number, W::Number) gives Always(Type::Text), |a| text_of(a, |text| {
        text.chars().skip(count(a, 1).saturating_sub(1)).take(count(a, 2)).collect()
    });
    "replace"(W::Text, W::Text, W::Text) gives Always(Type::Text), replace;
    "contains"(W::Text, W::Text) gives Always(Type::Boolean), |a| Operand::Boolean(text::fold(&at(a, 0).text()).contains(&text::fold(&at(a, 1).text())));
    "starts_with"(W::Text, W::Text) gives Always(Type::Boolean), |a| Operand::Boolean(text::fold(&at(a, 0).text()).starts_with(&text::fold(&at(a, 1).text())));
    "ends_with"(W::Text, W::Text) gives Always(Type::Boolean), |a| Operand::Boolean(text::fold(&at(a, 0).text()).ends_with(&text::fold(&at(a, 1).text())));

    "count"(W::List) gives Always(Type::Number), |a| match at(a, 0) {
        Operand::List(elements) => whole(elements.len()),
        _ => whole(0),
    };
    "has"(W::List, W::Anything) gives Always(Type::Boolean), |a| match at(a, 0) {
        Operand::List(elements) => Operand::Boolean(elements.contains(&at(a, 1).text())),
        _ => Operand::Boolean(false),
    };
    "join"(W::List, W::Text) least 1 gives Always(Type::Text), |a| match (at(a, 0), at(a, 1)) {
        (Operand::List(elements), Operand::Nothing) => Operand::Text(elements.join(", ")),
        (Operand::List(elements), between) => Operand::Text(elements.join(&between.text())),
        _ => Operand::Nothing,
    };

    "date"(W::Number, W::Number, W::Number) gives Always(Type::Date), |a| made_date(a).map_or(Operand::Nothing, Operand::Date);
    "day_of"(W::Time) gives Always(Type::Date), |a| times::day(at(a, 0)).map_or(Operand::Nothing, Operand::Date);
    "year"(W::Time) gives Always(Type::Number), |a| part(a, |day, _| day.year().into());
    "month"(W::Time) gives Always(Type::Number), |a| part(a, |day, _| day.month().into());
    "day"(W::Time) gives Always(Type::Number), |a| part(a, |day, _| day.day().into());
    "weekday"(W::Time) gives Always(Type::Number), |a| part(a, |day, _| day.weekday().number_from_monday().into());
    "hour"(W::Time) gives Always(Type::Number), |a| part(a, |_, minutes| (minutes / 60).into());
    "minute"(W::Time) gives Always(Type::Number), |a| part(a, |_, minutes| (minutes % 60).into());
    "date_add"(W::Time, W::Number, W::Text) gives First, date_add;
    "date_diff"(W::Time, W::Time, W::Text) gives Always(Type::Number), date_diff;
}

/// The argument at `place`; nothing where it was left out.
fn at(arguments: &[Operand], place: usize) -> &Operand {
    arguments.get(place).unwrap_or(&Operand::Nothing)
}

fn whole(count: usize) -> Operand {
    Operand::Number(i64::try_from(count).unwrap_or(i64::MAX).into())
}

fn number(arguments: &[Operand], of: fn(&Figure) -> Operand) -> Operand {
    match at(arguments, 0) {
        Operand::Number(value) => of(value),
        _ => Operand::Nothing,
    }
}

fn numbers(arguments: &[Operand]) -> impl Iterator<Item = &Figure> {
    arguments.iter().filter_map(|argument| match argument {
        Operand::Number(number) => Some(number),
        _ => None,
    })
}

fn sum(arguments: &[Operand]) -> Operand {
    failed(arguments).unwrap_or_else(|| {
        numbers(arguments).fold(whole(0), |sum, number| match sum {
            Operand::Number(sum) => sum.add(number),
            failed => failed,
        })
    })
}

/// The first of the numbers, in one direction of their order.
fn best(arguments: &[Operand], wanted: Ordering) -> Operand {
    let better = |best, number: &Figure| match best {
        Some(best) if number.order(&best) != wanted => Some(best),
        _ => Some(number.clone()),
    };
    let best = || numbers(arguments).fold(None, better).map_or(Operand::Nothing, Operand::Number);
    failed(arguments).unwrap_or_else(best)
}

/// An argument that has no answer: arguments without a value are left out, this is not.
fn failed(arguments: &[Operand]) -> Option<Operand> {
    arguments.iter().find(|argument| matches!(argument, Operand::Failed(_))).cloned()
}

fn read_number(arguments: &[Operand]) -> Operand {
    match decimal::parse(at(arguments, 0).text().trim()) {
        Some(Ok(number)) => Operand::Number(number.into()),
        Some(Err(loss)) => Operand::Failed(loss.into()),
        None => Operand::Nothing,
    }
}

/// A count of characters; none for less than one.
fn count(arguments: &[Operand], place: usize) -> usize {
    match at(arguments, place) {
        Operand::Number(number) => usize::try_from(number.whole().max(0)).unwrap_or(usize::MAX),
        _ => 0,
    }
}

fn text_of(arguments: &[Operand], of: impl Fn(&str) -> String) -> Operand {
    match at(arguments, 0) {
        Operand::Nothing => Operand::Nothing,
        other => Operand::Text(of(&other.text())),
    }
}

fn round(arguments: &[Operand]) -> Operand {
    let Operand::Number(value) = at(arguments, 0) else { return Operand::Nothing };
    let places = match at(arguments, 1) {
        Operand::Number(places) => places.whole().clamp(-400, 400),
        _ => 0,
    };
    value.round(places, RoundingMode::HalfUp)
}

fn replace(arguments: &[Operand]) -> Operand {
    /// Text that grows past this is cut by whoever stores it, so there is no use in making more.
    const MOST: usize = 100_000;
    let (from, to) = (at(arguments, 1).text(), at(arguments, 2).text());
    text_of(arguments, |text| {
        let places = if from.is_empty() { 0 } else { text.matches(from.as_str()).count() };
        let grows = text.len() + places.saturating_mul(to.len());
        if places == 0 || grows > MOST { text.to_owned() } else { text.replace(from.as_str(), &to) }
    })
}

fn part(arguments: &[Operand], of: fn(NaiveDate, u32) -> i64) -> Operand {
    let operand = at(arguments, 0);
    times::day(operand)
        .map_or(Operand::Nothing, |day| Operand::Number(of(day, times::minutes(operand)).into()))
}

fn made_date(arguments: &[Operand]) -> Option<NaiveDate> {
    let whole = |place| match at(arguments, place) {
        Operand::Number(number) => {
            u16::try_from(number.whole()).ok().filter(|part| (1..=9999).contains(part))
        }
        _ => None,
    };
    NaiveDate::from_ymd_opt(i32::from(whole(0)?), u32::from(whole(1)?), u32::from(whole(2)?))
}

fn date_add(arguments: &[Operand]) -> Operand {
    let Operand::Number(amount) = at(arguments, 1) else { return Operand::Nothing };
    let amount = amount.whole().clamp(-4_000_000_000, 4_000_000_000);
    times::added(at(arguments, 0), amount, &at(arguments, 2).text()).unwrap_or(Operand::Nothing)
}

/// Whole units from the second to the first.
fn date_diff(arguments: &[Operand]) -> Operand {
    let between = times::between(at(arguments, 1), at(arguments, 0), &at(arguments, 2).text());
    between.map_or(Operand::Nothing, |between| Operand::Number(between.into()))
}
