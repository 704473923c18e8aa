//! Changing a field, and what that means for the values that items have of it.
//!
//! First all items are looked at, without holding anything; then the change is made in one transaction, if the shape is
//! still the one that was looked at; then the items follow ([`rewrite`]).

use super::create::lacking;
use super::define::{self, Definition, can_be_primary, can_be_unique};
use super::dependents::{self, Source};
use super::events::publish_change;
use super::model::{CollectionField, FieldPatch, read_field, seen_field};
use super::resolve::resolve;
use super::rewrite::{self, Begun, RewritePlan, Step};
use super::survey::{self, ConversionReport};
use super::users;
use crate::Author;
use crate::indexes::table;
use crate::indexes::uniques;
use fields::convert;
use fields::option_rules::{as_map, restricted};

use crate::schema::collection_fields;
use crate::shape::{self, FieldRow, Shape, Shapes};
use diesel::prelude::*;
use fields::{Choice, Field, FieldOptions, FieldType};
use input::read_json;
use model::{Code, CollectionId, Error, FieldId, Patch, Result};
use operation::{Cx, ExpectedVersion};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::{Read, Tx};

/// Which field to change.
#[derive(Debug, Clone, Copy)]
pub struct FieldTarget {
    /// The id of the collection.
    pub collection: CollectionId,
    /// Its field.
    pub field: FieldId,
    /// The version that the request expects the field to have.
    pub expected: ExpectedVersion,
}

/// The field as it is to be, and what that does to items.
struct Proposal {
    row: FieldRow,
    next: Definition,
    plan: RewritePlan,
    /// Whether indexes on it must be made anew.
    reindex: bool,
    patch: FieldPatch,
}

/// A change that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Made {
    /// What is to be done to items.
    begun: Option<Begun>,
    /// What is to be done to items that are computed from the field.
    #[serde(default)]
    dependents: Vec<Begun>,
    /// What the answer says of a conversion.
    #[serde(alias = "told")]
    report: Option<ConversionReport>,
}

/// Whoever changes a shape all the time must not keep others from it for ever.
const TRIES: usize = 5;

/// Changes a field as `patch_of` says of the field as it is.
pub async fn run(
    cx: &Cx,
    shapes: &Arc<Shapes>,
    change: FieldTarget,
    patch_of: impl Fn(&Field) -> Result<FieldPatch> + Clone + Send + Sync + 'static,
) -> Result<CollectionField> {
    let author = Author::of(&cx.caller);
    let workspace = author.workspace;
    if let Some(made) = cx.made::<Made>()? {
        return follow(cx, shapes, change, made).await;
    }
    for _ in 0..TRIES {
        let (patch_now, shapes_now) = (patch_of.clone(), shapes.clone());
        let (shape, proposal) = cx
            .db
            .read(move |read| {
                let shape = shape::for_read(read, &shapes_now, workspace, change.collection)?;
                let proposal = propose(read, &shape, change.field, patch_now)?;
                Ok((shape, proposal))
            })
            .await?;
        let report = look(cx, &shape, &proposal).await?;
        if proposal.patch.dry_run {
            return Ok(CollectionField { conversion: report, ..now(cx, shapes, change).await? });
        }
        if let Some(report) = &report {
            refuse_losses(&shape, &proposal, report)?;
        }
        let report = report.filter(|_| proposal.changes_type());
        let (author, patch_of, seen) = (author.clone(), patch_of.clone(), shape.version);
        let shapes_now = shapes.clone();
        let made = cx.try_change(move |tx| {
            let begun = apply(tx, &shapes_now, &author, change, seen, patch_of.clone())?;
            Ok(begun.map(|(begun, dependents)| Made { begun, dependents, report: report.clone() }))
        });
        if let Some(made) = made.await? {
            return follow(cx, shapes, change, made).await;
        }
    }
    let message = "Other requests are changing the fields. Retry the request.";
    Err(Error::new(Code::ServiceUnavailable, message).retry_after(1))
}

/// Brings the items in line with a change, where they are few, and gives the field.
async fn follow(cx: &Cx, shapes: &Arc<Shapes>, change: FieldTarget, made: Made) -> Result<CollectionField> {
    rewrite::finish_soon(&cx.db, shapes, made.begun).await?;
    rewrite::finish_all_soon(&cx.db, shapes, made.dependents).await?;
    Ok(CollectionField { conversion: made.report, ..now(cx, shapes, change).await? })
}

/// The field as it is now.
async fn now(cx: &Cx, shapes: &Arc<Shapes>, change: FieldTarget) -> Result<CollectionField> {
    let (shapes, workspace) = (shapes.clone(), cx.caller.workspace_id());
    cx.db.read(move |read| read_field(read, &shapes, workspace, change.collection, change.field)).await
}

