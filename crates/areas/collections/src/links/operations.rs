//! Operations that create and delete single links.

use super::events::{LinkData, LinkEvent};
use super::model::{ItemLink, LinkDirection, LinkTarget, LinkTargetType, NewItemLink};
use super::targets::{self, Found, LinkWriter};
use diesel::prelude::*;
use fields::{Field, FieldType};
use model::{Caller, Code, CollectionId, Error, ItemId, LinkId, Result};
use operation::{Body, Created, Deleted, Path, State, operation};
use ports::LinkDirectory;
use records::activity::{self, Action, Changes, change};
use records::links::locks::{self, LockSet, hold};
use records::links::relation::{self, New, Others};
use records::links::table::{self, Ends, FREE, ITEM, LinkRow, NewLink};
use records::rows::{self, Editor, ItemRow, Writer};
use records::schema::item_links;
use records::shape::{self, Shape, Shapes};
use store::LockMode;
use store::{Read, Tx};

/// Link the item to an item, contact or task
///
/// With `field_key`, the link belongs to a relation field and appears in its value and in that of the reverse field.
/// Without, it is a free link. Links can currently point to items, files and runs. Two objects that are already linked
/// are a 409 `link_exists`.
#[operation(post "/collections/{collectionId}/items/{itemId}/links", scope = "items:write")]
pub fn create_item_link(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(new): Body<NewItemLink>,
    shapes: State<Shapes>,
    directory: State<LinkDirectory>,
) -> Result<Created<ItemLink>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let writer = LinkWriter { writer: editor.writer(), directory: &directory.0 };
    hold(tx, editor.shape.workspace, |tx| ends_of_new(tx, &writer, item_id, &new))?;
    let row = rows::locked(tx, &editor.shape, item_id)?;
    rows::refuse_locked(&row)?;
    let link = match &new.field_key {
        Some(key) => relate(tx, &writer, &row, relation_field(&editor.shape, key, "field_key")?, &new)?,
        None => link_freely(tx, &writer, &row, &new)?,
    };
    let link = shown(tx, &writer, link)?;
    publish(tx, &writer, &LinkEvent::Created(LinkData { link: &link }))?;
    Ok(Created(link))
}

/// Returns the locks for a new link: its two items, and those of the links that it replaces.
fn ends_of_new(tx: &mut Tx, writer: &LinkWriter<'_>, item: ItemId, new: &NewItemLink) -> Result<LockSet> {
    let mut locks = LockSet::default();
    locks.add([item], LockMode::Exclusive);
    let Some(to) = new.to.item() else { return Ok(locks) };
    let field = new.field_key.as_deref().and_then(|key| writer.shape.field(key));
    let ends = field.map(|field| relation::ends(tx, writer.shapes, writer.shape, field)).transpose()?;
    let Some(ends) = ends.flatten() else {
        locks.add([to], LockMode::Shared);
        return Ok(locks);
    };
    locks.add([to], ends.mode());
    if new.replace {
        for link in in_the_way(tx, item, &ends, to)? {
            locks.add([link.item_id], LockMode::Exclusive);
            locks.add(link.item(), ends.mode());
        }
    }
    Ok(locks)
}

/// Returns the relation field with this key.
///
/// # Errors
/// `validation_error`.
pub(super) fn relation_field<'a>(shape: &'a Shape, key: &str, at: &str) -> Result<&'a Field> {
    let field = shape.field(key).filter(|field| field.kind == FieldType::Relation);
    field.ok_or_else(|| {
        let near = shape.nearest(key).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Error::invalid(at, format!("must be the key of a relation field of this collection{near}"))
    })
}

/// Finds the target of a new link of a relation field.
pub(super) fn related(
    tx: &mut Tx,
    writer: &LinkWriter<'_>,
    row: &ItemRow,
    ends: &Ends,
    to: &LinkTarget,
    at: &str,
) -> Result<ItemId> {
    if to.kind != LinkTargetType::Item {
        return Err(Error::invalid(format!("{at}.type"), "must be `item` for a link of a relation field"));
    }
    let found = targets::find(tx, writer.directory, writer.author.workspace, to, at)?;
    match found.item() {
        Some((collection, id)) if collection == ends.target => {
            refuse_self(row, id, at)?;
            Ok(id)
        }
        _ => {
            let rule = format!("must be an item of collection {}, to which the field refers", ends.target);
            Err(Error::invalid(format!("{at}.id"), rule))
        }
    }
}

pub(super) fn refuse_self(row: &ItemRow, to: ItemId, at: &str) -> Result<()> {
    if to == row.id {
        return Err(Error::invalid(format!("{at}.id"), "must not be the item itself"));
    }
    Ok(())
}

