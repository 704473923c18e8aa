//! Rollups and lookups: what an item computes from the items that one of its relation fields points to.
//!
//! They are computed over all links, not over the copy in the item's values, and stored like any other value.

use super::enqueue;
use super::extent::Extent;
use crate::links::table;
use crate::rows::ItemRow;
use crate::schema::{item_links, items};
use crate::shape::{self, Shape, Shapes};
use diesel::prelude::*;
use fields::ComputedError;
use fields::ComputedErrors;
use fields::Data;
use fields::Problem;
use fields::decimal::{self, Loss, Sum};
use fields::key;
use fields::{Cardinality, Family, Field, FieldOptions, FieldType, RollupAggregate};
use model::{Code, ItemId, JsonText, LinkId, Result};
use serde_json::Value;
use std::collections::HashSet;
use store::{Read, Tx};

/// Links of a relation that are looked at in passing. An item with more is computed by a job of its own, once for all
/// changes that were made meanwhile.
const BOUND: usize = 1_000;

/// Linked items that are in memory at a time.
const CHUNK: usize = 500;

/// The most characters of a text that is looked up or joined.
const MOST_TEXT: usize = 1_000;

/// The most values of a lookup.
const MOST_VALUES: usize = 100;

/// The most bytes of a lookup's values as JSON.
const MOST_BYTES: usize = 16 * 1024;

/// Checks a rollup or lookup that is to be saved, and gives the type of its result. A lookup along a relation that
/// points to many gives a list, which is `json`.
///
/// # Errors
/// The inner one says what is wrong: `invalid_relation`, `invalid_field`, `invalid_aggregate`. The outer one is the
/// database's.
pub fn check(
    read: &mut Read,
    shapes: &Shapes,
    shape: &Shape,
    kind: FieldType,
    options: &FieldOptions,
) -> Result<Result<FieldType, Problem>> {
    let relation = options.relation.as_deref().and_then(|key| shape.field(key));
    let Some(relation) = relation.filter(|field| field.kind == FieldType::Relation) else {
        let rule = "requires `options.relation`, the key of a relation field of this collection";
        return Ok(Err(Problem::new("invalid_relation", rule)));
    };
    if kind == FieldType::Rollup && options.aggregate.is_none() {
        return Ok(Err(Problem::new("invalid_aggregate", "requires `options.aggregate`")));
    }
    let Some(key) = options.field.as_deref() else {
        return Ok(match options.aggregate {
            Some(RollupAggregate::Count) if kind == FieldType::Rollup => Ok(FieldType::Integer),
            _ => Err(Problem::new(
                "invalid_field",
                "requires `options.field`, the key of a field of the target collection",
            )),
        });
    };
    let target = relation.options.target_collection_id;
    let target = match target.map(|target| shape::for_read(read, shapes, shape.workspace, target)) {
        Some(Ok(target)) => target,
        Some(Err(error)) if error.code() != Code::NotFound => return Err(error),
        _ => {
            return Ok(Err(Problem::new("invalid_relation", "refers to a collection that no longer exists")));
        }
    };
    let Some(field) = target.field(key) else {
        let near = target.nearest(key).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("uses `{key}`, which the target collection does not have{near}");
        return Ok(Err(Problem::new("invalid_field", message)));
    };
    if field.options.result_error.is_some() {
        let message = format!("uses `{key}`, which cannot be computed itself");
        return Ok(Err(Problem::new("invalid_field", message)));
    }
    let Some(seen) = seen_as(field) else {
        let message = format!("cannot use `{key}`, which has the type {}", field.kind.as_str());
        return Ok(Err(Problem::new("invalid_field", message)));
    };
    let is_one = relation.options.cardinality() == Cardinality::One;
    Ok(match (kind, options.aggregate) {
        (FieldType::Rollup, Some(aggregate)) => aggregated(aggregate, seen, field),
        _ if is_one => Ok(seen),
        _ => Ok(FieldType::Json),
    })
}

