//! The functions that formulas have too.

use super::function::{Arguments, Given, LazyArguments, functions, whole};
use super::wanted::Wanted as W;
use crate::values::failure::{Failure, decided};
use crate::values::number::Number;
use crate::values::text;
use crate::values::times;
use crate::values::types::Type;
use crate::values::value::Value;
use bigdecimal::RoundingMode;
use chrono::{Datelike, NaiveDate};
use std::borrow::Cow;
use std::cmp::Ordering;

use Given::{Alike, Always, First};

functions! {
    "if"(W::Boolean, W::Alike, W::Alike) least 2 gives Alike,
        "The second argument if the condition is true, otherwise the third, or no value without one.", r#"if(stock > 5, "many", "few")"# => r#""many""#,
        Lazy choose;
    "coalesce"(W::Alike) repeats true gives Alike,
        "The first argument that has a value. An empty text is none.", r#"coalesce(null, "", name)"# => r#""Red Shoe""#,
        Lazy coalesce;
    "is_empty"(W::Anything) gives Always(Type::Boolean),
        "Whether there is no value, an empty text or an empty list.", "is_empty(tags)" => "false",
        Lazy is_empty;
    "and"(W::Boolean) repeats true gives Always(Type::Boolean),
        "Whether all arguments are true.", "and(active, stock > 5)" => "true",
        Lazy |a| all(a, true);
    "or"(W::Boolean) repeats true gives Always(Type::Boolean),
        "Whether any argument is true.", "or(not active, stock > 5)" => "true",
        Lazy |a| all(a, false);

    "abs"(W::Number) gives Always(Type::Number),
        "The number without its sign.", "abs(-2.5)" => "2.5",
        Plain |a| number(a, Number::abs);
    "floor"(W::Number) gives Always(Type::Number),
        "The largest integer that is not above the number.", "floor(-2.5)" => "-3",
        Plain |a| number(a, |value| value.round(0, RoundingMode::Floor));
    "ceil"(W::Number) gives Always(Type::Number),
        "The smallest integer that is not below the number.", "ceil(2.1)" => "3",
        Plain |a| number(a, |value| value.round(0, RoundingMode::Ceiling));
    "sqrt"(W::Number) gives Always(Type::Number),
        "The square root.", "sqrt(16)" => "4",
        Plain |a| number(a, Number::sqrt);
    "round"(W::Number, W::Number) least 1 gives Always(Type::Number),
        "The number, rounded to so many decimal places; 0 if not given. Halves are rounded away from zero.", "round(2.345, 2)" => "2.35",
        Plain round;
    "power"(W::Number, W::Number) gives Always(Type::Number),
        "The first number to the power of the second.", "power(2, 10)" => "1024",
        Plain power;
    "sum"(W::Numbers) repeats true gives Always(Type::Number),
        "The sum of the arguments that have a value.", "sum(price, stock, 3)" => "10.1",
        Plain sum;
    "min"(W::Numbers) repeats true gives Always(Type::Number),
        "The smallest of the arguments that have a value.", "min(price, stock, 3)" => "0.1",
        Plain |a| best(a, Ordering::Less);
    "max"(W::Numbers) repeats true gives Always(Type::Number),
        "The largest of the arguments that have a value.", "max(price, stock, 3)" => "7",
        Plain |a| best(a, Ordering::Greater);
    "number"(W::Text) gives Always(Type::Number),
        "The number that a text shows, or no value if it shows none.", r#"number("12.50")"# => "12.5",
        Plain read_number;

    "text"(W::Anything) gives Always(Type::Text),
        "The value as text.", "text(since)" => r#""2024-02-29""#,
        Plain text_of;
    "concat"(W::Anything) repeats true gives Always(Type::Text),
        "The arguments as texts, one after another, as `&` joins two.", r#"concat(name, ": ", stock)"# => r#""Red Shoe: 7""#,
        Plain concat;
    "len"(W::Text) gives Always(Type::Number),
        "The number of characters.", "len(name)" => "8",
        Plain |a| Ok(whole(a.text(0).chars().count()));
    "lower"(W::Text) gives Always(Type::Text),
        "The text in lower case.", "lower(name)" => r#""red shoe""#,
        Plain |a| a.of_text(str::to_lowercase);
    "upper"(W::Text) gives Always(Type::Text),
        "The text in upper case.", "upper(name)" => r#""RED SHOE""#,
        Plain |a| a.of_text(str::to_uppercase);
    "trim"(W::Text) gives Always(Type::Text),
        "The text without the spaces around it.", r#"trim("  red ")"# => r#""red""#,
        Plain |a| a.of_text(|text| text.trim().to_owned());
    "left"(W::Text, W::Number) gives Always(Type::Text),
        "The first characters.", "left(name, 3)" => r#""Red""#,
        Plain |a| a.of_text(|text| text.chars().take(a.count(1)).collect());
    "right"(W::Text, W::Number) gives Always(Type::Text),
        "The last characters.", "right(name, 4)" => r#""Shoe""#,
        Plain |a| a.of_text(|text| {
        text.chars().skip(text.chars().count().saturating_sub(a.count(1))).collect()
    });
    "mid"(W::Text, W::Number, W::Number) gives Always(Type::Text),
        "So many characters from a position on; the first character has position 1.", "mid(name, 5, 2)" => r#""Sh""#,
        Plain |a| a.of_text(|text| {
        text.chars().skip(a.count(1).saturating_sub(1)).take(a.count(2)).collect()
    });
    "replace"(W::Text, W::Text, W::Text) gives Always(Type::Text),
        "The first text, with the third in each place of the second.", r#"replace(name, "Red", "Blue")"# => r#""Blue Shoe""#,
        Plain replace;
    "contains"(W::TextOrList, W::Text) gives Always(Type::Boolean),
        "Whether the first text contains the second, regardless of case and accents.", r#"contains(name, "SHO")"# => "true",
        Plain contains;
    "starts_with"(W::Text, W::Text) gives Always(Type::Boolean),
        "Whether the first text begins with the second, regardless of case and accents.", r#"starts_with(name, "red")"# => "true",
        Plain |a| Ok(Value::Boolean(text::fold(&a.text(0)).starts_with(text::fold(&a.text(1)).as_str())));
    "ends_with"(W::Text, W::Text) gives Always(Type::Boolean),
        "Whether the first text ends with the second, regardless of case and accents.", r#"ends_with(name, "red")"# => "false",
        Plain |a| Ok(Value::Boolean(text::fold(&a.text(0)).ends_with(text::fold(&a.text(1)).as_str())));

    "count"(W::List) gives Always(Type::Number),
        "The number of elements.", "count(tags)" => "2",
        Plain |a| Ok(whole(a.elements(0)?.len()));
    "has"(W::List, W::Anything) gives Always(Type::Boolean),
        "Whether an element of the list is the second argument. Choices are named by their labels.", r#"has(tags, "Sale")"# => "true",
        Plain has;
    "join"(W::List, W::Text) least 1 gives Always(Type::Text),
        "The elements as one text, with the second argument between them, or a comma and a space.", r#"join(tags, "/")"# => r#""New/Sale""#,
        Plain join;

    "date"(W::Number, W::Number, W::Number) gives Always(Type::Date),
        "The date of a year, a month and a day, or no value if the calendar has no such day.", "date(2024, 2, 29)" => r#""2024-02-29""#,
        Plain |a| Ok(made_date(a).map_or(Value::Null, Value::Date));
    "day_of"(W::Time) gives Always(Type::Date),
        "The date of a time.", "day_of(sold_at)" => r#""2026-11-21""#,
        Plain |a| Ok(times::day(a.at(0)).map_or(Value::Null, Value::Date));
    "year"(W::Time) gives Always(Type::Number),
        "The year.", "year(since)" => "2024",
        Plain |a| part(a, |day, _| day.year().into());
    "month"(W::Time) gives Always(Type::Number),
        "The month, from 1 to 12.", "month(since)" => "2",
        Plain |a| part(a, |day, _| day.month().into());
    "day"(W::Time) gives Always(Type::Number),
        "The day of the month, from 1 to 31.", "day(since)" => "29",
        Plain |a| part(a, |day, _| day.day().into());
    "weekday"(W::Time) gives Always(Type::Number),
        "The day of the week, from 1 for Monday to 7 for Sunday.", "weekday(since)" => "4",
        Plain |a| part(a, |day, _| day.weekday().number_from_monday().into());
    "hour"(W::Time) gives Always(Type::Number),
        "The hour, from 0 to 23; 0 for a date.", "hour(sold_at)" => "23",
        Plain |a| part(a, |_, minutes| (minutes / 60).into());
    "minute"(W::Time) gives Always(Type::Number),
        "The minute, from 0 to 59; 0 for a date.", "minute(sold_at)" => "30",
        Plain |a| part(a, |_, minutes| (minutes % 60).into());
    "date_add"(W::Time, W::Number, W::Text) gives First,
        "The date or time so many units later, or earlier if the number is negative.", r#"date_add(since, 1, "year")"# => r#""2025-02-28""#,
        Plain date_add;
    "date_diff"(W::Time, W::Time, W::Text) gives Always(Type::Number),
        "The whole units from the second date or time to the first.", r#"date_diff(sold_at, since, "days")"# => "996",
        Plain date_diff;
}

