//! Telling of changes of a schema: an activity entry and an event, in the transaction of the change.

use crate::Author;
use crate::activity::{self, Action, Changes, change};
use model::{CollectionId, NewEvent, Result};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::Tx;

/// What a change of the schema was about.
#[derive(Debug, Clone, Copy)]
pub struct News<'a> {
    /// The collection.
    pub collection: CollectionId,
    /// The event's type.
    pub event: &'static str,
    /// The name of the changed object in the event's data: `collection`, `field` or `view`.
    pub object: &'static str,
    /// What the activity log puts before the names of what changed, such as `fields.price`; empty for the collection.
    pub path: &'a str,
}

/// Writes the activity entry and the event of a change. `after` is the object as callers see it; `changed` what is
/// different, where it was there before.
pub fn tell(
    tx: &mut Tx,
    author: &Author,
    news: News<'_>,
    after: &impl Serialize,
    changed: Option<&Changes>,
) -> Result<()> {
    let after = serde_json::to_value(after)?;
    let mut entries = Changes::new();
    match changed {
        Some(changed) => {
            for (name, entry) in changed {
                let path = if news.path.is_empty() { name.clone() } else { format!("{}.{name}", news.path) };
                entries.insert(path, entry.clone());
            }
        }
        None => {
            let path = if news.path.is_empty() { news.object } else { news.path };
            let gone = news.event.ends_with(".deleted");
            let entry = if gone { change(Some(&after), None) } else { change(None, Some(&after)) };
            entries.insert(path.to_owned(), entry);
        }
    }
    activity::record(tx, author, news.collection, None, Action::SchemaChanged, &entries)?;
    let mut data = Map::from_iter([(news.object.to_owned(), after)]);
    if news.object != "collection" {
        data.insert("collection_id".to_owned(), json!(news.collection));
    }
    if let Some(changed) = changed {
        data.insert("changed".to_owned(), Value::Object(changed.clone()));
    }
    tx.emit_untyped(author.workspace, &author.cause, NewEvent::new(news.event, author.livemode, &data))?;
    Ok(())
}

/// What differs between an object before and after, as callers see it. That it has a new version is no difference.
pub fn differences(before: &impl Serialize, after: &impl Serialize) -> Result<Changes> {
    let (before, after) = (serde_json::to_value(before)?, serde_json::to_value(after)?);
    let mut changed = Changes::new();
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else { return Ok(changed) };
    let silent = ["version", "updated_at", "item_count", "item_count_exact_at", "fields", "converting"];
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    for name in names.filter(|name| !silent.contains(&name.as_str())) {
        if old.get(name) != new.get(name) {
            changed.insert(name.clone(), change(old.get(name), new.get(name)));
        }
    }
    Ok(changed)
}
