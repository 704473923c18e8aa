//! Relation fields: what a write says of them, and making the table say so at both ends.

use super::locks::{Holding, LockSet};
use super::table::{self, Ends, ITEM, NewLink};
use crate::activity::{Changes, change};
use crate::rows::{self, ItemRow, Writer};
use crate::shape::{self, Shape, Shapes};
use fields::Data;
use fields::Problem;
use fields::value::MOST_RELATED;
use fields::{Cardinality, Field, FieldType};
use model::{Code, CollectionId, Error, FieldError, FieldId, FileId, ItemId, LinkId, MemberId, Result};
use serde_json::{Value, json};
use std::collections::HashMap;
use store::LockMode;
use store::Tx;

/// What a write says of relation fields.
#[derive(Debug, Default)]
pub struct References(Vec<Pointing>);

/// The items that one field points to, before and after.
#[derive(Debug)]
struct Pointing {
    ends: Ends,
    key: String,
    before: Vec<ItemId>,
    after: Vec<ItemId>,
}

impl Pointing {
    /// The items to which a link is made or removed.
    fn concerned(&self) -> impl Iterator<Item = ItemId> {
        let both = |id: &ItemId| self.before.contains(id) != self.after.contains(id);
        self.before.iter().chain(&self.after).copied().filter(both)
    }

    fn hold(&self, locks: &mut LockSet) {
        locks.add(self.concerned(), self.ends.mode());
    }

    /// What is wrong with the items that it names, all of which are held.
    ///
    /// # Errors
    /// `item_locked`.
    fn mistake(&self, holding: &Holding) -> Result<Option<Problem>> {
        if self.ends.mode() == LockMode::Exclusive {
            holding.refuse_locked(self.ends.target, self.concerned())?;
        }
        let is_missing = |id: &&ItemId| !self.before.contains(id) && !holding.has(self.ends.target, **id);
        let missing: Vec<i64> = self.after.iter().filter(is_missing).map(|id| id.0).collect();
        Ok((!missing.is_empty()).then(|| no_such(&missing, "items in the field's target collection")))
    }
}

/// Items of whichever collection.
pub type Others = Vec<(CollectionId, ItemId)>;

/// Takes the relation fields that a write changes out of its values, and checks that what they name exists. What exists
/// is held.
///
/// A value that equals the stored copy is no change, also where the copy is only the beginning of the list: what was
/// read may be written back. Links to items in the trash are neither shown nor touched.
///
/// # Errors
/// `validation_error` for what does not exist, and for a field with more links than a value can list.
pub(crate) fn take_references(
    tx: &mut Tx,
    writer: &Writer<'_>,
    old: Option<&ItemRow>,
    data: &mut Data,
) -> Result<References> {
    let mut taken = References::default();
    let shape = writer.shape;
    if !shape.fields.iter().any(|field| field.kind.is_reference()) {
        return Ok(taken);
    }
    let before = old.map(ItemRow::values).transpose()?.unwrap_or_default();
    let mut link_changes = link_changes(tx, writer, old, &before, data)?;
    let mut locks = LockSet::default();
    link_changes
        .values()
        .filter_map(|link_change| link_change.as_ref().ok())
        .flatten()
        .for_each(|link_change| link_change.hold(&mut locks));
    let holding = locks.take(tx, shape.workspace)?;
    let mut errors = Vec::new();
    for field in shape.fields.iter().filter(|field| field.kind.is_reference()) {
        if field.kind != FieldType::Relation {
            let known = ids(before.get(&field.key));
            let fresh: Vec<i64> =
                ids(data.get(&field.key)).into_iter().filter(|id| !known.contains(id)).collect();
            let missing = missing(tx, writer.shapes, shape, field, &fresh)?;
            let missing = follow_merges(tx, writer.shapes, shape, (field, data), missing)?;
            errors.extend(refuse_missing(shape, field, &missing));
            continue;
        }
        let Some(link_change) = link_changes.remove(&field.id) else { continue };
        match before.get(&field.key) {
            Some(copy) => data.insert(field.key.clone(), copy.clone()),
            None => data.shift_remove(&field.key),
        };
        let problem = match link_change {
            Ok(None) => None,
            Ok(Some(pointing)) => {
                let mistake = pointing.mistake(&holding)?;
                taken.0.push(pointing);
                mistake
            }
            Err(problem) => Some(problem),
        };
        errors.extend(problem.map(|problem| problem.at(shape.param(&field.key))));
    }
    Error::all_invalid(errors).map_or(Ok(taken), Err)
}

