//! The operation that merges two contacts of the same person.
//!
//! The source goes to the trash. In the same transaction, the survivor takes over its ids, its identities and all
//! references to it. Only values of items that contain its id are replaced in the background (`query::references`).

use crate::record::detail::{self, ContactDetail};
use crate::record::events::{ContactsMerged, MergeEvent};
use crate::record::find::{FindContact, TRIES, editor};
use crate::record::merges;
use crate::record::print::APP_URL;
use crate::record::system_fields::{ALIASES, AUTOPILOT_CONFIG, PAUSED_UNTIL, ROUTING_CONFIG, SEGMENTS};
use fields::{Data, Field, FieldType};
use model::{Caller, Code, ContactId, Error, FieldId, Result, string_enum};
use operation::{Body, ExpectedVersion, IfMatch, Path, RawJson, State, With, operation};
use ports::{ContactRef, ContactUses};
use query::references;
use records::links;
use records::links::table::{LinkTargetType, retarget};
use records::rows::{self, Draft, ItemRow};
use records::shape::{Shape, Shapes};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::Tx;
use utoipa::ToSchema;

/// The most identities of one field that a survivor takes over.
const MOST_ALIASES: usize = 100;

/// A contact to merge into another.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "source_id": 12, "prefer": "target", "fields": { "$company": "source" } }))]
pub struct ContactMerge {
    /// The id of the contact to merge into the one of the path.
    pub source_id: ContactId,
    /// Which contact's values are kept where both have one.
    #[serde(default)]
    pub prefer: MergePreference,
    /// By field key, the contact whose value is kept, for fields that are an exception to `prefer`.
    #[serde(default)]
    pub fields: BTreeMap<String, MergeSide>,
    /// The expected version of the contact of the path, like `If-Match`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

string_enum! {
    /// Which contact's values are kept where both have one.
    #[derive(Default)]
    pub enum MergePreference {
        /// Those of the contact of the path.
        #[default]
        Target = "target",
        /// Those of the contact that is merged into it.
        Source = "source",
        /// Those of the contact that was changed last.
        Newest = "newest",
    }
}

string_enum! {
    /// One of two contacts.
    pub enum MergeSide {
        /// The contact of the path.
        Target = "target",
        /// The contact that is merged into it.
        Source = "source",
    }
}

/// Merge another contact into this one
///
/// The other contact goes to the trash, and its id finds this one from then on. Notes, consents, tasks, reminders and links
/// of both belong to this contact; values of items that name the other follow shortly after. Fields that only one contact
/// has are kept; where both have a value, `prefer` and `fields` decide, and a telephone number or other identity that is
/// not kept still identifies the contact. Tags and segments are united. A contact that is blocked, opted out or answered by
/// a person in one of the two is so afterwards.
#[operation(post "/contacts/{contactId}/merge", scope = "contacts:write")]
pub fn merge_contact(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(merge): Body<ContactMerge>,
    if_match: IfMatch,
    shapes: State<Shapes>,
    uses: State<ContactUses>,
) -> Result<With<RawJson<ContactDetail<'static>>>> {
    let expected = ExpectedVersion::new(if_match, merge.version)?;
    let editor = editor(tx, &shapes.0, caller)?;
    let shape = &editor.shape;
    merge.check(shape)?;
    let (target, source) = lock_both(tx, shape, &shapes.0, &contact_id, merge.source_id, expected)?;

    let merged = merge.values(shape, &target, &source)?;
    let writer = editor.writer();
    // Trashing the source first frees its unique values for the survivor.
    writer.trash(tx, &source)?;
    let external_key = target.external_key.clone().or_else(|| source.external_key.clone());
    let left = source.external_key.as_deref().filter(|key| external_key.as_deref() != Some(*key));
    let draft = Draft { data: merged, external_key: external_key.clone(), position: target.position.clone() };
    let row = writer.update(tx, target, draft)?.row;
    let (from, to) = (ContactId::from(source.id), ContactId::from(row.id));
    uses.0.replace(tx, shape.workspace, from, to)?;
    retarget(tx, shape.workspace, LinkTargetType::Contact, &from.to_string(), &to.to_string())?;
    references::replace(tx, shape.workspace, FieldType::Contact, source.id, row.id)?;
    let actor = &editor.author.cause.actor;
    merges::record(tx, shape.workspace, (source.id, left), row.id, actor)?;
    let merged = ContactsMerged { contact_id: to, app_url: APP_URL, merged_id: from };
    tx.emit(shape.workspace, &editor.author.cause, true, &MergeEvent::Merged(merged))?;
    detail::answer(tx, shape, &row)
}

/// Locks the target, which the path names, and the source. Both are resolved again if a concurrent transaction moved
/// them.
fn lock_both(
    tx: &mut Tx,
    shape: &Shape,
    shapes: &Shapes,
    target: &ContactRef,
    source: ContactId,
    expected: ExpectedVersion,
) -> Result<(ItemRow, ItemRow)> {
    let source = ContactRef::from(source);
    for _ in 0..TRIES {
        let target = target.live(tx, shape)?;
        rows::expect_version(shape, &target, expected)?;
        let target = target.id;
        let source = source.live(tx, shape).map_err(|error| error.param("source_id"))?.id;
        if source == target {
            return Err(Error::new(Code::InvalidState, "Both are the same contact.").param("source_id"));
        }
        links::hold_leaving(tx, shapes, shape.workspace, &[target, source])?;
        let mut live = |id| -> Result<Option<ItemRow>> {
            Ok(rows::find_locked(tx, shape, id)?.filter(|row| row.trashed_at.is_none()))
        };
        // While this transaction waited for the locks, either contact may have been merged into a third.
        if let (Some(target), Some(source)) = (live(target)?, live(source)?) {
            rows::expect_version(shape, &target, expected)?;
            return Ok((target, source));
        }
    }
    Err(Error::not_found("contact"))
}