/// Looks at the items where the change may do something to them that somebody must know before.
async fn look(cx: &Cx, shape: &Arc<Shape>, proposal: &Proposal) -> Result<Option<ConversionReport>> {
    let risky =
        proposal.plan.steps.iter().any(|step| matches!(step, Step::Convert { .. } | Step::Without { .. }));
    if !risky && !proposal.newly_required() && !proposal.patch.dry_run {
        return Ok(None);
    }
    let (next, plan) = (Arc::new(proposal.next.draft()), Arc::new(proposal.plan.clone()));
    survey::survey(&cx.db, shape, &next, &plan).await.map(Some)
}

impl Proposal {
    fn changes_type(&self) -> bool {
        self.row.kind != self.next.kind.as_str()
    }

    /// Whether what is computed from the field may be another now.
    fn concerns_others(&self) -> Result<bool> {
        let is_looked_at = matches!(self.next.kind, FieldType::Datetime | FieldType::Relation);
        let other_options = self.row.options.parse::<FieldOptions>()? != self.next.options;
        Ok(self.changes_type() || (other_options && (is_looked_at || self.next.kind.is_computed())))
    }

    fn newly_required(&self) -> bool {
        self.next.required && (!self.row.required || self.changes_type())
    }
}

/// # Errors
/// `invalid_state` and `resource_in_use` with what would be lost, unless that was accepted.
fn refuse_losses(shape: &Shape, proposal: &Proposal, report: &ConversionReport) -> Result<()> {
    if proposal.newly_required() && proposal.next.default.is_none() && report.lacking() > 0 {
        return Err(lacking(shape, report.lacking()));
    }
    let unsure = report.sampled && proposal.changes_type();
    if proposal.patch.force || (report.losses() == 0 && !unsure) {
        return Ok(());
    }
    if !proposal.changes_type() {
        let message = format!(
            "{} {}s use a choice that would be removed. Send `force` to remove it from them.",
            report.losses(),
            shape.kind.noun
        );
        return Err(
            Error::new(Code::ResourceInUse, message).with("details", json!({ "count": report.losses() }))
        );
    }
    let message = if report.losses() > 0 {
        format!(
            "{} values would be lost or truncated. Send `force` to change the type anyway.",
            report.losses()
        )
    } else {
        format!(
            "Only {} {}s were checked, and there are more. Send `force` to change the type anyway.",
            report.items_seen, shape.kind.noun
        )
    };
    Err(Error::new(Code::InvalidState, message)
        .param("type")
        .with("details", json!({ "conversion": report })))
}

/// The row of a field that can be changed. A field that the service defines has a row of the choices that the workspace
/// has given to it; until the first change, the row is the one that the change stores.
///
/// # Errors
/// `not_found`.
pub(crate) fn stored(read: &mut Read, shape: &Shape, id: FieldId) -> Result<FieldRow> {
    if let Some(field) = shape.field_by_id(id).filter(|field| field.is_built_in() && field.is_changeable()) {
        let next_number = define::row_of_key(shape, &field.key)
            .select(collection_fields::next_number)
            .get_result(read.connection())
            .optional()?;
        return Ok(FieldRow::of(shape, field, next_number.unwrap_or(1)));
    }
    collection_fields::table
        .filter(collection_fields::id.eq(id))
        .filter(collection_fields::workspace_id.eq(shape.workspace))
        .filter(collection_fields::collection_id.eq(shape.collection))
        .filter(collection_fields::trashed_at.is_null())
        .select(FieldRow::as_select())
        .get_result(read.connection())
        .optional()?
        .ok_or_else(|| Error::not_found("field"))
}