/// The type that a field's values have for whoever looks at them; `None` where nobody may: ids, and JSON of any size.
fn seen_as(field: &Field) -> Option<FieldType> {
    match field.kind {
        FieldType::Text | FieldType::LongText | FieldType::Select | FieldType::CreatedBy => {
            Some(FieldType::Text)
        }
        FieldType::Rating | FieldType::AutoNumber => Some(FieldType::Integer),
        FieldType::CreatedAt | FieldType::UpdatedAt => Some(FieldType::Datetime),
        FieldType::MultiSelect | FieldType::Tags => Some(FieldType::Json),
        FieldType::Formula | FieldType::Rollup | FieldType::Lookup => field.options.result_type,
        FieldType::Relation | FieldType::Contact | FieldType::User | FieldType::File | FieldType::Json => {
            None
        }
        plain => Some(plain),
    }
}

/// The type of an aggregate over values of a type.
fn aggregated(aggregate: RollupAggregate, seen: FieldType, field: &Field) -> Result<FieldType, Problem> {
    let family = seen.own_family();
    let fits = match aggregate {
        RollupAggregate::Count | RollupAggregate::CountDistinct => return Ok(FieldType::Integer),
        RollupAggregate::Sum | RollupAggregate::Avg => family == Family::Number,
        // The order of choices is not that of their keys, which are what is seen.
        RollupAggregate::Min | RollupAggregate::Max => {
            field.kind != FieldType::Select
                && matches!(
                    family,
                    Family::Number | Family::Date | Family::Datetime | Family::Time | Family::Text
                )
        }
        RollupAggregate::All | RollupAggregate::Any => family == Family::Boolean,
        RollupAggregate::Join => family == Family::Text,
    };
    if !fits {
        let message = format!("cannot use `{}`, whose values do not support the aggregate", field.key);
        return Err(Problem::new("invalid_aggregate", message));
    }
    Ok(match (aggregate, seen) {
        (RollupAggregate::Avg, FieldType::Integer) => FieldType::Number,
        (RollupAggregate::All | RollupAggregate::Any, _) => FieldType::Boolean,
        (RollupAggregate::Join, _) => FieldType::Text,
        (_, seen) => seen,
    })
}

/// Computes the rollups and lookups of an item from the items that it points to; of one that has no id yet, from none.
///
/// # Errors
/// The database's.
pub fn fill(
    tx: &mut Tx,
    shape: &Shape,
    row: Option<&ItemRow>,
    extent: Extent,
    data: &mut Data,
    errors: &mut ComputedErrors,
) -> Result<()> {
    let looks = |field: &&Field| matches!(field.kind, FieldType::Rollup | FieldType::Lookup);
    if !shape.fields.iter().any(|field| looks(&field)) {
        return Ok(());
    }
    for field in shape.fields.iter().filter(looks) {
        let relation = field.options.relation.as_deref().and_then(|key| shape.field(key));
        let is_gone = relation.is_none_or(|field| field.kind != FieldType::Relation);
        let error = field.options.result_error.or(is_gone.then_some(ComputedError::MissingSource));
        if let Some(error) = error {
            fields::computed::keep(&field.key, Err(error), data, errors);
        }
    }
    for relation in shape.fields.iter().filter(|field| field.kind == FieldType::Relation) {
        let along = |field: &&Field| {
            field.options.relation.as_deref() == Some(relation.key.as_str())
                && field.options.result_error.is_none()
        };
        let fields = shape.fields.iter().filter(looks).filter(along);
        let mut folds: Vec<(&Field, Fold)> =
            fields.map(|field| (field, Fold::of(field, relation.options.cardinality()))).collect();
        if folds.is_empty() {
            continue;
        }
        if let Some(row) = row
            && !fold(tx, row.id, relation, extent, &mut folds)?
        {
            enqueue::enqueue_item(tx, shape, row.id)?;
            continue;
        }
        for (field, fold) in folds {
            let result = match fold {
                Fold::Sum(sum) => summed(tx, relation, field, &sum)?.map(Some),
                fold => fold.value(),
            };
            fields::computed::keep(&field.key, result, data, errors);
        }
    }
    Ok(())
}