/// Adds to `locks` what a write of `data` over `old` is going to hold at the other ends of its relation fields. What is
/// wrong with it is told when it is written.
///
/// # Errors
/// The database's.
pub fn plan_locks(
    tx: &mut Tx,
    writer: &Writer<'_>,
    old: Option<&ItemRow>,
    data: &Data,
    locks: &mut LockSet,
) -> Result<()> {
    let before = old.map(ItemRow::values).transpose()?.unwrap_or_default();
    let link_changes = link_changes(tx, writer, old, &before, data)?;
    link_changes
        .into_values()
        .filter_map(Result::ok)
        .flatten()
        .for_each(|link_change| link_change.hold(locks));
    Ok(())
}

/// What a write says of a relation field: what it is to point to, nothing where it does so already, or why it cannot.
type LinkChange = Result<Option<Pointing>, Problem>;

/// What a write says of the relation fields that it changes.
fn link_changes(
    tx: &mut Tx,
    writer: &Writer<'_>,
    old: Option<&ItemRow>,
    before: &Data,
    data: &Data,
) -> Result<HashMap<FieldId, LinkChange>> {
    let mut link_changes = HashMap::new();
    for field in writer.shape.fields.iter().filter(|field| field.kind == FieldType::Relation) {
        if before.get(&field.key) != data.get(&field.key) {
            let after = ids(data.get(&field.key)).into_iter().map(ItemId).collect();
            link_changes.insert(field.id, link_change(tx, writer, field, old, after)?);
        }
    }
    Ok(link_changes)
}

fn ids(value: Option<&Value>) -> Vec<i64> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_i64).collect()
}

fn link_change(
    tx: &mut Tx,
    writer: &Writer<'_>,
    field: &Field,
    old: Option<&ItemRow>,
    after: Vec<ItemId>,
) -> Result<LinkChange> {
    let Some(ends) = ends(tx, writer.shapes, writer.shape, field)? else {
        return Ok(Err(Problem::new("not_found", "refers to no collection")));
    };
    let before = match old {
        Some(old) => table::pointed_to(tx, old.id, field.id, MOST_RELATED + 1)?,
        None => Vec::new(),
    };
    if before == after {
        return Ok(Ok(None));
    }
    if before.len() > MOST_RELATED {
        let message = "has more than 1,000 items, which a value cannot contain; change its links one by one";
        return Ok(Err(Problem::new("too_many_links", message)));
    }
    if ends.target == writer.shape.collection && old.is_some_and(|old| after.contains(&old.id)) {
        return Ok(Err(Problem::new("self_link", "must not contain the item itself")));
    }
    Ok(Ok(Some(Pointing { ends, key: field.key.clone(), before, after })))
}

/// The mistake of naming what is not there.
fn no_such(missing: &[i64], what: &str) -> Problem {
    let shown: Vec<String> = missing.iter().take(20).map(ToString::to_string).collect();
    let more = missing.len().saturating_sub(shown.len());
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    Problem::new(
        "not_found",
        format!("contains ids that are not among the {what}: {}{rest}", shown.join(", ")),
    )
}

/// Those of some contacts, users or files that do not exist.
fn missing(tx: &mut Tx, shapes: &Shapes, shape: &Shape, field: &Field, wanted: &[i64]) -> Result<Vec<i64>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let found: Vec<i64> = match field.kind {
        FieldType::File => {
            let named: Vec<FileId> = wanted.iter().copied().map(FileId).collect();
            files::held(tx, shape.workspace, &named)?.iter().map(|file| file.id.0).collect()
        }
        FieldType::Contact => {
            let set = shapes.set_named_by(field.kind, shape.workspace);
            set.map(|set| rows::live_among(tx, set, wanted)).transpose()?.unwrap_or_default()
        }
        _ => {
            let named: Vec<MemberId> = wanted.iter().copied().map(MemberId).collect();
            shapes.members(tx, shape.workspace, &named)?.iter().map(|member| member.id.0).collect()
        }
    };
    Ok(wanted.iter().copied().filter(|id| !found.contains(id)).collect())
}