/// Creates a link of a relation field.
fn relate(
    tx: &mut Tx,
    writer: &LinkWriter<'_>,
    row: &ItemRow,
    field: &Field,
    new: &NewItemLink,
) -> Result<LinkRow> {
    let ends = relation::ends(tx, writer.shapes, writer.shape, field)?
        .ok_or_else(|| Error::invalid("field_key", "refers to no collection"))?;
    let to = related(tx, writer, row, &ends, &new.to, "to")?;
    if let Some(existing) = table::between(tx, row.id, field.id, ITEM, &to.to_string())? {
        return Err(targets::twice(&existing));
    }
    if ends.reverse.is_some() {
        locks::live(tx, writer.author.workspace, ends.target, &[to], LockMode::Exclusive)?;
    }
    make_room(tx, writer, row, &ends, to, new.replace)?;
    let fresh = New { to, role: new.role.as_deref(), note: new.note.as_deref(), position: new.position };
    relation::connect(tx, writer, row, &ends, &[fresh])?;
    let others = if ends.reverse.is_some() { vec![(ends.target, to)] } else { Vec::new() };
    // Read the row again, because `make_room` may have changed it.
    let row = rows::live(tx, writer.shape, row.id)?;
    writer.relinked(tx, &row, others, Action::Linked)?;
    table::between(tx, row.id, field.id, ITEM, &to.to_string())?
        .ok_or_else(|| Error::internal("a link that was stored is not there"))
}

/// Removes the links that a new one replaces, where a field allows a single link.
///
/// # Errors
/// `link_exists` without `replace`, `item_locked`.
fn make_room(
    tx: &mut Tx,
    writer: &LinkWriter<'_>,
    row: &ItemRow,
    ends: &Ends,
    to: ItemId,
    replace: bool,
) -> Result<()> {
    for link in in_the_way(tx, row.id, ends, to)? {
        if !replace {
            return Err(relation::link_exists(link.id, link.item_id, link.item()));
        }
        unlink(tx, writer, link)?;
    }
    Ok(())
}

/// Returns the links that conflict with a new one, because a field at either end allows a single link.
fn in_the_way(read: &mut Read, item: ItemId, ends: &Ends, to: ItemId) -> Result<Vec<LinkRow>> {
    let mut found = Vec::new();
    if ends.one {
        found.extend(table::live_rows(read, ends.field, &[item])?);
    }
    if let Some((back, true)) = ends.reverse {
        // Translate the links of the reverse field to those of the field itself.
        for mirror in table::live_rows(read, back, &[to])? {
            let Some(holder) = mirror.item() else { continue };
            found.extend(table::between(read, holder, ends.field, ITEM, &to.to_string())?);
        }
    }
    Ok(found)
}

/// Creates a free link.
fn link_freely(tx: &mut Tx, writer: &LinkWriter<'_>, row: &ItemRow, new: &NewItemLink) -> Result<LinkRow> {
    let found = targets::find(tx, writer.directory, writer.author.workspace, &new.to, "to")?;
    if let Some((_, id)) = found.item() {
        refuse_self(row, id, "to")?;
    }
    if let Some(existing) = table::between(tx, row.id, FREE, found.kind, &found.id)? {
        return Err(targets::twice(&existing));
    }
    let place = match new.position {
        Some(place) => place,
        None => table::last_places(tx, FREE, &[row.id])?.get(&row.id).map_or(0, |last| last + 1),
    };
    insert_free(tx, writer, row, &found, (new.role.as_deref(), new.note.as_deref()), place)
}

/// Stores a free link, and records it in the activity log of both ends.
pub(super) fn insert_free(
    tx: &mut Tx,
    writer: &LinkWriter<'_>,
    row: &ItemRow,
    found: &Found,
    (role, note): (Option<&str>, Option<&str>),
    position: i64,
) -> Result<LinkRow> {
    let now = tx.now();
    let link = found.aim(NewLink {
        workspace_id: writer.author.workspace,
        collection_id: row.collection_id,
        item_id: row.id,
        field_id: FREE,
        to_kind: found.kind,
        to_collection_id: None,
        to_id: String::new(),
        role,
        note,
        position,
        version: 1,
        created_by: &writer.author.cause.actor,
        created_at: now,
        updated_at: now,
    });
    table::insert(tx, &[link])?;
    let stored = table::between(tx, row.id, FREE, found.kind, &found.id)?
        .ok_or_else(|| Error::internal("a link that was stored is not there"))?;
    record(tx, writer, &stored, Action::Linked)?;
    Ok(stored)
}

