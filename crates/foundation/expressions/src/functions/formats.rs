//! Functions that write values for people.

use super::function::{Arguments, Given, functions};
use super::wanted::Wanted as W;
use crate::values::failure::Failure;
use crate::values::moment::Moment;
use crate::values::types::Type;
use crate::values::value::Value;
use bigdecimal::RoundingMode;
use chrono::format::{Item, StrftimeItems};
use chrono::{NaiveDateTime, NaiveTime};
use chrono_tz::Tz;
use std::fmt::Write;

use Given::Always;

functions! {
    "now"() gives Always(Type::Time),
        "The time of the evaluation. Steps that are repeated see the same time.", "year(now())" => "2026",
        Plain |a| Ok(Value::Time(Moment::new(a.environment.now, a.environment.zone)));
    "format_date"(W::Time, W::Text, W::Text) least 2 gives Always(Type::Text),
        "The date or time in a format of strftime, and in the time zone that the third argument names. As a filter it may be called `date`.", r#"sold_at | date: "%d.%m.%Y %H:%M", "Europe/Madrid""# => r#""22.11.2026 00:30""#,
        Plain format_date;
    "currency"(W::Number, W::Text) gives Always(Type::Text),
        "The amount with the ISO 4217 code of its currency, and as many decimal places as that has.", r#"currency(1234.5, "EUR")"# => r#""EUR 1,234.50""#,
        Plain currency;
    "phone"(W::Text) gives Always(Type::Text),
        "The telephone number with its `+` and digits only.", r#"phone("+34 (600) 12-34-56")"# => r#""+34600123456""#,
        Plain |a| a.of_text(|text| {
            let plus = text.trim_start().starts_with('+').then_some('+');
            plus.into_iter().chain(text.chars().filter(char::is_ascii_digit)).collect()
        });
    "mask"(W::Text, W::Number) least 1 gives Always(Type::Text),
        "The text with a `*` for each character but the last four, or as many as the second argument says.", r#"mask("4111111111111111")"# => r#""************1111""#,
        Plain mask;
}

fn format_date<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let (format, zone) = (arguments.text(1), arguments.text(2));
    let items: Vec<Item<'_>> = StrftimeItems::new(&format).collect();
    if items.contains(&Item::Error) {
        return Err(Failure::InvalidArgument(format!(
            "has the format {format:?}, which strftime does not know"
        )));
    }
    let zone: Option<Tz> = match &*zone {
        "" => None,
        name => Some(name.parse().map_err(|_| {
            Failure::InvalidArgument(format!("has the time zone {name:?}, which does not exist"))
        })?),
    };
    let mut text = String::new();
    let written = match arguments.at(0) {
        Value::Date(day) => {
            let midnight = NaiveDateTime::new(*day, NaiveTime::MIN).and_utc();
            write!(text, "{}", midnight.format_with_items(items.iter()))
        }
        Value::Time(moment) => {
            let local = moment.instant().with_timezone(&zone.unwrap_or(moment.zone));
            write!(text, "{}", local.format_with_items(items.iter()))
        }
        _ => return Ok(Value::Null),
    };
    written.map_err(|_| {
        Failure::InvalidArgument(format!("has the format {format:?}, which cannot be written"))
    })?;
    arguments.environment.expect_short(text.len())?;
    Ok(Value::text(text))
}

fn currency<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let Some(amount) = arguments.number(0) else { return Ok(Value::Null) };
    let code = arguments.text(1).to_uppercase();
    let places = match code.as_str() {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "VND"
        | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase()) => 2,
        _ => {
            return Err(Failure::InvalidArgument(format!(
                "has the currency {code:?}, which is no ISO 4217 code"
            )));
        }
    };
    let rounded = amount.round(places, RoundingMode::HalfUp)?;
    let digits = rounded.decimal().abs().with_scale(places).to_plain_string();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut text = format!("{code} {}", if rounded.order(&0.into()).is_lt() { "-" } else { "" });
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    Ok(Value::text(text))
}

fn mask<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let shown = if arguments.has(1) { arguments.count(1) } else { 4 };
    arguments.of_text(|text| {
        let hidden = text.chars().count().saturating_sub(shown);
        text.chars().enumerate().map(|(place, letter)| if place < hidden { '*' } else { letter }).collect()
    })
}
