//! JSON as models and tools write it: read leniently, and kept as text where parsing would change it.

use input::numbers;
use model::JsonText;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// Returns JSON without whitespace between its tokens, and with the mistakes mended that strict parsers refuse: a byte
/// order mark, half a surrogate pair (which becomes U+FFFD), bare control characters in texts, and `NaN` and
/// `Infinity`, which become `null`. Numbers keep their digits.
pub fn tidy(text: &str) -> String {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tidied = String::with_capacity(rest.len());
    while let Some(first) = rest.chars().next() {
        rest = if first == '"' {
            tidy_string(rest.get(1..).unwrap_or_default(), &mut tidied)
        } else if let Some(behind) = without_number(rest) {
            tidied.push_str("null");
            behind
        } else {
            if !matches!(first, ' ' | '\t' | '\n' | '\r') {
                tidied.push(first);
            }
            rest.get(first.len_utf8()..).unwrap_or_default()
        };
    }
    tidied
}

/// Returns what is behind a word that Python and JavaScript print for a number that JSON does not have.
fn without_number(text: &str) -> Option<&str> {
    ["NaN", "Infinity", "-Infinity"].iter().find_map(|word| text.strip_prefix(word))
}

/// Copies the rest of a string, up to its closing quote. Returns what is behind it.
fn tidy_string<'a>(mut rest: &'a str, tidied: &mut String) -> &'a str {
    tidied.push('"');
    loop {
        let end = rest.find(|letter: char| letter == '"' || letter == '\\' || letter < ' ');
        let (plain, special) = rest.split_at(end.unwrap_or(rest.len()));
        tidied.push_str(plain);
        let Some(first) = special.chars().next() else { return special };
        let behind = special.get(1..).unwrap_or_default();
        rest = match first {
            '"' => {
                tidied.push('"');
                return behind;
            }
            '\\' => tidy_escape(special, tidied),
            control => {
                tidied.push_str(&format!("\\u{:04x}", u32::from(control)));
                behind
            }
        };
    }
}

/// Copies an escape sequence. Returns what is behind it.
fn tidy_escape<'a>(text: &'a str, tidied: &mut String) -> &'a str {
    let Some(unit) = unit(text) else {
        let length = 1 + text.get(1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let (escape, behind) = text.split_at(length);
        tidied.push_str(escape);
        return behind;
    };
    let length = match unit {
        0xd800..=0xdbff if text.get(6..).and_then(self::unit).is_some_and(is_low) => 12,
        0xd800..=0xdfff => {
            tidied.push_str("\\ufffd");
            return text.get(6..).unwrap_or_default();
        }
        _ => 6,
    };
    let (escape, behind) = text.split_at(length);
    tidied.push_str(escape);
    behind
}

/// The code unit of a `\uXXXX` that a text begins with.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

fn is_low(unit: u32) -> bool {
    (0xdc00..=0xdfff).contains(&unit)
}

/// Returns a text as tidied JSON; `None` where it is none, or nests too deep.
pub fn text_of(text: &str) -> Option<JsonText> {
    let tidied = tidy(text);
    serde_json::from_str::<Value>(&tidied).is_ok().then(|| JsonText::printed(tidied))
}

/// Returns a text as tidied JSON if it is an object.
pub fn object_of(text: &str) -> Option<JsonText> {
    text_of(text).filter(is_object)
}

/// Returns whether JSON is an object.
pub fn is_object(json: &JsonText) -> bool {
    json.as_str().starts_with('{')
}

/// Parses JSON, with a text for each number that would lose digits.
pub fn exact(json: &JsonText) -> Value {
    numbers::lossless(json.as_str().as_bytes()).unwrap_or_default()
}

/// Parses JSON. Long numbers lose digits, but stay numbers.
pub fn parsed(json: &JsonText) -> Value {
    serde_json::from_str(json.as_str()).unwrap_or_default()
}

