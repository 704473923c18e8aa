//! What follows for computed fields when a field that they look at is converted, comes or goes.
//!
//! Whether a computed field can be computed, and of which type its result is, is checked when it is saved. With `force` a
//! field that it looks at can be deleted or converted: then it is checked again, and so is what looks at it in turn. One
//! that can no longer be computed stays as it is defined; its options say why, and no item has a value of it until the
//! field that it needs is there again.

use super::events::publish_change;
use super::model::seen_field;
use super::rewrite::{self, Begun, RewritePlan};
use crate::Author;
use crate::compute::{self, Candidate};
use crate::indexes::table::{self, DroppedIndex};
use crate::schema::{collection_fields, collections};
use crate::shape::{self, Shapes};
use diesel::prelude::*;
use fields::formula::Formula;
use fields::{ComputedError, FieldOptions, FieldType};
use model::{Code, CollectionId, Error, FieldId, JsonText, Result, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use store::{Read, Tx};

/// A field of some collection, by its key.
pub(super) type Source = (CollectionId, String);

/// A computed field.
struct Looker {
    id: FieldId,
    collection: CollectionId,
    key: String,
    looks_at: Vec<Source>,
}

/// The collections with computed fields that look at some fields, also by way of others.
///
/// # Errors
/// When the database fails.
pub(super) fn collections_of(
    read: &mut Read,
    workspace: WorkspaceId,
    changed: &[Source],
) -> Result<BTreeSet<CollectionId>> {
    Ok(reached(&lookers(read, workspace)?, changed))
}

/// Checks the computed fields again that look at fields which were converted, came or went, and those that look at these.
/// Their collections are `locked` for changes. Gives the work that brings items in line.
///
/// # Errors
/// `service_unavailable` where another request has made a field look at these meanwhile.
pub(super) fn follow(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    changed: Vec<Source>,
    locked: &BTreeSet<CollectionId>,
) -> Result<Vec<Begun>> {
    let lookers = lookers(tx, author.workspace)?;
    if !reached(&lookers, &changed).is_subset(locked) {
        let message = "Other requests are changing the fields. Retry the request.";
        return Err(Error::new(Code::ServiceUnavailable, message).retry_after(1));
    }
    let mut plans: BTreeMap<CollectionId, RewritePlan> = BTreeMap::new();
    let mut open = VecDeque::from(changed);
    while let Some(source) = open.pop_front() {
        for looker in lookers.iter().filter(|looker| looker.looks_at.contains(&source)) {
            let plan = plans.entry(looker.collection).or_default();
            plan.sets = true;
            if let Some(dropped) = check_again(tx, shapes, author, looker)? {
                plan.indexes.extend(dropped);
                open.push_back((looker.collection, looker.key.clone()));
            }
        }
    }
    let mut begun = Vec::new();
    for (collection, plan) in plans {
        let shape = shape::within_change(tx, shapes, author.workspace, collection)?;
        begun.extend(rewrite::begin(tx, &shape, None, &plan)?);
    }
    Ok(begun)
}

/// Checks a computed field as it was saved. Gives the indexes that must be made anew where its result is another, and
/// `None` where nothing has changed.
fn check_again(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    looker: &Looker,
) -> Result<Option<Vec<DroppedIndex>>> {
    let (workspace, collection) = (author.workspace, looker.collection);
    let shape = shape::within_change(tx, shapes, workspace, collection)?;
    let Some(field) = shape.field_by_id(looker.id) else { return Ok(None) };
    let candidate = Candidate { key: &field.key, kind: field.kind, options: &field.options };
    let mut options = field.options.clone();
    match compute::check(tx, shapes, &shape, candidate)? {
        Ok(result) => {
            options.result_type = result;
            options.result_error = None;
        }
        Err(_) => options.result_error = Some(reason(tx, shapes, workspace, looker)?),
    }
    if options == field.options {
        return Ok(None);
    }
    let (before, now) = (seen_field(&shape, field.id, None)?, tx.now());
    diesel::update(collection_fields::table.find(field.id))
        .set((
            collection_fields::options.eq(JsonText::of(&options)),
            collection_fields::version.eq(field.version + 1),
            collection_fields::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    let is_another = options.result_type != field.options.result_type;
    let dropped = if is_another { table::drop_of_field(tx, collection, field.id)? } else { Vec::new() };
    shape::bump(tx, collection)?;
    publish_change(tx, shapes, author, collection, &before)?;
    Ok(Some(dropped))
}

/// Why a field cannot be computed.
fn reason(tx: &mut Tx, shapes: &Shapes, workspace: WorkspaceId, looker: &Looker) -> Result<ComputedError> {
    let mut inherited = None;
    for (collection, key) in &looker.looks_at {
        let shape = match shape::within_change(tx, shapes, workspace, *collection) {
            Err(error) if error.code() == Code::NotFound => return Ok(ComputedError::MissingSource),
            other => other?,
        };
        let Some(field) = shape.field(key) else { return Ok(ComputedError::MissingSource) };
        inherited = inherited.or(field.options.result_error);
    }
    Ok(inherited.unwrap_or(ComputedError::InvalidSource))
}

/// The collections that are reached from some fields.
fn reached(lookers: &[Looker], changed: &[Source]) -> BTreeSet<CollectionId> {
    let mut open: Vec<&Source> = changed.iter().collect();
    let own: Vec<Source> = lookers.iter().map(|looker| (looker.collection, looker.key.clone())).collect();
    let mut seen = vec![false; lookers.len()];
    while let Some(source) = open.pop() {
        for ((looker, own), seen) in lookers.iter().zip(&own).zip(&mut seen) {
            if !*seen && looker.looks_at.contains(source) {
                *seen = true;
                open.push(own);
            }
        }
    }
    lookers.iter().zip(seen).filter(|(_, seen)| *seen).map(|(looker, _)| looker.collection).collect()
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = collection_fields)]
struct FieldOptionsRow {
    id: FieldId,
    collection_id: CollectionId,
    field_key: String,
    kind: String,
    options: JsonText,
}

/// The computed fields of a workspace's live collections.
fn lookers(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<Looker>> {
    let rows = |kinds: Vec<&'static str>| {
        collection_fields::table
            .inner_join(collections::table.on(collections::id.eq(collection_fields::collection_id)))
            .filter(collections::workspace_id.eq(workspace))
            .filter(collections::trashed_at.is_null())
            .filter(collection_fields::trashed_at.is_null())
            .filter(collection_fields::kind.eq_any(kinds))
            .order(collection_fields::id)
            .select(FieldOptionsRow::as_select())
    };
    let computed = [FieldType::Formula, FieldType::Rollup, FieldType::Lookup].map(FieldType::as_str);
    let computed: Vec<FieldOptionsRow> = rows(computed.to_vec()).load(read.connection())?;
    if computed.is_empty() {
        return Ok(Vec::new());
    }
    let relations: Vec<FieldOptionsRow> = rows(vec![FieldType::Relation.as_str()]).load(read.connection())?;
    let mut targets: HashMap<Source, CollectionId> = HashMap::new();
    for row in relations {
        let options: FieldOptions = row.options.parse()?;
        targets
            .extend(options.target_collection_id.map(|target| ((row.collection_id, row.field_key), target)));
    }
    computed.into_iter().map(|row| Looker::of(row, &targets)).collect()
}

impl Looker {
    fn of(row: FieldOptionsRow, targets: &HashMap<Source, CollectionId>) -> Result<Self> {
        let options: FieldOptions = row.options.parse()?;
        let collection = row.collection_id;
        let mut looks_at: Vec<Source> = Vec::new();
        if row.kind == FieldType::Formula.as_str() {
            let formula = options.expression.as_deref().and_then(|text| Formula::parse(text).ok());
            let keys = formula.iter().flat_map(Formula::fields);
            looks_at.extend(keys.map(|key| (collection, key.to_owned())));
        } else if let Some(relation) = options.relation {
            let relation = (collection, relation);
            let target = targets.get(&relation).copied();
            looks_at.push(relation);
            looks_at.extend(target.zip(options.field));
        }
        Ok(Self { id: row.id, collection, key: row.field_key, looks_at })
    }
}
