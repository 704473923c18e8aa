//! Entries as they are stored, which is shorter than they are shown: an API key or a request as its id alone, and changes
//! as an array of names with the old and the new value. The long forms are stored too: of other actors and sources, of
//! changes of another shape, and by earlier versions.

use super::Changes;
use crate::Source;
use fields::{Data, FieldSet};
use model::{Actor, ActorType, Error, JsonText, Result};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The text between two others, which are the rest of it.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.strip_suffix(after).filter(|id| !id.contains('"'))
}

/// The id of an API key, or the JSON of another actor.
pub(crate) fn short_actor(actor: &JsonText) -> &str {
    let actor = actor.as_str();
    between(actor, r#"{"type":"api_key","id":""#, r#""}"#).unwrap_or(actor)
}

/// The id of a request, or the JSON of another source.
pub(crate) fn short_source(source: &JsonText) -> &str {
    let source = source.as_str();
    between(source, r#"{"request_id":""#, r#""}"#).unwrap_or(source)
}

pub(super) fn actor(stored: String) -> Result<Actor> {
    match stored.starts_with('{') {
        true => serde_json::from_str(&stored).map_err(Error::internal),
        false => Ok(Actor { kind: ActorType::ApiKey, id: stored, run_id: None }),
    }
}

pub(super) fn source(stored: String) -> Result<Source> {
    match stored.starts_with('{') {
        true => serde_json::from_str(&stored).map_err(Error::internal),
        false => Ok(Source { request_id: Some(stored), ..Source::default() }),
    }
}

/// `[[name, old, new], …]`.
pub(crate) fn short_changes(changed: &Changes) -> JsonText {
    let parts = |(name, entry): (&'_ String, &'_ Value)| -> Option<(String, Value, Value)> {
        let entry = entry.as_object().filter(|entry| entry.len() == 2)?;
        Some((name.clone(), entry.get("old")?.clone(), entry.get("new")?.clone()))
    };
    match changed.iter().map(parts).collect::<Option<Vec<_>>>() {
        Some(short) => JsonText::of(&short),
        None => JsonText::of(changed),
    }
}

/// What [`short_changes`] gives for an item that was [created](super::created).
pub(crate) fn short_created(fields: &FieldSet, data: &Data) -> JsonText {
    let parts: Vec<(&String, (), &Value)> =
        super::shown(fields, data).map(|(name, value)| (name, (), value)).collect();
    JsonText::of(&parts)
}

/// `{name: {"old": …, "new": …}, …}`, with the values as they are stored.
pub(super) fn changes(stored: JsonText) -> Result<JsonText> {
    if !stored.as_str().starts_with('[') {
        return Ok(stored);
    }
    let short: Vec<(String, &RawValue, &RawValue)> =
        serde_json::from_str(stored.as_str()).map_err(Error::internal)?;
    Ok(JsonText::of(&Long(short)))
}

struct Long<'a>(Vec<(String, &'a RawValue, &'a RawValue)>);

#[derive(Serialize)]
struct Change<'a> {
    old: &'a RawValue,
    new: &'a RawValue,
}

impl Serialize for Long<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, old, new)| (name, Change { old, new })))
    }
}

#[cfg(test)]
mod tests {
    use super::super::change;
    use super::*;
    use fields::{Field, FieldType};
    use serde_json::json;

    #[test]
    fn changes_are_stored_shorter_than_they_are_shown() {
        let mut changed = Changes::new();
        changed.insert("price".to_owned(), change(Some(&json!(1.50)), Some(&json!([2]))));
        changed.insert("na\"me".to_owned(), change(None, Some(&json!("é"))));
        let shown = JsonText::of(&changed);
        let stored = short_changes(&changed);
        assert!(stored.as_str().starts_with("[["), "{stored:?}");
        assert_eq!(changes(stored).unwrap(), shown);
        assert_eq!(changes(shown.clone()).unwrap(), shown, "as earlier versions stored it");
        assert_eq!(changes(short_changes(&Changes::new())).unwrap().as_str(), "{}");

        changed.insert("rows".to_owned(), json!({ "old": 1 }));
        let stored = short_changes(&changed);
        assert_eq!(stored, JsonText::of(&changed));
        assert_eq!(changes(stored.clone()).unwrap(), stored);
    }

    #[test]
    fn what_was_created_is_stored_as_any_change() {
        let text = |key| (key, FieldType::Text, Default::default());
        let fields: FieldSet = fields::sample::fields(vec![text("name"), text("digest"), text("size")])
            .into_iter()
            .map(|field| Field { hidden: field.key == "digest", ..field })
            .collect();
        let data = Data::from_iter([
            ("name".to_owned(), json!("é\"")),
            ("digest".to_owned(), json!("x")),
            ("size".to_owned(), json!(1.50)),
        ]);
        let stored = short_created(&fields, &data);
        assert_eq!(stored, short_changes(&super::super::created(&fields, &data)));
        assert_eq!(stored.as_str(), r#"[["name",null,"é\""],["size",null,1.5]]"#);
        assert_eq!(short_created(&fields, &Data::new()).as_str(), "[]");
    }

    #[test]
    fn keys_and_requests_are_stored_as_their_ids() {
        for (kind, id, expected) in [
            (ActorType::ApiKey, "key_1", "key_1"),
            (ActorType::System, "trash", r#"{"type":"system","id":"trash"}"#),
        ] {
            let shown = Actor { kind, id: id.to_owned(), run_id: None };
            let json = JsonText::of(&shown);
            assert_eq!(short_actor(&json), expected);
            assert_eq!(actor(expected.to_owned()).unwrap(), shown);
            assert_eq!(actor(json.as_str().to_owned()).unwrap(), shown, "as earlier versions stored it");
        }
        let of_request = Source { request_id: Some("req_1".to_owned()), import_id: None };
        let of_import = Source { request_id: None, import_id: Some("imp_1".to_owned()) };
        let of_both = Source { request_id: Some("req_1".to_owned()), import_id: Some("imp_1".to_owned()) };
        for shown in [Source::default(), of_request, of_import, of_both] {
            let json = JsonText::of(&shown);
            assert_eq!(source(short_source(&json).to_owned()).unwrap(), shown);
            assert_eq!(source(json.as_str().to_owned()).unwrap(), shown);
        }
    }
}
