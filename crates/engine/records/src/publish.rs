//! Publishing changes of a schema: an activity entry and an event, in the transaction of the change.

use crate::Author;
use crate::activity::{self, Action, Changes, change};
use model::{CollectionId, Error, Event, Result};
use serde::Serialize;
use store::Tx;
use utoipa::openapi::{Object, Type};

/// Writes the activity entry and the event of a change of a collection, of its fields or its views. The events are about
/// collections: of a change of another set of records there is the entry only.
///
/// # Errors
/// When the database fails.
pub fn publish(
    tx: &mut Tx,
    author: &Author,
    collection: CollectionId,
    entry: &Changes,
    event: &impl Event,
) -> Result<()> {
    activity::record(tx, author, collection, None, Action::SchemaChanged, entry)?;
    announce(tx, author, collection, event)
}

/// Emits the event of a change of a set's fields, views or indexes, if the set is a collection.
pub(crate) fn announce(tx: &mut Tx, author: &Author, set: CollectionId, event: &impl Event) -> Result<()> {
    if set.0 > 0 {
        tx.emit(author.workspace, &author.cause, author.livemode, event)?;
    }
    Ok(())
}

/// The schema of an id that events have beside an object: published as an integer, without a format.
pub fn plain_integer() -> Object {
    Object::with_type(Type::Integer)
}

/// The activity entry of what was added at a path, such as `fields.price`.
///
/// # Errors
/// When it cannot be JSON.
pub fn added(path: &str, after: &impl Serialize) -> Result<Changes> {
    let entry = change(None, Some(&serde_json::to_value(after).map_err(Error::internal)?));
    Ok(Changes::from_iter([(path.to_owned(), entry)]))
}

/// The activity entry of what was removed at a path.
///
/// # Errors
/// When it cannot be JSON.
pub fn removed(path: &str, before: &impl Serialize) -> Result<Changes> {
    let entry = change(Some(&serde_json::to_value(before).map_err(Error::internal)?), None);
    Ok(Changes::from_iter([(path.to_owned(), entry)]))
}

/// The activity entry of what changed of an object at a path.
pub fn changed_at(path: &str, changed: &Changes) -> Changes {
    changed.iter().map(|(name, entry)| (format!("{path}.{name}"), entry.clone())).collect()
}

/// What differs between an object before and after, as callers see it. That it has a new version is no difference.
pub fn differences(before: &impl Serialize, after: &impl Serialize) -> Result<Changes> {
    let (before, after) = (
        serde_json::to_value(before).map_err(Error::internal)?,
        serde_json::to_value(after).map_err(Error::internal)?,
    );
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