/// Takes the linked items into account; `false` where they are too many.
fn fold(
    read: &mut Read,
    item: ItemId,
    relation: &Field,
    extent: Extent,
    folds: &mut [(&Field, Fold)],
) -> Result<bool> {
    let mut after: Option<(i64, LinkId)> = None;
    let mut seen = 0;
    loop {
        let links = linked(read, item, relation, after)?;
        seen += links.len();
        if extent == Extent::Bounded && seen > BOUND {
            return Ok(false);
        }
        for (_, _, data) in &links {
            let data: Data = data.parse()?;
            for (field, fold) in &mut *folds {
                let value = field.options.field.as_deref().and_then(|key| data.get(key));
                fold.take(field, value);
            }
        }
        match links.last() {
            Some((position, id, _)) if links.len() == CHUNK => after = Some((*position, *id)),
            _ => return Ok(true),
        }
    }
}

/// The next linked items, in the order of links.
fn linked(
    read: &mut Read,
    item: ItemId,
    relation: &Field,
    after: Option<(i64, LinkId)>,
) -> Result<Vec<(i64, LinkId, JsonText)>> {
    let (position, id) = after.unwrap_or((i64::MIN, LinkId(0)));
    let behind = item_links::position.gt(position).or(item_links::id.gt(id));
    let links = item_links::table
        .inner_join(items::table.on(items::id.nullable().eq(table::to_item())))
        .filter(item_links::item_id.eq(item))
        .filter(item_links::field_id.eq(relation.id))
        .filter(item_links::position.ge(position))
        .filter(behind)
        .filter(items::trashed_at.is_null())
        .order((item_links::position, item_links::id))
        .select((item_links::position, item_links::id, items::data))
        .limit(i64::try_from(CHUNK).unwrap_or(i64::MAX));
    Ok(links.load(read.connection())?)
}

/// What becomes of the linked values.
#[derive(Debug)]
enum Fold {
    Count(i64),
    Sum(Sum),
    Avg(Sum),
    Best { greatest: bool, best: Option<(Vec<u8>, Value)> },
    Distinct(HashSet<String>),
    All(Option<bool>),
    Any(Option<bool>),
    Join(Option<String>),
    First(Option<Value>),
    List(Vec<Value>, usize),
}

impl Fold {
    fn of(field: &Field, cardinality: Cardinality) -> Self {
        match (field.options.aggregate, cardinality) {
            (Some(RollupAggregate::Count), _) => Self::Count(0),
            (Some(RollupAggregate::Sum), _) => Self::Sum(Sum::default()),
            (Some(RollupAggregate::Avg), _) => Self::Avg(Sum::default()),
            (Some(RollupAggregate::Min), _) => Self::Best { greatest: false, best: None },
            (Some(RollupAggregate::Max), _) => Self::Best { greatest: true, best: None },
            (Some(RollupAggregate::CountDistinct), _) => Self::Distinct(HashSet::new()),
            (Some(RollupAggregate::All), _) => Self::All(None),
            (Some(RollupAggregate::Any), _) => Self::Any(None),
            (Some(RollupAggregate::Join), _) => Self::Join(None),
            (None, Cardinality::One) => Self::First(None),
            (None, Cardinality::Many) => Self::List(Vec::new(), 0),
        }
    }

    /// Takes the value of one linked item.
    fn take(&mut self, field: &Field, value: Option<&Value>) {
        // An item that was not ticked is one that is not true.
        let is_true = value == Some(&Value::Bool(true));
        match (self, value) {
            (Self::Count(count), _) => *count += 1,
            (Self::All(all), _) => *all = Some(all.unwrap_or(true) && is_true),
            (Self::Any(any), _) => *any = Some(any.unwrap_or(false) || is_true),
            (_, None) => {}
            (Self::Sum(sum) | Self::Avg(sum), Some(Value::Number(number))) => sum.add(number),
            (Self::Sum(_) | Self::Avg(_), Some(_)) => {}
            (Self::Best { greatest, best }, Some(value)) => better(field, *greatest, best, value),
            (Self::Distinct(seen), Some(value)) => {
                seen.insert(value.to_string());
            }
            (Self::Join(joined), Some(value)) => join(joined, value),
            (Self::First(Some(_)), Some(_)) => {}
            (Self::First(first), Some(value)) => *first = Some(shortened(value)),
            (Self::List(list, bytes), Some(value)) => {
                // What is a list itself is laid out flat.
                let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                for value in values.iter().map(shortened) {
                    *bytes += value.to_string().len();
                    if list.len() < MOST_VALUES && *bytes <= MOST_BYTES {
                        list.push(value);
                    }
                }
            }
        }
    }