fn choose<'a>(arguments: &LazyArguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let is_true = arguments.is_true(arguments.value(0)?)?;
    arguments.value(if is_true { 1 } else { 2 })
}

/// The first value, though others before it fail; without one, the first failure.
fn coalesce<'a>(arguments: &LazyArguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let mut failure = None;
    for value in arguments.values() {
        match value {
            Ok(value) if value.is_empty() => {}
            Ok(value) => return Ok(value),
            Err(limit) if limit.is_limit() => return Err(limit),
            Err(other) => failure = failure.or(Some(other)),
        }
    }
    failure.map_or(Ok(Value::Null), Err)
}

/// Also true for what fails: it has no value.
fn is_empty<'a>(arguments: &LazyArguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    match arguments.value(0) {
        Ok(value) => Ok(Value::Boolean(value.is_empty())),
        Err(limit) if limit.is_limit() => Err(limit),
        Err(_) => Ok(Value::Boolean(true)),
    }
}

fn all<'a>(arguments: &LazyArguments<'_, 'a>, wanted: bool) -> Result<Value<'a>, Failure> {
    decided(arguments.values().map(|value| arguments.is_true(value?)), wanted).map(Value::Boolean)
}

fn number<'a>(
    arguments: &Arguments<'_, 'a>,
    of: fn(&Number) -> Result<Number, Failure>,
) -> Result<Value<'a>, Failure> {
    arguments.number(0).map_or(Ok(Value::Null), |number| of(number).map(Value::Number))
}

