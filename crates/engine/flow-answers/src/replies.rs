//! Checks of the answers to questions.

use chrono::NaiveDate;
use expressions::{decimal, text};
use fields::value::email;
use flow_graphs::config::{Ask, FlowChoice, FlowExpectedAnswer};
use model::{FileId, MessageId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A message that answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The message.
    pub id: MessageId,
    /// The text, the caption, or the transcript of a voice note.
    pub text: String,
    /// The id of the button or row that the contact chose.
    #[serde(default)]
    pub reply_id: Option<String>,
    /// The files.
    #[serde(default)]
    pub file_ids: Vec<FileId>,
}

/// An answer that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitting {
    /// The port.
    pub port: String,
    /// The value.
    pub value: Value,
    /// What the contact wrote.
    pub raw: String,
}

/// What a check needs besides the question.
pub struct Locale<'a> {
    /// Whether dates in numbers begin with the month.
    pub month_first: bool,
    /// Returns a telephone number in international form.
    pub phone: &'a dyn Fn(&str) -> Option<String>,
}

/// Returns the answer among messages. The last message that fits counts. `None` if no message fits.
pub fn answer(ask: &Ask, buttons: &[String], replies: &[Reply], locale: &Locale<'_>) -> Option<Fitting> {
    let choice = replies.iter().rev().find_map(|reply| {
        let choice = choice(&ask.choices, buttons, reply)?;
        Some(Fitting { port: choice.id.clone(), value: json!(choice.id), raw: reply.text.clone() })
    });
    let next = |(value, raw)| Fitting { port: "next".to_owned(), value, raw };
    choice.or_else(|| match ask.expects {
        FlowExpectedAnswer::Choice => None,
        FlowExpectedAnswer::Text => texts(replies).map(|said| next((json!(said), said))),
        FlowExpectedAnswer::File => replies.iter().rev().find_map(|reply| {
            let file = reply.file_ids.first()?;
            Some(next((json!(file), reply.text.clone())))
        }),
        expected => replies.iter().rev().find_map(|reply| {
            let said = reply.text.trim();
            let value = match expected {
                FlowExpectedAnswer::Number => number(said),
                FlowExpectedAnswer::Email => email(said).map(|address| json!(address.to_lowercase())),
                FlowExpectedAnswer::Phone => (locale.phone)(said).map(Value::from),
                _ => date(said, locale.month_first).map(|date| json!(date.to_string())),
            };
            value.map(|value| next((value, reply.text.clone())))
        }),
    })
}

/// Joins the texts that the contact wrote. Files alone are no text.
fn texts(replies: &[Reply]) -> Option<String> {
    let said: Vec<&str> = replies
        .iter()
        .filter(|reply| reply.file_ids.is_empty() || !reply.text.starts_with('['))
        .map(|reply| reply.text.trim())
        .filter(|said| !said.is_empty())
        .collect();
    (!said.is_empty()).then(|| said.join("\n"))
}

/// The choice that a message names: by a button or a row, or by its title or id as text.
fn choice<'a>(choices: &'a [FlowChoice], buttons: &[String], reply: &Reply) -> Option<&'a FlowChoice> {
    let pressed = reply.reply_id.as_ref().and_then(|id| buttons.iter().position(|button| button == id));
    if let Some(place) = pressed {
        return choices.get(place);
    }
    let key = |said: &str| {
        let folded = text::base(&text::fold(said));
        folded.trim_matches(|c: char| c.is_whitespace() || c.is_ascii_punctuation()).to_owned()
    };
    let said = key(&reply.text);
    let named = choices.iter().find(|choice| !said.is_empty() && key(&choice.title) == said);
    named.or_else(|| choices.iter().find(|choice| choice.id == reply.text.trim()))
}

/// Reads a number exactly. A comma followed by one or two digits separates decimals; any other comma or space is not a number,
/// because it would be a guess.
fn number(said: &str) -> Option<Value> {
    let said = said.strip_prefix('+').unwrap_or(said);
    let with_point = match said.split_once(',') {
        Some((whole, decimals)) if matches!(decimals.len(), 1 | 2) => format!("{whole}.{decimals}"),
        Some(_) => return None,
        None => said.to_owned(),
    };
    // People write `007`, which JSON does not know.
    let (sign, digits) =
        with_point.strip_prefix('-').map_or(("", with_point.as_str()), |digits| ("-", digits));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let bare = digits.trim_start_matches('0');
    let zero = if bare.starts_with(|first: char| first.is_ascii_digit()) { "" } else { "0" };
    let number = decimal::parse(&format!("{sign}{zero}{bare}"))?.ok()?;
    decimal::kept(&number).ok()
}