fn propose(
    read: &mut Read,
    shape: &Shape,
    id: FieldId,
    patch_of: impl Fn(&Field) -> Result<FieldPatch>,
) -> Result<Proposal> {
    let row = stored(read, shape, id)?;
    let field = row.clone().field()?;
    let patch = patch_of(&field)?;
    let mut next = Definition::of(&field, row.next_number);
    if let Some(kind) = patch.kind.filter(|kind| *kind != field.kind) {
        change_type(&field, &mut next, kind)?;
    }
    if let Some(options) = &patch.options {
        next.options = merged(&field, &next.options, options)?;
    }
    if matches!(next.kind, FieldType::Select | FieldType::MultiSelect) {
        next.options.choices.get_or_insert_default();
    }
    if let Some(label) = &patch.label {
        label.trim().clone_into(&mut next.label);
    }
    patch.description.clone().apply(&mut next.description);
    next.required = patch.required.unwrap_or(next.required);
    next.unique = patch.unique.unwrap_or(next.unique);
    next.archived = patch.archived.unwrap_or(next.archived);
    match &patch.default {
        Patch::Keep => {}
        Patch::Clear => next.default = None,
        Patch::Set(value) => next.default = Some(value.clone()),
    }
    if matches!(patch.default, Patch::Keep) {
        keep_default(&field, &mut next);
    }
    if shape.primary == Some(id) && !can_be_primary(next.kind) {
        let rule = format!(
            "cannot be `{}`, because the field is the collection's primary field",
            next.kind.as_str()
        );
        return Err(Error::invalid("type", rule));
    }
    if next.kind != field.kind && !can_be_unique(next.kind) {
        refuse_in_unique_key(shape, &field, next.kind)?;
    }
    let choices = if next.kind == field.kind || field.options.choices.is_some() {
        field.options.choices().to_vec()
    } else {
        Vec::new()
    };
    if let Err(mistakes) = next.settle(&choices, "") {
        return Err(Error::all_invalid(mistakes).unwrap_or_else(|| Error::internal("no mistakes")));
    }
    let (mut plan, reindex) = plan_for(shape, &field, &next);
    let newly = next.required && (!field.required || next.kind != field.kind);
    if let (true, Some(default)) = (newly, &next.default) {
        plan.steps.push(Step::Fill { key: field.key.clone(), value: default.clone() });
    }
    Ok(Proposal { row, next, plan, reindex, patch })
}

fn change_type(field: &Field, next: &mut Definition, kind: FieldType) -> Result<()> {
    if !convert::is_possible(field.kind, kind) {
        let rule = format!(
            "cannot become `{}`: values of `{}` cannot be converted to it",
            kind.as_str(),
            field.kind.as_str()
        );
        return Err(Error::invalid("type", rule));
    }
    next.kind = kind;
    next.options = restricted(&next.options, kind);
    Ok(())
}

/// A default that was there before follows its field: to another type, and out where its choice is gone.
fn keep_default(field: &Field, next: &mut Definition) {
    // A unique field cannot have one: whoever makes it unique has to say that the default goes.
    if next.unique {
        return;
    }
    let Some(default) = next.default.take() else { return };
    let converted = convert::convert(field.kind, &field.options, &next.draft(), &default);
    next.default = converted.value(default);
}

/// Options as a PATCH leaves them: what is not named stays, `null` takes back.
fn merged(field: &Field, now: &FieldOptions, patch: &Map<String, Value>) -> Result<FieldOptions> {
    let mut map = as_map(now);
    for (name, value) in patch {
        let fixed = ["target_collection_id", "reverse_field_id", "reverse_field_key"];
        if fixed.contains(&name.as_str()) && map.get(name) != Some(value) {
            return Err(Error::invalid(
                format!("options.{name}"),
                "cannot be changed after the field was created",
            ));
        }
        if ["result_type", "result_error"].contains(&name.as_str()) {
            if map.get(name) == Some(value) || (value.is_null() && !map.contains_key(name)) {
                continue;
            }
            return Err(Error::invalid(format!("options.{name}"), "is read-only: the service determines it"));
        }
        if value.is_null() {
            map.remove(name);
        } else {
            map.insert(name.clone(), value.clone());
        }
    }
    let _ = field;
    read_json(Value::Object(map), "options", "options")
}

/// What a change does to the values of items, and whether indexes on the field must be made anew.
fn plan_for(shape: &Shape, field: &Field, next: &Definition) -> (RewritePlan, bool) {
    let mut plan = RewritePlan::default();
    let is_primary = shape.primary == Some(field.id);
    if next.kind != field.kind {
        plan.search = field.kind.is_searchable() || next.kind.is_searchable();
        plan.titles = is_primary;
        plan.steps.push(Step::Convert {
            key: field.key.clone(),
            from: field.kind,
            options: Box::new(field.options.clone()),
        });
        return (plan, true);
    }
    if next.kind.is_computed() && next.options != field.options {
        plan.sets = true;
        plan.titles = is_primary;
        return (plan, true);
    }
    let (old, new) = (field.options.choices(), next.options.choices());
    let place = |choices: &[Choice], key: &str| choices.iter().position(|choice| choice.key == key);
    let gone: Vec<String> = old
        .iter()
        .filter(|choice| place(new, &choice.key).is_none())
        .map(|choice| choice.key.clone())
        .collect();
    let relabelled = old.iter().any(|old| new.iter().any(|new| new.key == old.key && new.label != old.label));
    let moved =
        old.iter().enumerate().any(|(at, choice)| place(new, &choice.key).is_some_and(|now| now != at));
    if !gone.is_empty() {
        plan.steps.push(Step::Without { key: field.key.clone(), choices: gone });
    }
    if relabelled || !plan.steps.is_empty() {
        plan.search = true;
        plan.titles = is_primary;
    }
    (plan, moved && field.kind == FieldType::Select)
}