/// Prints JSON with the fields of its objects in order, so that equal values have equal texts.
pub fn canonical(json: &str) -> String {
    match json.as_bytes().first() {
        Some(b'{') => {
            let fields = members(json).into_iter().flatten();
            let fields: BTreeMap<String, String> =
                fields.map(|(name, value)| (name, canonical(value.get()))).collect();
            let fields = fields.iter().map(|(name, value)| format!("{}:{value}", JsonText::of(name)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Some(b'[') => {
            let elements: Vec<String> =
                elements(json).into_iter().map(|value| canonical(value.get())).collect();
            format!("[{}]", elements.join(","))
        }
        Some(b'-' | b'0'..=b'9') if numbers::loss(json).is_some() => json.to_owned(),
        _ => serde_json::from_str::<Value>(json).unwrap_or_default().to_string(),
    }
}

/// Prints JSON on several lines, for people.
pub fn pretty(json: &JsonText) -> String {
    let value = parsed(json);
    // Long numbers are rather shown as they are than in a nice form.
    if numbers::lossy(json.as_str().as_bytes(), "").is_some() {
        return json.as_str().to_owned();
    }
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

/// The fields of an object with their values as text, in their order.
#[derive(Debug, Clone, Default)]
pub struct Fields(Vec<(String, JsonText)>);

impl Fields {
    /// Reads an object; `None` where the JSON is none.
    pub fn of(json: &JsonText) -> Option<Self> {
        let mut fields = Self::default();
        for (name, value) in members(json.as_str())? {
            fields.set(name, JsonText::printed(value.get().to_owned()));
        }
        Some(fields)
    }

    /// Sets a field; one that exists keeps its place.
    pub fn set(&mut self, name: String, value: JsonText) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&JsonText> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Removes a field.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// The fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &JsonText)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Prints the object.
    pub fn text(&self) -> String {
        let fields = self.0.iter().map(|(name, value)| format!("{}:{value}", JsonText::of(name)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }
}

/// Returns a JSON text without its quotes, and any other value as it is written.
pub fn plain(json: &JsonText) -> String {
    json.parse::<String>().unwrap_or_else(|_| json.as_str().to_owned())
}

/// Reads a value as its text, for `deserialize_with`.
pub fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JsonText, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(|raw| JsonText::printed(raw.get().to_owned()))
}

fn members(json: &str) -> Option<Vec<(String, &RawValue)>> {
    serde_json::from_str::<Members<'_>>(json).ok().map(|members| members.0)
}

fn elements(json: &str) -> Vec<&RawValue> {
    serde_json::from_str(json).unwrap_or_default()
}

/// The fields of an object in their order, with those that are written twice.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Reader).map(Members)
    }
}

/// A place in a JSON document that may hold anything or nothing. Reading from it never fails.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a>(Option<&'a RawValue>);

impl<'a> Node<'a> {
    /// The root of a document.
    pub fn root(json: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(json).map(|raw| Self(Some(raw)))
    }

    /// The JSON; empty where there is none.
    pub fn json(self) -> &'a str {
        self.0.map_or("", RawValue::get)
    }

    /// Returns whether there is a value other than `null`.
    pub fn is_some(self) -> bool {
        !matches!(self.json(), "" | "null")
    }

    /// Returns whether it is an object.
    pub fn is_object(self) -> bool {
        self.json().starts_with('{')
    }

    /// A field of an object. Of a field that is written twice the last one counts.
    pub fn get(self, name: &str) -> Self {
        let members = members(self.json()).unwrap_or_default();
        Self(members.into_iter().rev().find(|(known, _)| known == name).map(|(_, value)| value))
    }

    /// The elements of a list. An object counts as a list of itself.
    pub fn items(self) -> Vec<Self> {
        if self.is_object() {
            return vec![self];
        }
        elements(self.json()).into_iter().map(|value| Self(Some(value))).collect()
    }

    /// A text.
    pub fn text(self) -> Option<String> {
        serde_json::from_str(self.json()).ok()
    }

    /// A count, be it a whole number, a decimal one or a text with either.
    pub fn count(self) -> Option<i64> {
        let text = self.text();
        let written = text.as_deref().unwrap_or(self.json()).trim();
        if let Ok(count) = written.parse() {
            return Some(count);
        }
        let count: f64 = written.parse().ok().filter(|count: &f64| !count.is_nan())?;
        // What is beyond 64 bits is as good as any number that is too large.
        Some(format!("{count:.0}").parse().unwrap_or(if count > 0.0 { i64::MAX } else { 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn mistakes_are_mended() {
        for (text, tidied) in [
            ("\u{feff} {\"a\" : [1 , 2.50 ]}\n", r#"{"a":[1,2.50]}"#),
            (r#"{"a":"x\ud83d"}"#, r#"{"a":"x\ufffd"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00\ufffd"}"#),
            (r#""\\ud83d \" a  b \uD83D\u0041""#, r#""\\ud83d \" a  b \ufffd\u0041""#),
            ("\"a\nb\t\"", r#""a\u000ab\u0009""#),
            ("[NaN,-Infinity, Infinity,\"NaN\"]", r#"[null,null,null,"NaN"]"#),
            ("12345678901234567890123", "12345678901234567890123"),
        ] {
            assert_eq!(tidy(text), tidied);
            assert!(text_of(text).is_some(), "{text}");
        }
        for broken in ["", "{", "\"", "\"\\", "\"\\u12", "{\"a\":1}}", "\"\\é\"", "nul"] {
            assert!(text_of(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn long_numbers_are_kept() {
        let json = text_of(r#"{"b":[12345678901234567890123,1.50],"a":0.1234567890123456789}"#).unwrap();
        let expected = json!({ "b": ["12345678901234567890123", 1.5], "a": "0.1234567890123456789" });
        assert_eq!(exact(&json), expected);
        assert_eq!(
            canonical(json.as_str()),
            r#"{"a":0.1234567890123456789,"b":[12345678901234567890123,1.5]}"#
        );
        assert_eq!(Fields::of(&json).unwrap().text(), json.as_str());
    }

    #[test]
    fn counts_come_in_many_forms() {
        for (json, count) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("\"7\"", Some(7)),
            ("1e3", Some(1000)),
            ("1e300", Some(i64::MAX)),
            ("-1e300", Some(0)),
            ("99999999999999999999", Some(i64::MAX)),
            ("null", None),
            ("\"many\"", None),
            ("[5]", None),
        ] {
            assert_eq!(Node::root(json).unwrap().count(), count, "{json}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_right_stays_as_it_is(value in any_json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let json = text_of(&pretty).unwrap();
            prop_assert_eq!(exact(&json), value.clone());
            prop_assert_eq!(serde_json::from_str::<Value>(&canonical(json.as_str())).unwrap(), value);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{}:,\"a\\\\u0d8fD N-]{0,40}") {
            let _ = text_of(&text).map(|json| (exact(&json), canonical(json.as_str())));
        }
    }
}