/// Records a change of a free link in the activity log of both ends.
fn record(tx: &mut Tx, writer: &LinkWriter<'_>, link: &LinkRow, action: Action) -> Result<()> {
    let what = serde_json::json!({
        "id": link.id,
        "from": { "collection_id": link.collection_id, "item_id": link.item_id },
        "to": LinkTarget::of(link),
        "role": link.role,
    });
    let entry = match action {
        Action::Unlinked => change(Some(&what), None),
        _ => change(None, Some(&what)),
    };
    let changed = Changes::from_iter([("link".to_owned(), entry)]);
    activity::record(tx, writer.author, link.collection_id, Some(link.item_id), action, &changed)?;
    if let (Some(collection), Some(item)) = (link.to_collection_id, link.item()) {
        activity::record(tx, writer.author, collection, Some(item), action, &changed)?;
    }
    Ok(())
}

/// Remove a link
///
/// Deletes the link, which can be addressed from either end. A link of a relation field is removed from the values of
/// both items.
#[operation(delete "/collections/{collectionId}/items/{itemId}/links/{linkId}", scope = "items:write")]
pub fn delete_item_link(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Path(link_id): Path<LinkId>,
    shapes: State<Shapes>,
    directory: State<LinkDirectory>,
) -> Result<Deleted<ItemLink>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let writer = LinkWriter { writer: editor.writer(), directory: &directory.0 };
    let missing = || Error::not_found("link");
    hold(tx, editor.shape.workspace, |tx| {
        let mut locks = LockSet::default();
        locks.add([item_id], LockMode::Exclusive);
        if let Some(link) = table::of_item(tx, editor.shape.workspace, item_id, link_id)? {
            locks.add([link.item_id].into_iter().chain(link.item()), LockMode::Exclusive);
        }
        Ok(locks)
    })?;
    let row = rows::locked(tx, &editor.shape, item_id)?;
    rows::refuse_locked(&row)?;
    // Read the link again, because it may have changed while this transaction waited for the locks.
    let link = table::of_item(tx, writer.author.workspace, item_id, link_id)?.ok_or_else(missing)?;
    unlink(tx, &writer, link)?;
    Ok(Deleted::of("item_link", link_id))
}

/// Removes a link. It can belong to any collection.
///
/// # Errors
/// `not_found` if one of its ends is in the trash, `item_locked`, `invalid_state` for an archived collection.
pub(super) fn unlink(tx: &mut Tx, writer: &LinkWriter<'_>, link: LinkRow) -> Result<()> {
    let workspace = writer.author.workspace;
    let missing = || Error::not_found("link");
    let home = shape::for_write(tx, writer.shapes, workspace, link.collection_id)
        .map_err(|error| if error.code() == Code::NotFound { missing() } else { error })?;
    let owner = rows::find_locked(tx, &home, link.item_id)?
        .filter(|row| row.trashed_at.is_none())
        .ok_or_else(missing)?;
    rows::refuse_locked(&owner)?;
    let writer = LinkWriter { writer: Writer { shape: &home, ..writer.writer }, ..*writer };
    let removed = shown(tx, &writer, link.clone())?;
    match home.field_by_id(link.field_id) {
        Some(field) => {
            let ends = relation::ends(tx, writer.shapes, &home, field)?.ok_or_else(missing)?;
            let to = link.item().ok_or_else(missing)?;
            if locks::live(tx, workspace, ends.target, &[to], ends.mode())?.is_empty() {
                return Err(missing());
            }
            table::delete(tx, owner.id, field.id, ends.back(), &[to])?;
            let others: Others = ends.reverse.map(|_| (ends.target, to)).into_iter().collect();
            writer.relinked(tx, &owner, others, Action::Unlinked)?;
        }
        None => remove_free(tx, &writer, &link)?,
    }
    publish(tx, &writer, &LinkEvent::Deleted(LinkData { link: &removed }))
}

/// Deletes a free link, and records it in the activity log of both ends.
pub(super) fn remove_free(tx: &mut Tx, writer: &LinkWriter<'_>, link: &LinkRow) -> Result<()> {
    diesel::delete(item_links::table.find(link.id)).execute(tx.connection())?;
    record(tx, writer, link, Action::Unlinked)
}

/// Builds the response with an outgoing link of an item of this shape.
pub(super) fn shown(tx: &mut Tx, writer: &LinkWriter<'_>, link: LinkRow) -> Result<ItemLink> {
    let linked =
        targets::pointed_to(tx, writer.directory, writer.shape.workspace, std::slice::from_ref(&link))?;
    let key = writer.shape.field_by_id(link.field_id).map(|field| field.key.clone());
    let other = LinkTarget::of(&link).and_then(|target| linked.get(&target).cloned());
    ItemLink::of(link, LinkDirection::Out, key, other)
}

/// Publishes the event of a link, unless the author's changes emit no events.
pub(super) fn publish(tx: &mut Tx, writer: &LinkWriter<'_>, event: &LinkEvent<'_>) -> Result<()> {
    let author = writer.author;
    if author.emits {
        tx.emit(author.workspace, &author.cause, author.livemode, event)?;
    }
    Ok(())
}
