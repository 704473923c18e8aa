//! Targets of links: checks that they exist, and loads the members to show.

use super::model::{LinkTarget, LinkTargetType, LinkedObject, TargetId};
use diesel::prelude::*;
use model::{Code, CollectionId, Error, ItemId, Result, WorkspaceId};
use ports::{LinkDirectory, LinkedTarget};
use records::links::table::{LinkRow, NewLink};
use records::rows::Writer;
use records::schema::items;
use std::collections::HashMap;
use std::ops::Deref;
use store::{LockLevel, LockMode, Read, Tx, for_key_share};

/// The services for writing links of one collection.
pub(crate) struct LinkWriter<'a> {
    /// The writer of the items at both ends.
    pub(crate) writer: Writer<'a>,
    /// The objects other than items to which links can point.
    pub(crate) directory: &'a LinkDirectory,
}

impl<'a> Deref for LinkWriter<'a> {
    type Target = Writer<'a>;
    fn deref(&self) -> &Writer<'a> {
        &self.writer
    }
}

/// An existing target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: LinkTargetType,
    pub(crate) collection: Option<CollectionId>,
    pub(crate) id: String,
}

impl Found {
    /// Returns the item, or `None` for other objects.
    pub(crate) fn item(&self) -> Option<(CollectionId, ItemId)> {
        Some((self.collection?, self.id.parse().ok()?))
    }

    /// Sets the target of a link.
    pub(crate) fn aim<'a>(&self, link: NewLink<'a>) -> NewLink<'a> {
        NewLink { to_kind: self.kind, to_collection_id: self.collection, to_id: self.id.clone(), ..link }
    }
}

/// Finds the target of a new link, and locks it against deletion until the transaction ends. `at` is its path in the
/// request.
///
/// # Errors
/// `not_found`, and `validation_error` for an id of the wrong form or an unsupported type of object.
pub(crate) fn find(
    tx: &mut Tx,
    directory: &LinkDirectory,
    workspace: WorkspaceId,
    to: &LinkTarget,
    at: &str,
) -> Result<Found> {
    let missing = || Error::not_found(to.kind.as_str()).param(format!("{at}.id"));
    if to.kind == LinkTargetType::Item {
        let TargetId::Number(id) = &to.id else { return Err(wrong_id(to.kind, at)) };
        let collection = live_item(tx, workspace, ItemId(*id))?.ok_or_else(missing)?;
        return Ok(Found { kind: to.kind, collection: Some(collection), id: id.to_string() });
    }
    let Some(targets) = directory.of(to.kind.as_str()) else {
        let rule = format!("cannot be `{}`: this type is not supported yet", to.kind.as_str());
        return Err(Error::invalid(format!("{at}.type"), rule));
    };
    let mut id = match &to.id {
        TargetId::Number(id) if to.kind.has_numbers() => id.to_string(),
        TargetId::Text(id) if !to.kind.has_numbers() => id.clone(),
        _ => return Err(wrong_id(to.kind, at)),
    };
    if !targets.hold(tx, workspace, &id)? {
        id = targets.survivor(tx, workspace, &id)?.ok_or_else(missing)?;
        if !targets.hold(tx, workspace, &id)? {
            return Err(missing());
        }
    }
    Ok(Found { kind: to.kind, collection: None, id })
}

fn wrong_id(kind: LinkTargetType, at: &str) -> Error {
    let rule = if kind.has_numbers() { "must be a whole number" } else { "must be a string" };
    Error::invalid(format!("{at}.id"), rule)
}

/// Returns the collection of a live item, and locks the item against being trashed.
fn live_item(tx: &mut Tx, workspace: WorkspaceId, id: ItemId) -> Result<Option<CollectionId>> {
    let item = items::table
        .filter(items::id.eq(id))
        .filter(items::workspace_id.eq(workspace))
        .filter(items::trashed_at.is_null())
        .select(items::collection_id);
    tx.expect_lock_order(LockLevel::Item, id.0, LockMode::Shared)?;
    let found = for_key_share(item).get_result(tx.connection());
    Ok(found.optional()?)
}

/// Linked objects by target.
pub(crate) type Linked = HashMap<LinkTarget, LinkedObject>;

/// Loads the linked objects of links, with one query for each type.
pub(crate) fn pointed_to(
    read: &mut Read,
    directory: &LinkDirectory,
    workspace: WorkspaceId,
    links: &[LinkRow],
) -> Result<Linked> {
    let of = |kind: LinkTargetType| links.iter().filter(move |link| link.to_kind == kind);
    let items = of(LinkTargetType::Item).filter_map(LinkRow::item).collect::<Vec<_>>();
    let mut linked = shown_items(read, workspace, &items)?;
    for kind in LinkTargetType::ALL.into_iter().filter(|kind| *kind != LinkTargetType::Item) {
        let wanted: Vec<&str> = of(kind).map(|link| link.to_id.as_str()).collect();
        let Some(targets) = directory.of(kind.as_str()).filter(|_| !wanted.is_empty()) else { continue };
        for LinkedTarget { id, title, mime_type, status } in targets.show(read, workspace, &wanted)? {
            let id = match id.parse() {
                Ok(number) if kind.has_numbers() => TargetId::Number(number),
                _ => TargetId::Text(id),
            };
            put(&mut linked, LinkedObject { mime_type, status, ..object(kind, id, title) });
        }
    }
    Ok(linked)
}

/// Loads live items as linked objects.
pub(crate) fn shown_items(read: &mut Read, workspace: WorkspaceId, wanted: &[ItemId]) -> Result<Linked> {
    let mut linked = Linked::new();
    if wanted.is_empty() {
        return Ok(linked);
    }
    let rows: Vec<(ItemId, CollectionId, String)> = items::table
        .filter(items::id.eq_any(wanted))
        .filter(items::workspace_id.eq(workspace))
        .filter(items::trashed_at.is_null())
        .select((items::id, items::collection_id, items::title))
        .load(read.connection())?;
    for (id, collection, title) in rows {
        let object = object(LinkTargetType::Item, TargetId::Number(id.0), Some(title));
        put(&mut linked, LinkedObject { collection_id: Some(collection), ..object });
    }
    Ok(linked)
}

fn object(kind: LinkTargetType, id: TargetId, title: Option<String>) -> LinkedObject {
    LinkedObject { kind, id, title, collection_id: None, mime_type: None, status: None }
}

fn put(linked: &mut Linked, object: LinkedObject) {
    linked.insert(LinkTarget { kind: object.kind, id: object.id.clone() }, object);
}

/// Builds the error for a second link between the same two objects.
pub(crate) fn twice(existing: &LinkRow) -> Error {
    Error::new(Code::LinkExists, "The two objects are already linked.")
        .with("details", serde_json::json!({ "existing_id": existing.id }))
}