/// Reads a date: `2026-12-24`, or numbers with the year at the end. Two numbers that can both be the month are in the order of
/// the country of the business.
fn date(said: &str, month_first: bool) -> Option<NaiveDate> {
    if let Ok(date) = said.parse() {
        return Some(date);
    }
    let parts: Vec<&str> = said.split(['.', '/', '-']).map(str::trim).collect();
    let [first, second, year] = parts.as_slice() else { return None };
    if year.len() != 4 {
        return None;
    }
    let (first, second): (u32, u32) = (first.parse().ok()?, second.parse().ok()?);
    let is_month_first = (month_first && first <= 12) || second > 12;
    let (month, day) = if is_month_first { (first, second) } else { (second, first) };
    NaiveDate::from_ymd_opt(year.parse().ok()?, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{FileId, MessageId};

    fn reply(text: &str) -> Reply {
        Reply { id: MessageId(1), text: text.to_owned(), reply_id: None, file_ids: Vec::new() }
    }

    fn value(expects: &str, said: &str) -> Option<Value> {
        let ask: Ask = serde_json::from_value(json!({ "text": "?", "expects": expects })).unwrap();
        let phone = |text: &str| text.starts_with('+').then(|| text.replace(' ', ""));
        let locale = Locale { month_first: false, phone: &phone };
        answer(&ask, &[], &[reply(said)], &locale).map(|fitting| fitting.value)
    }

    #[test]
    fn numbers_are_exact() {
        for (said, number) in [
            ("42", "42"),
            ("007", "7"),
            (" 0.30 ", "0.3"),
            ("12,5", "12.5"),
            ("-3", "-3"),
            ("+4", "4"),
            ("0", "0"),
        ] {
            assert_eq!(
                value("number", said).map(|value| value.to_string()).as_deref(),
                Some(number),
                "{said}"
            );
        }
        for said in ["", "many", "1,000", "1 000", "12a", "1e999", "NaN", "-", "9007199254740993.5"] {
            assert_eq!(value("number", said), None, "{said}");
        }
    }

    #[test]
    fn dates_are_read_as_people_write_them() {
        for said in ["2026-12-24", "24.12.2026", "24/12/2026", "24-12-2026", "12/24/2026"] {
            assert_eq!(value("date", said), Some(json!("2026-12-24")), "{said}");
        }
        assert_eq!(date("03/04/2026", false).unwrap().to_string(), "2026-04-03");
        assert_eq!(date("03/04/2026", true).unwrap().to_string(), "2026-03-04");
        for said in ["tomorrow", "31.02.2026", "24.12.26", "1.2.3.2026", "2026"] {
            assert_eq!(value("date", said), None, "{said}");
        }
    }

    #[test]
    fn other_answers_are_checked() {
        assert_eq!(value("email", "Ana@Example.com"), Some(json!("ana@example.com")));
        assert_eq!(value("email", "ana at example.com"), None);
        assert_eq!(value("phone", "+34 600 000 000"), Some(json!("+34600000000")));
        assert_eq!(value("phone", "call me"), None);
        assert_eq!(value("text", "  Blue \n"), Some(json!("Blue")));
        assert_eq!(value("text", " "), None);
        assert_eq!(value("file", "[image]"), None);
    }

    #[test]
    fn a_file_is_an_answer_and_no_text() {
        let file = Reply { file_ids: vec![FileId(7)], ..reply("[image]") };
        let ask = |expects: &str| serde_json::from_value(json!({ "text": "?", "expects": expects })).unwrap();
        let locale = Locale { month_first: false, phone: &|_| None };
        let found = answer(&ask("file"), &[], std::slice::from_ref(&file), &locale).unwrap();
        assert_eq!((found.value, found.port.as_str()), (json!(7), "next"));
        assert_eq!(answer(&ask("text"), &[], &[file], &locale), None);
    }

    #[test]
    fn choices_are_pressed_or_typed() {
        let choices = json!([{ "id": "yes", "title": "Sí, por favor" }, { "id": "no", "title": "No" }]);
        let ask: Ask =
            serde_json::from_value(json!({ "text": "?", "expects": "choice", "choices": choices })).unwrap();
        let buttons = ["flow:1:yes".to_owned(), "flow:1:no".to_owned()];
        let locale = Locale { month_first: false, phone: &|_| None };
        let port = |reply: Reply| answer(&ask, &buttons, &[reply], &locale).map(|fitting| fitting.port);
        let pressed = Reply { reply_id: Some("flow:1:no".to_owned()), ..reply("No") };
        assert_eq!(port(pressed).as_deref(), Some("no"));
        assert_eq!(port(reply("si, POR favor!")).as_deref(), Some("yes"));
        assert_eq!(port(reply("no")).as_deref(), Some("no"));
        assert_eq!(port(reply("nothing")), None);
    }
}