impl ContactMerge {
    /// Checks that `fields` names only fields that keep one of the two values. Tags are united instead.
    fn check(&self, shape: &Shape) -> Result<()> {
        for key in self.fields.keys() {
            let is_chosen = |field: &&Field| !field.is_read_only() && field.kind != FieldType::Tags;
            if shape.named(key).filter(is_chosen).is_none() {
                let rule = "is not a field of which one value is kept";
                return Err(Error::invalid(format!("fields.{key}"), rule));
            }
        }
        Ok(())
    }

    /// Computes the values of the survivor.
    fn values(&self, shape: &Shape, target: &ItemRow, source: &ItemRow) -> Result<Data> {
        let (mut data, other) = (target.values()?, source.values()?);
        let is_newer = (source.updated_at, source.id) > (target.updated_at, target.id);
        let prefers_source = match self.prefer {
            MergePreference::Target => false,
            MergePreference::Source => true,
            MergePreference::Newest => is_newer,
        };
        let named = self.fields.iter().filter_map(|(name, side)| Some((shape.named(name)?.id, side)));
        let chosen: Vec<(FieldId, &MergeSide)> = named.collect();
        let mut aliases = Aliases::of(&data, &other);
        for field in shape.fields.iter().filter(|field| !field.is_read_only()) {
            let key = field.key.as_str();
            if field.kind == FieldType::Tags {
                unite(&mut data, &other, key);
                continue;
            }
            let Some(theirs) = other.get(key) else { continue };
            let chosen = chosen.iter().find(|(id, _)| *id == field.id);
            let takes = chosen.map_or(prefers_source, |(_, side)| **side == MergeSide::Source);
            let left = match data.get(key) {
                Some(_) if !takes => Some(theirs.clone()),
                _ => data.insert(key.to_owned(), theirs.clone()),
            };
            if let Some(left) = left.filter(|_| field.unique) {
                aliases.add(key, left);
            }
        }
        aliases.put_into(&mut data);
        unite(&mut data, &other, SEGMENTS);
        copy_restrictions(&mut data, &other);
        fields::computed::order(shape, &mut data);
        Ok(data)
    }
}

/// Adds the elements of the source's list that the survivor's list lacks.
fn unite(data: &mut Data, other: &Data, key: &str) {
    let Some(Value::Array(theirs)) = other.get(key) else { return };
    let mut all = match data.get(key) {
        Some(Value::Array(own)) => own.clone(),
        _ => Vec::new(),
    };
    all.extend(theirs.iter().filter(|element| !all.contains(element)).cloned().collect::<Vec<_>>());
    data.insert(key.to_owned(), all.into());
}

/// Copies the restrictions of the source: blocked, opted out, answered by a person. A merge must never make a contact
/// receive more than both did before.
fn copy_restrictions(data: &mut Data, other: &Data) {
    let says = |data: &Data, key: &str, value: &Value| data.get(key) == Some(value);
    for (key, strict) in [("$status", json!("blocked")), ("$opted_out", json!(true))] {
        if says(other, key, &strict) {
            data.insert(key.to_owned(), strict);
        }
    }
    let off = json!(false);
    if says(other, "$autopilot", &off) && !says(data, "$autopilot", &off) {
        copy(data, other, &["$autopilot", PAUSED_UNTIL, AUTOPILOT_CONFIG]);
    }
    if !data.contains_key("$assignee") {
        copy(data, other, &["$assignee", ROUTING_CONFIG]);
    }
}

fn copy(data: &mut Data, other: &Data, keys: &[&str]) {
    for key in keys {
        data.extend(other.get(*key).map(|value| ((*key).to_owned(), value.clone())));
    }
}

/// The identities that the survivor takes over, by field.
struct Aliases(Map<String, Value>);

impl Aliases {
    /// Collects the identities that both contacts took over in earlier merges.
    fn of(data: &Data, other: &Data) -> Self {
        let mut all = Self(Map::new());
        for taken in
            [data, other].into_iter().filter_map(|data| data.get(ALIASES)).filter_map(Value::as_object)
        {
            for (key, values) in taken {
                values.as_array().into_iter().flatten().for_each(|value| all.add(key, value.clone()));
            }
        }
        all
    }

    fn add(&mut self, key: &str, value: Value) {
        let values = self.0.entry(key).or_insert_with(|| json!([]));
        if let Value::Array(values) = values
            && values.len() < MOST_ALIASES
            && !values.contains(&value)
        {
            values.push(value);
        }
    }

    fn put_into(self, data: &mut Data) {
        if !self.0.is_empty() {
            data.insert(ALIASES.to_owned(), self.0.into());
        }
    }
}
