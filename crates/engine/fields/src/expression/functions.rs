//! The functions of the language: what each takes, gives and does stands here and nowhere else.

use super::operand::{Figure, Operand};
use super::times;
use super::types::Type;
use crate::values::decimal;
use crate::values::text;
use bigdecimal::RoundingMode;
use chrono::{Datelike, NaiveDate};
use std::cmp::Ordering;

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
    pub(crate) run: fn(&[Operand]) -> Operand,
}

/// What an argument must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
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

impl Wanted {
    fn word(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Text => "text",
            Self::Boolean => "boolean",
            Self::Time => "date or time",
            Self::List => "list",
            Self::Anything => "any",
            Self::Alike => "value",
        }
    }
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

    /// How many arguments, in words.
    pub(crate) fn arity(&self) -> String {
        match (self.least, self.takes.len()) {
            (least, _) if self.repeats => format!("at least {least} arguments"),
            (1, 1) => "one argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        }
    }

    /// Its name with its arguments: `round(number[, number])`.
    pub(crate) fn signature(&self) -> String {
        let mut arguments = String::new();
        for (place, wanted) in self.takes.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            let is_optional = place >= self.least;
            let (open, close) = if is_optional { ("[", "]") } else { ("", "") };
            arguments += &format!("{open}{comma}{}{close}", wanted.word());
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

/// The function with this name, in whatever case.
pub(crate) fn named(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

/// What was probably meant, as the end of a sentence.
pub(crate) fn hint(name: &str) -> String {
    let near = input::nearest(&name.to_ascii_lowercase(), FUNCTIONS.iter().map(|function| function.name));
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

use Given::{Alike, Always, First};
use Wanted as W;

macro_rules! functions {
    ($($name:literal ($($takes:expr),*) $(least $least:literal)? $(repeats $repeats:literal)? gives $gives:expr, $about:literal, $example:literal => $result:literal, $run:expr;)+) => {
        pub(crate) const FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            takes: &[$($takes),*],
            least: { const TAKES: &[W] = &[$($takes),*]; #[allow(unused_mut, unused_assignments, reason = "set where said")] { let mut least = TAKES.len(); $(least = $least;)? least } },
            repeats: { #[allow(unused_mut, unused_assignments, reason = "set where said")] { let mut repeats = false; $(repeats = $repeats;)? repeats } },
            gives: $gives,
            about: $about,
            example: ($example, $result),
            run: $run,
        }),+];
    };
}

functions! {
    "if"(W::Boolean, W::Alike, W::Alike) least 2 gives Alike,
        "The second argument if the condition is true, otherwise the third, or no value without one.", r#"if(stock > 5, "many", "few")"# => r#""many""#,
        |a| if at(a, 0).is_true() { at(a, 1).clone() } else { at(a, 2).clone() };
    "coalesce"(W::Alike) repeats true gives Alike,
        "The first argument that has a value. An empty text is none.", r#"coalesce(null, "", name)"# => r#""Red Shoe""#,
        |a| a.iter().find(|value| !value.is_empty()).cloned().unwrap_or(Operand::Nothing);
    "is_empty"(W::Anything) gives Always(Type::Boolean),
        "Whether there is no value, an empty text or an empty list.", "is_empty(tags)" => "false",
        |a| Operand::Boolean(at(a, 0).is_empty());
    "and"(W::Boolean) repeats true gives Always(Type::Boolean),
        "Whether all arguments are true.", "and(active, stock > 5)" => "true",
        |a| Operand::Boolean(a.iter().all(Operand::is_true));
    "or"(W::Boolean) repeats true gives Always(Type::Boolean),
        "Whether any argument is true.", "or(not active, stock > 5)" => "true",
        |a| Operand::Boolean(a.iter().any(Operand::is_true));

    "abs"(W::Number) gives Always(Type::Number),
        "The number without its sign.", "abs(-2.5)" => "2.5",
        |a| number(a, Figure::abs);
    "floor"(W::Number) gives Always(Type::Number),
        "The largest integer that is not above the number.", "floor(-2.5)" => "-3",
        |a| number(a, |value| value.round(0, RoundingMode::Floor));
    "ceil"(W::Number) gives Always(Type::Number),
        "The smallest integer that is not below the number.", "ceil(2.1)" => "3",
        |a| number(a, |value| value.round(0, RoundingMode::Ceiling));
    "sqrt"(W::Number) gives Always(Type::Number),
        "The square root.", "sqrt(16)" => "4",
        |a| number(a, Figure::sqrt);
    "round"(W::Number, W::Number) least 1 gives Always(Type::Number),
        "The number, rounded to so many decimal places; 0 if not given. Halves are rounded away from zero.", "round(2.345, 2)" => "2.35",
        round;
    "power"(W::Number, W::Number) gives Always(Type::Number),
        "The first number to the power of the second.", "power(2, 10)" => "1024",
        |a| match (at(a, 0), at(a, 1)) {
        (Operand::Number(base), Operand::Number(exponent)) => base.power(exponent),
        _ => Operand::Nothing,
    };
    "sum"(W::Number) repeats true gives Always(Type::Number),
        "The sum of the arguments that have a value.", "sum(price, stock, 3)" => "10.1",
        sum;
    "min"(W::Number) repeats true gives Always(Type::Number),
        "The smallest of the arguments that have a value.", "min(price, stock, 3)" => "0.1",
        |a| best(a, Ordering::Less);
    "max"(W::Number) repeats true gives Always(Type::Number),
        "The largest of the arguments that have a value.", "max(price, stock, 3)" => "7",
        |a| best(a, Ordering::Greater);
    "number"(W::Text) gives Always(Type::Number),
        "The number that a text shows, or no value if it shows none.", r#"number("12.50")"# => "12.5",
        read_number;

    "text"(W::Anything) gives Always(Type::Text),
        "The value as text.", "text(since)" => r#""2024-02-29""#,
        |a| Operand::Text(at(a, 0).text());
    "concat"(W::Anything) repeats true gives Always(Type::Text),
        "The arguments as texts, one after another, as `&` joins two.", r#"concat(name, ": ", stock)"# => r#""Red Shoe: 7""#,
        |a| Operand::Text(a.iter().map(Operand::text).collect());
    "len"(W::Text) gives Always(Type::Number),
        "The number of characters.", "len(name)" => "8",
        |a| whole(at(a, 0).text().chars().count());
    "lower"(W::Text) gives Always(Type::Text),
        "The text in lower case.", "lower(name)" => r#""red shoe""#,
        |a| text_of(a, str::to_lowercase);
    "upper"(W::Text) gives Always(Type::Text),
        "The text in upper case.", "upper(name)" => r#""RED SHOE""#,
        |a| text_of(a, str::to_uppercase);
    "trim"(W::Text) gives Always(Type::Text),
        "The text without the spaces around it.", r#"trim("  red ")"# => r#""red""#,
        |a| text_of(a, |text| text.trim().to_owned());
    "left"(W::Text, W::Number) gives Always(Type::Text),
        "The first characters.", "left(name, 3)" => r#""Red""#,
        |a| text_of(a, |text| text.chars().take(count(a, 1)).collect());
    "right"(W::Text, W::Number) gives Always(Type::Text),
        "The last characters.", "right(name, 4)" => r#""Shoe""#,
        |a| text_of(a, |text| {
        text.chars().skip(text.chars().count().saturating_sub(count(a, 1))).collect()
    });
    "mid"(W::Text, W::Number, W::Number) gives Always(Type::Text),
        "So many characters from a position on; the first character has position 1.", "mid(name, 5, 2)" => r#""Sh""#,
        |a| text_of(a, |text| {
        text.chars().skip(count(a, 1).saturating_sub(1)).take(count(a, 2)).collect()
    });
    "replace"(W::Text, W::Text, W::Text) gives Always(Type::Text),
        "The first text, with the third in each place of the second.", r#"replace(name, "Red", "Blue")"# => r#""Blue Shoe""#,
        replace;
    "contains"(W::Text, W::Text) gives Always(Type::Boolean),
        "Whether the first text contains the second, regardless of case and accents.", r#"contains(name, "SHO")"# => "true",
        |a| Operand::Boolean(text::fold(&at(a, 0).text()).contains(&text::fold(&at(a, 1).text())));
    "starts_with"(W::Text, W::Text) gives Always(Type::Boolean),
        "Whether the first text begins with the second, regardless of case and accents.", r#"starts_with(name, "red")"# => "true",
        |a| Operand::Boolean(text::fold(&at(a, 0).text()).starts_with(&text::fold(&at(a, 1).text())));
    "ends_with"(W::Text, W::Text) gives Always(Type::Boolean),
        "Whether the first text ends with the second, regardless of case and accents.", r#"ends_with(name, "red")"# => "false",
        |a| Operand::Boolean(text::fold(&at(a, 0).text()).ends_with(&text::fold(&at(a, 1).text())));

    "count"(W::List) gives Always(Type::Number),
        "The number of elements.", "count(tags)" => "2",
        |a| match at(a, 0) {
        Operand::List(elements) => whole(elements.len()),
        _ => whole(0),
    };
    "has"(W::List, W::Anything) gives Always(Type::Boolean),
        "Whether an element of the list is the second argument. Choices are named by their labels.", r#"has(tags, "Sale")"# => "true",
        |a| match at(a, 0) {
        Operand::List(elements) => Operand::Boolean(elements.contains(&at(a, 1).text())),
        _ => Operand::Boolean(false),
    };
    "join"(W::List, W::Text) least 1 gives Always(Type::Text),
        "The elements as one text, with the second argument between them, or a comma and a space.", r#"join(tags, "/")"# => r#""New/Sale""#,
        |a| match (at(a, 0), at(a, 1)) {
        (Operand::List(elements), Operand::Nothing) => Operand::Text(elements.join(", ")),
        (Operand::List(elements), between) => Operand::Text(elements.join(&between.text())),
        _ => Operand::Nothing,
    };

    "date"(W::Number, W::Number, W::Number) gives Always(Type::Date),
        "The date of a year, a month and a day, or no value if the calendar has no such day.", "date(2024, 2, 29)" => r#""2024-02-29""#,
        |a| made_date(a).map_or(Operand::Nothing, Operand::Date);
    "day_of"(W::Time) gives Always(Type::Date),
        "The date of a time.", "day_of(sold_at)" => r#""2026-11-21""#,
        |a| times::day(at(a, 0)).map_or(Operand::Nothing, Operand::Date);
    "year"(W::Time) gives Always(Type::Number),
        "The year.", "year(since)" => "2024",
        |a| part(a, |day, _| day.year().into());
    "month"(W::Time) gives Always(Type::Number),
        "The month, from 1 to 12.", "month(since)" => "2",
        |a| part(a, |day, _| day.month().into());
    "day"(W::Time) gives Always(Type::Number),
        "The day of the month, from 1 to 31.", "day(since)" => "29",
        |a| part(a, |day, _| day.day().into());
    "weekday"(W::Time) gives Always(Type::Number),
        "The day of the week, from 1 for Monday to 7 for Sunday.", "weekday(since)" => "4",
        |a| part(a, |day, _| day.weekday().number_from_monday().into());
    "hour"(W::Time) gives Always(Type::Number),
        "The hour, from 0 to 23; 0 for a date.", "hour(sold_at)" => "23",
        |a| part(a, |_, minutes| (minutes / 60).into());
    "minute"(W::Time) gives Always(Type::Number),
        "The minute, from 0 to 59; 0 for a date.", "minute(sold_at)" => "30",
        |a| part(a, |_, minutes| (minutes % 60).into());
    "date_add"(W::Time, W::Number, W::Text) gives First,
        "The date or time so many units later, or earlier if the number is negative.", r#"date_add(since, 1, "year")"# => r#""2025-02-28""#,
        date_add;
    "date_diff"(W::Time, W::Time, W::Text) gives Always(Type::Number),
        "The whole units from the second date or time to the first.", r#"date_diff(sold_at, since, "days")"# => "996",
        date_diff;
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
