//! Secrets of the workspace in the settings of nodes.
//!
//! Expressions read a mark in the place of a secret, so that the secret is stored neither in the state nor in the trace of the
//! run. The nodes that may use secrets put it in when they act. A mark names its run by a signature, which nobody outside can
//! make: a text that a contact wrote is never taken for one.

use auth::Seal;
use model::{FlowRunId, hex};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// A secret must not end the part of a URL that it stands in. A colon stays, as tokens in paths have it.
const IN_URL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// The secrets that the settings of a run mention.
pub(crate) struct Secrets {
    prefix: String,
    /// Marks and secrets.
    known: Vec<(String, String)>,
}

impl Secrets {
    /// The secrets of a run, none so far.
    pub(crate) fn of(seal: &Seal, run: &FlowRunId) -> Self {
        let signature = hex(seal.sign("flow-secret", run.as_str()));
        let prefix = format!("«secret:{}:", signature.get(..32).unwrap_or(&signature));
        Self { prefix, known: Vec::new() }
    }

    /// Adds a secret, and returns its mark.
    pub(crate) fn hide(&mut self, key: &str, secret: &Value) -> Value {
        let mark = format!("{}{key}»", self.prefix);
        self.known.push((mark.clone(), secret.as_str().unwrap_or_default().to_owned()));
        Value::String(mark)
    }

    /// Returns whether settings contain a mark.
    pub(crate) fn are_in(&self, settings: &Value) -> bool {
        !self.known.is_empty() && settings.to_string().contains(&self.prefix)
    }

    /// Puts the secrets in the place of their marks.
    pub(crate) fn reveal(&self, settings: &Value) -> Value {
        self.replaced(settings, |(mark, secret)| (mark, secret))
    }

    /// Puts the secrets in the place of their marks, in the form that they have in a URL.
    pub(crate) fn reveal_in_url(&self, url: &str) -> String {
        let encoded = |secret: &str| utf8_percent_encode(secret, IN_URL).to_string();
        self.known.iter().fold(url.to_owned(), |url, (mark, secret)| url.replace(mark, &encoded(secret)))
    }

    /// The secrets whose marks settings contain.
    pub(crate) fn mentioned_in(&self, settings: &Value) -> Vec<String> {
        if !self.are_in(settings) {
            return Vec::new();
        }
        let text = settings.to_string();
        let mentioned = self.known.iter().filter(|(mark, _)| text.contains(mark.as_str()));
        mentioned.map(|(_, secret)| secret.clone()).collect()
    }

    /// Puts asterisks in the place of secrets: in what a node gave.
    pub(crate) fn mask(&self, output: &Value) -> Value {
        const MASK: &str = "***";
        self.replaced(output, |(_, secret)| (secret, MASK))
    }

    fn replaced<'a>(
        &'a self,
        value: &Value,
        pair: impl Fn(&'a (String, String)) -> (&'a str, &'a str) + Copy,
    ) -> Value {
        if self.known.is_empty() {
            return value.clone();
        }
        match value {
            Value::String(text) => {
                let pairs = self.known.iter().map(pair).filter(|(from, _)| !from.is_empty());
                Value::String(pairs.fold(text.clone(), |text, (from, to)| text.replace(from, to)))
            }
            Value::Array(elements) => elements.iter().map(|element| self.replaced(element, pair)).collect(),
            Value::Object(members) => {
                members.iter().map(|(name, member)| (name.clone(), self.replaced(member, pair))).collect()
            }
            plain => plain.clone(),
        }
    }
}

/// Settings as the trace of a run shows them: a secret by its key.
pub(crate) fn shown(settings: &str) -> String {
    let mut text = String::with_capacity(settings.len());
    let mut rest = settings;
    while let Some((before, mark)) = rest.split_once("«secret:") {
        text.push_str(before);
        let Some((inner, after)) = mark.split_once('»') else {
            rest = mark;
            continue;
        };
        let key = inner.split_once(':').map_or(inner, |(_, key)| key);
        text.push_str("‹secret ");
        text.push_str(key);
        text.push('›');
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_is_put_in_and_masked() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let run = FlowRunId::parse("frun_01m7w4n5e0k3p8r2v6x9b1d4f7").unwrap();
        let mut secrets = Secrets::of(&seal, &run);
        let mark = secrets.hide("api.key", &json!("s3cret"));
        let settings =
            json!({ "headers": { "authorization": format!("Bearer {}", mark.as_str().unwrap()) } });
        assert!(secrets.are_in(&settings));
        assert!(!secrets.are_in(&json!({ "text": "«secret:0:api.key»" })));
        assert_eq!(secrets.reveal(&settings), json!({ "headers": { "authorization": "Bearer s3cret" } }));
        assert_eq!(secrets.mask(&json!(["a s3cret b"])), json!(["a *** b"]));
        assert_eq!(secrets.mentioned_in(&settings), ["s3cret"]);
        assert_eq!(secrets.mentioned_in(&json!({ "text": "s3cret" })), [""; 0]);
        let slash = secrets.hide("slash", &json!("a/b&c"));
        let url = format!("https://example.com/{}?x=1", slash.as_str().unwrap());
        assert_eq!(secrets.reveal_in_url(&url), "https://example.com/a%2Fb%26c?x=1");
        assert_eq!(
            shown(&settings.to_string()),
            r#"{"headers":{"authorization":"Bearer ‹secret api.key›"}}"#
        );
    }
}