/// Makes a value name the survivors of merged records. Gives those of the missing ones that have none.
fn follow_merges(
    tx: &mut Tx,
    shapes: &Shapes,
    shape: &Shape,
    (field, data): (&Field, &mut Data),
    gone: Vec<i64>,
) -> Result<Vec<i64>> {
    let named: Vec<ItemId> = gone.iter().copied().map(ItemId).collect();
    let survivors = shapes.merged().survivors(tx, field.kind, shape.workspace, &named)?;
    if survivors.is_empty() {
        return Ok(gone);
    }
    let wanted: Vec<i64> = survivors.values().map(|id| id.0).collect();
    let dead = missing(tx, shapes, shape, field, &wanted)?;
    let survivor = |id: i64| survivors.get(&ItemId(id)).map(|to| to.0).filter(|to| !dead.contains(to));
    if let Some(Value::Array(value)) = data.get_mut(&field.key) {
        let mut new: Vec<i64> = Vec::with_capacity(value.len());
        for id in value.iter().filter_map(Value::as_i64).map(|id| survivor(id).unwrap_or(id)) {
            if !new.contains(&id) {
                new.push(id);
            }
        }
        *value = new.into_iter().map(Value::from).collect();
    }
    Ok(gone.into_iter().filter(|id| survivor(*id).is_none()).collect())
}

fn refuse_missing(shape: &Shape, field: &Field, missing: &[i64]) -> Option<FieldError> {
    let what = match field.kind {
        FieldType::File => "workspace's files",
        FieldType::Contact => "workspace's contacts",
        _ => "members of the team",
    };
    (!missing.is_empty()).then(|| no_such(missing, what).at(shape.param(&field.key)))
}

/// What a write changes of relation fields, as the activity log and events tell it.
pub fn differences(references: &References) -> Changes {
    let list = |ids: &[ItemId]| Some(Value::from(ids.iter().map(|id| id.0).collect::<Vec<_>>()));
    let entry = |pointing: &Pointing| {
        let of = |ids: &[ItemId]| list(ids).filter(|_| !ids.is_empty());
        let entry = change(of(&pointing.before).as_ref(), of(&pointing.after).as_ref());
        (pointing.key.clone(), entry)
    };
    references.0.iter().map(entry).collect()
}

/// Makes the links of an item what a write says. Gives the items at the other ends whose own copies are out of date by
/// it, in the order of their ids; `None` where no link changed.
///
/// # Errors
/// `link_exists` where an item at the other end can be pointed back to by one item only, and is.
pub fn point(
    tx: &mut Tx,
    writer: &Writer<'_>,
    row: &ItemRow,
    references: References,
) -> Result<Option<Others>> {
    if references.0.is_empty() {
        return Ok(None);
    }
    let mut others = Vec::new();
    for pointing in references.0 {
        let changed = set(tx, writer, row, &pointing).map_err(|error| match error.code() {
            Code::LinkExists => error.param(writer.shape.param(&pointing.key)),
            _ => error,
        })?;
        others.extend(changed);
    }
    others.sort_unstable_by_key(|(_, item)| *item);
    others.dedup();
    Ok(Some(others))
}

/// Both ends of a relation field. A field that points back counts where it is there and knows of this one.
///
/// # Errors
/// The database's.
pub fn ends(tx: &mut Tx, shapes: &Shapes, shape: &Shape, field: &Field) -> Result<Option<Ends>> {
    let Some(mut ends) = Ends::one_sided(field) else { return Ok(None) };
    let Some(back) = field.options.reverse_field_id else { return Ok(Some(ends)) };
    let answers = |target: &Shape| {
        target
            .field_by_id(back)
            .filter(|found| found.options.reverse_field_id == Some(field.id))
            .map(|found| (back, found.options.cardinality() == Cardinality::One))
    };
    ends.reverse = if ends.target == shape.collection {
        answers(shape)
    } else {
        match shape::held(tx, shapes, shape.workspace, ends.target) {
            Ok(target) => answers(&target),
            Err(error) if error.code() == Code::NotFound => None,
            Err(error) => return Err(error),
        }
    };
    Ok(Some(ends))
}