/// Work that a change leaves: on the items of the field, and on those that are computed from it.
type Left = (Option<Begun>, Vec<Begun>);

/// Makes the change, if the shape is still the one that was `seen`; `None` where it is not.
fn apply(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    change: FieldTarget,
    seen: i64,
    patch_of: impl Fn(&Field) -> Result<FieldPatch>,
) -> Result<Option<Left>> {
    let sources = concerned(tx, shapes, author, change, &patch_of)?;
    let mut locked = dependents::collections_of(tx, author.workspace, &sources)?;
    locked.insert(change.collection);
    shape::lock_for_change(tx, author.workspace, locked.iter().copied())?;
    let row = shape::for_change(tx, author.workspace, change.collection)?;
    row.refuse_archived()?;
    let shape = shape::within_change(tx, shapes, author.workspace, change.collection)?;
    let mut proposal = propose(tx, &shape, change.field, &patch_of)?;
    let progress = rewrite::progress(tx, change.collection)?;
    let converting = progress.get(&change.field).copied();
    let before = seen_field(&shape, change.field, converting)?;
    change
        .expected
        .check_showing(before.version, || serde_json::to_value(&before).map_err(Error::internal))?;
    if shape.version != seen {
        return Ok(None);
    }
    let old = Definition::of(&proposal.row.clone().field()?, proposal.row.next_number);
    // What cannot be computed any more can still get another label.
    if proposal.next.kind != old.kind || proposal.next.options != old.options {
        resolve(tx, shapes, author, &shape, &mut proposal.next, "")?;
    }
    if proposal.next == old {
        return Ok(Some((None, Vec::new())));
    }
    if converting.is_some() && (!proposal.plan.is_empty() || proposal.reindex) {
        return Err(Error::new(
            Code::InvalidState,
            "The field is being converted. Wait until the conversion has ended.",
        )
        .with("details", json!({ "converting": converting })));
    }
    if proposal.changes_type() && !proposal.patch.force {
        refuse_used(tx, &shape, change.field)?;
    }
    define::store(tx, &shape, change.field, &proposal.next, before.version + 1)?;
    if proposal.reindex {
        proposal.plan.indexes = table::drop_of_field(tx, change.collection, change.field)?;
    }
    shape::bump(tx, change.collection)?;
    let mut shape = shape::within_change(tx, shapes, author.workspace, change.collection)?;
    let except: &[FieldId] = if proposal.changes_type() { &[change.field] } else { &[] };
    if uniques::settle(tx, &shape, except)? {
        shape::bump(tx, change.collection)?;
        shape = shape::within_change(tx, shapes, author.workspace, change.collection)?;
    }
    let begun = rewrite::begin(tx, &shape, Some(change.field), &proposal.plan)?;
    publish_change(tx, shapes, author, change.collection, &before)?;
    let dependents = dependents::follow(tx, shapes, author, sources, &locked)?;
    Ok(Some((begun, dependents)))
}

/// The field, where what is computed from it may be another after the change.
fn concerned(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    change: FieldTarget,
    patch_of: impl Fn(&Field) -> Result<FieldPatch>,
) -> Result<Vec<Source>> {
    let shape = shape::within_change(tx, shapes, author.workspace, change.collection)?;
    let proposal = propose(tx, &shape, change.field, patch_of)?;
    let source = || (change.collection, proposal.next.key.clone());
    Ok(if proposal.concerns_others()? { vec![source()] } else { Vec::new() })
}

/// What is computed from a field was checked against its type.
///
/// # Errors
/// `field_in_use`.
fn refuse_used(tx: &mut Tx, shape: &Shape, id: FieldId) -> Result<()> {
    let Some(field) = shape.field_by_id(id) else { return Ok(()) };
    let users = users::computed(tx, shape, field)?;
    if users.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} fields are computed from `{}`. Send `force` to change its type anyway.",
        users.len(),
        field.key
    );
    Err(Error::new(Code::FieldInUse, message).with("details", json!({ "used_by": users })))
}

/// A unique key has values of some types only.
///
/// # Errors
/// `field_in_use`.
fn refuse_in_unique_key(shape: &Shape, field: &Field, kind: FieldType) -> Result<()> {
    let keys = shape.settings.unique_keys.iter().filter(|keys| keys.contains(&field.key));
    let users: Vec<Value> = keys.map(|keys| json!({ "object": "unique_key", "fields": keys })).collect();
    if users.is_empty() {
        return Ok(());
    }
    let message = format!(
        "`{}` is part of a unique key, which does not support the type `{}`.",
        field.key,
        kind.as_str()
    );
    Err(Error::new(Code::FieldInUse, message).param("type").with("details", json!({ "used_by": users })))
}
