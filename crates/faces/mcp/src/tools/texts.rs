//! The arguments of a call as JSON texts. Numbers keep all their digits on the way to the operation, which decides as for a
//! body of the REST interface whether they are too large or too precise.

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// JSON texts by name. Of a name that is repeated, the last text counts.
#[derive(Debug, Clone, Default)]
pub struct Arguments(BTreeMap<String, Box<RawValue>>);

impl Arguments {
    /// Reads the text of an object. Returns `None` for any other JSON.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// Makes arguments of texts.
    pub(crate) fn of<const N: usize>(texts: [(&str, String); N]) -> Option<Self> {
        let texts = texts.into_iter().map(|(name, text)| Some((name.to_owned(), raw(text)?)));
        texts.collect::<Option<_>>().map(Self)
    }

    /// Returns an argument as a value. Large and precise numbers lose digits in it.
    pub fn get(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }

    /// Returns the text of an argument.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|text| text.get())
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.0.remove(name)
    }

    pub(super) fn insert(&mut self, name: &str, text: Box<RawValue>) {
        self.0.insert(name.to_owned(), text);
    }

    /// Adds an argument with a value without numbers that could lose digits.
    pub(super) fn set(&mut self, name: &str, value: &Value) {
        if let Some(text) = raw(value.to_string()) {
            self.insert(name, text);
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, text)| (name.as_str(), &**text))
    }

    /// Returns the text of the object.
    pub(super) fn print(&self) -> String {
        let members = self.texts().map(|(name, text)| format!("{}:{}", Value::from(name), text.get()));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

fn raw(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        let text = r#"{"a":0.10000000000000000555,"b":{"c":[12345678901234567890123]},"d":1e400}"#;
        assert_eq!(Arguments::parse(text).unwrap().print(), text);
        assert_eq!(Arguments::parse(r#"{"a":1,"a":2.50}"#).unwrap().print(), r#"{"a":2.50}"#);
        assert!(Arguments::parse("[1]").is_none() && Arguments::parse("7").is_none());
    }
}
