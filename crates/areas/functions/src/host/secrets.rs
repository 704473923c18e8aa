//! The secrets of a call: the program handles placeholders, which are drawn at random for each call. Only here are they replaced
//! by values, in requests to hosts of the function's list.

use super::mask::Mask;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Random;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What a value has to be in a URL: it must not end the part that it stands in. A colon stays, as tokens in paths have it.
const IN_URL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// The secrets of a call.
pub(super) struct Secrets {
    entries: Vec<Entry>,
    /// Finds the values.
    pub(super) mask: Mask,
}

struct Entry {
    name: String,
    value: String,
    placeholder: String,
}

/// How a text that has placeholders is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Plain,
    /// A part of a URL, or a form.
    Url,
    /// Inside a JSON string.
    Json,
}

impl Secrets {
    /// Draws placeholders. `hidden` has values that are masked, and which the program does not get by a placeholder.
    pub(super) fn new(secrets: Vec<(String, String)>, hidden: &[String], random: &dyn Random) -> Self {
        let entries: Vec<Entry> = secrets
            .into_iter()
            // An empty value is no secret, and would be found everywhere.
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| Entry { name, value, placeholder: placeholder(random) })
            .collect();
        let hidden = hidden.iter().map(String::as_str).filter(|value| !value.is_empty());
        let mask = Mask::new(
            entries.iter().map(|entry| entry.value.as_str()).chain(hidden),
            entries.iter().map(|entry| entry.placeholder.as_str()),
        );
        Self { entries, mask }
    }

    /// The names and placeholders, for the sandbox.
    pub(super) fn placeholders(&self) -> Vec<sandbox::Secret> {
        let entries = self.entries.iter();
        entries
            .map(|entry| sandbox::Secret { name: entry.name.clone(), placeholder: entry.placeholder.clone() })
            .collect()
    }

    /// Returns whether bytes have a placeholder.
    pub(super) fn are_in(&self, bytes: &[u8]) -> bool {
        self.entries.iter().any(|entry| find(bytes, entry.placeholder.as_bytes()).is_some())
    }

    /// The text with values in the place of placeholders.
    pub(super) fn filled(&self, text: &str, form: Form) -> String {
        let mut text = text.to_owned();
        for entry in &self.entries {
            if text.contains(&entry.placeholder) {
                text = text.replace(&entry.placeholder, &written(&entry.value, form));
            }
        }
        text
    }

    /// The bytes with values in the place of placeholders.
    pub(super) fn filled_bytes(&self, bytes: Vec<u8>, form: Form) -> Vec<u8> {
        let mut bytes = bytes;
        for entry in &self.entries {
            let (from, to) = (entry.placeholder.as_bytes(), written(&entry.value, form));
            let mut rest = bytes.as_slice();
            let Some(mut place) = find(rest, from) else { continue };
            let mut filled = Vec::with_capacity(bytes.len() + to.len());
            loop {
                let (head, tail) = rest.split_at_checked(place).unwrap_or((rest, &[]));
                filled.extend(head);
                filled.extend(to.as_bytes());
                rest = tail.get(from.len()..).unwrap_or_default();
                match find(rest, from) {
                    Some(next) => place = next,
                    None => break,
                }
            }
            filled.extend(rest);
            bytes = filled;
        }
        bytes
    }

    /// The value of a header with values in the place of placeholders, also in the base64 of `Basic` credentials.
    pub(super) fn filled_header(&self, name: &str, value: &str) -> String {
        if name.eq_ignore_ascii_case("authorization")
            && let Some((scheme, coded)) = value.split_once(' ')
            && scheme.eq_ignore_ascii_case("basic")
            && let Ok(plain) = STANDARD.decode(coded.trim())
            && self.are_in(&plain)
        {
            return format!("{scheme} {}", STANDARD.encode(self.filled_bytes(plain, Form::Plain)));
        }
        self.filled(value, Form::Plain)
    }
}

fn placeholder(random: &dyn Random) -> String {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    // Letters, digits and an underscore, which no encoding of URLs or JSON changes.
    format!("secret_{:032x}", u128::from_le_bytes(bytes))
}

fn written(value: &str, form: Form) -> String {
    match form {
        Form::Plain => value.to_owned(),
        Form::Url => utf8_percent_encode(value, IN_URL).to_string(),
        Form::Json => super::mask::in_json(value),
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len().max(1)).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SeededRandom;

    #[test]
    fn values_take_the_place_of_placeholders_in_the_form_of_the_place() {
        let value = "a b&c\"d\\é:";
        let secrets = Secrets::new(
            vec![("k".into(), value.into()), ("none".into(), String::new())],
            &["hidden".to_owned()],
            &SeededRandom::new(1),
        );
        let [secret] = secrets.placeholders().try_into().unwrap();
        let placeholder = secret.placeholder;
        assert_eq!((secret.name.as_str(), placeholder.len()), ("k", 39));
        let text = format!("<{placeholder}|{placeholder}>");
        assert_eq!(secrets.filled(&text, Form::Plain), format!("<{value}|{value}>"));
        let encoded = "a%20b%26c%22d%5C%C3%A9:";
        assert_eq!(secrets.filled(&text, Form::Url), format!("<{encoded}|{encoded}>"));
        let filled = secrets.filled_bytes(text.clone().into_bytes(), Form::Json);
        let json = r#"a b&c\"d\\é:"#;
        assert_eq!(String::from_utf8(filled).unwrap(), format!("<{json}|{json}>"));
        let basic = STANDARD.encode(format!("user:{placeholder}"));
        let filled = secrets.filled_header("authorization", &format!("Basic {basic}"));
        assert_eq!(filled, format!("Basic {}", STANDARD.encode(format!("user:{value}"))));
        assert_eq!(secrets.filled_header("x-key", &placeholder), value);
        assert_eq!(secrets.mask.text("a hidden value"), "a [secret] value");
        assert!(secrets.are_in(text.as_bytes()) && !secrets.are_in(b"secret_"));
    }
}