    /// What became of them; `None` for no value.
    ///
    /// # Errors
    /// A number that is not kept.
    fn value(self) -> Result<Option<Value>, ComputedError> {
        Ok(match self {
            Self::Count(count) => Some(count.into()),
            Self::Sum(sum) => Some(sum.kept(false)?),
            Self::Avg(sum) => sum.mean().as_ref().map(decimal::rounded).transpose()?,
            Self::Best { best, .. } => best.map(|(_, value)| value),
            Self::Distinct(seen) => Some(seen.len().into()),
            Self::All(value) | Self::Any(value) => value.map(Value::Bool),
            Self::Join(joined) => joined.map(Value::String),
            Self::First(first) => first,
            Self::List(list, _) => (!list.is_empty()).then(|| list.into()),
        })
    }
}

/// A sum as its field holds it.
///
/// # Errors
/// The inner one says why it is not kept, the outer one is the database's.
fn summed(
    read: &mut Read,
    relation: &Field,
    field: &Field,
    sum: &Sum,
) -> Result<Result<Value, ComputedError>> {
    let mut kept = sum.kept(false);
    // What is summed up is looked at only where that makes a difference.
    if kept == Err(Loss::TooPrecise) {
        kept = sum.kept(is_of_computed(read, relation, field)?);
    }
    // A whole number of any size is a number, but no value of an integer field.
    let is_whole = field.options.result_type == Some(FieldType::Integer);
    Ok(match kept {
        Ok(sum) if is_whole && !sum.is_i64() => Err(ComputedError::OutOfRange),
        kept => kept.map_err(ComputedError::from),
    })
}

/// Whether a rollup is made of values that are computed themselves.
fn is_of_computed(read: &mut Read, relation: &Field, field: &Field) -> Result<bool> {
    use crate::schema::collection_fields as f;
    let (Some(target), Some(key)) = (relation.options.target_collection_id, &field.options.field) else {
        return Ok(false);
    };
    let query = f::table
        .filter(f::collection_id.eq(target))
        .filter(f::field_key.eq(key))
        .filter(f::trashed_at.is_null());
    let kind: Option<String> = query.select(f::kind).first(read.connection()).optional()?;
    Ok(kind.and_then(|kind| FieldType::parse(&kind)).is_some_and(FieldType::is_computed))
}

/// Keeps the better of two values, by the order that the results have.
fn better(field: &Field, greatest: bool, best: &mut Option<(Vec<u8>, Value)>, value: &Value) {
    let mut place = Vec::new();
    key::push_field(&mut place, field, Some(value), false);
    if place.first() != Some(&key::VALUE) {
        return;
    }
    let is_better = match best {
        Some((before, _)) if greatest => place > *before,
        Some((before, _)) => place < *before,
        None => true,
    };
    if is_better {
        *best = Some((place, shortened(value)));
    }
}

fn join(joined: &mut Option<String>, value: &Value) {
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return };
    let joined = joined.get_or_insert_default();
    if joined.chars().count() >= MOST_TEXT {
        return;
    }
    if !joined.is_empty() {
        joined.push_str(", ");
    }
    joined.push_str(text);
    *joined = cut(joined);
}

/// A value small enough to be kept by whoever looks at it.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => cut(text).into(),
        other => other.clone(),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MOST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_texts_end_somewhere() {
        let mut joined = None;
        for _ in 0..1_000 {
            join(&mut joined, &Value::from("ß".repeat(100)));
        }
        assert_eq!(joined.unwrap().chars().count(), MOST_TEXT);
    }
}