fn power<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    match (arguments.number(0), arguments.number(1)) {
        (Some(base), Some(exponent)) => base.power(exponent).map(Value::Number),
        _ => Ok(Value::Null),
    }
}

fn sum<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let mut numbers = arguments.numbers()?.into_iter();
    numbers.try_fold(Number::from(0), |sum, number| sum.add(&number)).map(Value::Number)
}

/// The first of the numbers, in one direction of their order.
fn best<'a>(arguments: &Arguments<'_, 'a>, wanted: Ordering) -> Result<Value<'a>, Failure> {
    let better = |best: Number, number: Number| if number.order(&best) == wanted { number } else { best };
    Ok(arguments.numbers()?.into_iter().reduce(better).map_or(Value::Null, Value::Number))
}

fn read_number<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    match crate::values::decimal::parse(arguments.text(0).trim()) {
        Some(number) => Ok(Value::Number(number?.into())),
        None => Ok(Value::Null),
    }
}

fn text_of<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let mut text = String::new();
    arguments.environment.append(&mut text, arguments.at(0))?;
    Ok(Value::text(text))
}

fn concat<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let mut text = String::new();
    for value in arguments.values {
        arguments.environment.append(&mut text, value)?;
    }
    Ok(Value::text(text))
}

fn round<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let Some(value) = arguments.number(0) else { return Ok(Value::Null) };
    let places = arguments.number(1).map_or(0, |places| places.whole().clamp(-400, 400));
    value.round(places, RoundingMode::HalfUp).map(Value::Number)
}

fn replace<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let (from, to) = (arguments.text(1), arguments.text(2));
    arguments.of_text_or_fail(|text| {
        let places = if from.is_empty() { 0 } else { text.matches(&*from).count() };
        arguments.environment.expect_short(places.saturating_mul(to.len()))?;
        Ok(if places == 0 { text.to_owned() } else { text.replace(&*from, &to) })
    })
}

fn contains<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    match arguments.at(0) {
        Value::List(_) => has(arguments),
        value => Ok(Value::Boolean(text::fold(&value.to_text()).contains(&text::fold(&arguments.text(1))))),
    }
}

fn has<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let wanted = arguments.text(1);
    let mut elements = arguments.elements(0)?.iter();
    Ok(Value::Boolean(elements.any(|element| Value::of(element).to_text() == wanted)))
}

fn join<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    if !arguments.has(0) {
        return Ok(Value::Null);
    }
    let between = if arguments.has(1) { arguments.text(1) } else { Cow::Borrowed(", ") };
    let mut text = String::new();
    for (place, element) in arguments.elements(0)?.iter().enumerate() {
        if place > 0 {
            text.push_str(&between);
        }
        arguments.environment.append(&mut text, &Value::of(element))?;
    }
    Ok(Value::text(text))
}

fn part<'a>(arguments: &Arguments<'_, 'a>, of: fn(NaiveDate, u32) -> i64) -> Result<Value<'a>, Failure> {
    let value = arguments.at(0);
    Ok(times::day(value).map_or(Value::Null, |day| Value::Number(of(day, times::minutes(value)).into())))
}

fn made_date(arguments: &Arguments<'_, '_>) -> Option<NaiveDate> {
    let whole = |place| {
        let part = u16::try_from(arguments.number(place)?.whole()).ok();
        part.filter(|part| (1..=9999).contains(part))
    };
    NaiveDate::from_ymd_opt(i32::from(whole(0)?), u32::from(whole(1)?), u32::from(whole(2)?))
}

fn date_add<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let Some(amount) = arguments.number(1) else { return Ok(Value::Null) };
    let amount = amount.whole().clamp(-4_000_000_000, 4_000_000_000);
    Ok(times::added(arguments.at(0), amount, &arguments.text(2)).unwrap_or(Value::Null))
}

/// Whole units from the second to the first.
fn date_diff<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let between = times::between(arguments.at(1), arguments.at(0), &arguments.text(2));
    Ok(between.map_or(Value::Null, |between| Value::Number(between.into())))
}