/// Makes a field of an item point to what it is to point to; gives the items at the other end that are to follow.
fn set(tx: &mut Tx, writer: &Writer<'_>, row: &ItemRow, pointing: &Pointing) -> Result<Others> {
    let Pointing { ends, before, after, .. } = pointing;
    let only = |ids: &[ItemId], without: &[ItemId]| -> Vec<ItemId> {
        ids.iter().copied().filter(|id| !without.contains(id)).collect()
    };
    let (removed, added) = (only(before, after), only(after, before));
    table::delete(tx, row.id, ends.field, ends.back(), &removed)?;
    let new: Vec<New<'_>> = added.iter().map(|to| New { to: *to, ..New::default() }).collect();
    connect(tx, writer, row, ends, &new)?;
    // Equal places are told apart by age, so whoever stands right needs no other place.
    for link in table::rows_of(tx, row.id, ends.field)? {
        let place = link.item().and_then(|to| after.iter().position(|id| *id == to));
        if let Some(place) = place.and_then(|place| i64::try_from(place).ok())
            && place != link.position
        {
            table::place(tx, link.id, place)?;
        }
    }
    if ends.reverse.is_none() {
        return Ok(Vec::new());
    }
    Ok(removed.into_iter().chain(added).map(|id| (ends.target, id)).collect())
}

/// A link that is to be made by a relation field.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// The item pointed to: live, held, and not pointed to yet.
    pub to: ItemId,
    /// A word for what it is.
    pub role: Option<&'a str>,
    /// A note.
    pub note: Option<&'a str>,
    /// Its place; behind the last where none is given.
    pub position: Option<i64>,
}

impl Default for New<'_> {
    fn default() -> Self {
        Self { to: ItemId(0), role: None, note: None, position: None }
    }
}

/// Makes links of a relation field, at both of its ends.
///
/// # Errors
/// `link_exists` where an item at the other end can be pointed back to by one item only, and is.
pub fn connect(tx: &mut Tx, writer: &Writer<'_>, row: &ItemRow, ends: &Ends, new: &[New<'_>]) -> Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    let targets: Vec<ItemId> = new.iter().map(|new| new.to).collect();
    if let Some((back, true)) = ends.reverse
        && let Some(taken) = table::live_rows(tx, back, &targets)?.first()
    {
        return Err(link_exists(taken.id, taken.item_id, taken.item()));
    }
    let now = tx.now();
    let next = table::last_places(tx, ends.field, &[row.id])?.get(&row.id).map_or(0, |last| last + 1);
    let link = |new: &New<'_>, position: i64| NewLink {
        workspace_id: writer.author.workspace,
        collection_id: row.collection_id,
        item_id: row.id,
        field_id: ends.field,
        to_kind: ITEM,
        to_collection_id: Some(ends.target),
        to_id: new.to.to_string(),
        role: None,
        note: None,
        position,
        version: 1,
        created_by: &writer.author.cause.actor,
        created_at: now,
        updated_at: now,
    };
    let rows: Vec<NewLink<'_>> = new
        .iter()
        .zip(next..)
        .map(|(new, next)| NewLink {
            role: new.role,
            note: new.note,
            ..link(new, new.position.unwrap_or(next))
        })
        .collect();
    table::insert(tx, &rows)?;
    let Some((back, _)) = ends.reverse else { return Ok(()) };
    let last = table::last_places(tx, back, &targets)?;
    let mirrored: Vec<NewLink<'_>> = new
        .iter()
        .map(|new| NewLink {
            collection_id: ends.target,
            item_id: new.to,
            field_id: back,
            to_collection_id: Some(row.collection_id),
            to_id: row.id.to_string(),
            role: new.role,
            note: new.note,
            ..link(new, last.get(&new.to).map_or(0, |last| last + 1))
        })
        .collect();
    table::insert(tx, &mirrored)
}

/// The refusal of a second link where there can be one.
pub fn link_exists(link: LinkId, item: ItemId, to: Option<ItemId>) -> Error {
    let to_text = to.map_or_else(String::new, |to| format!(" to item {to}"));
    Error::new(
        Code::LinkExists,
        format!("Item {item} is already linked{to_text} and can have only one link."),
    )
    .with("details", json!({ "existing_id": link, "item_id": item, "to": to }))
}
