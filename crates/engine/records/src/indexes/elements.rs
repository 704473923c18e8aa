//! Counting the elements of sets, such as tags, by the index of their field.

use crate::schema::item_keys;
use crate::shape::{IndexKind, Shape};
use diesel::dsl::count_star;
use diesel::prelude::*;
use fields::{Part, Subject, key};
use model::{IndexId, ItemId, Result};
use store::Read;

/// The words that live records have in a field of tags, and how many have each: the most frequent first.
///
/// # Errors
/// When the database fails.
pub fn count_words(read: &mut Read, shape: &Shape, field: &str, most: i64) -> Result<Vec<(String, i64)>> {
    let counted = count(read, shape, field, most)?;
    let word = |(k, count): (Vec<u8>, i64)| Some((key::word_of(&k)?, count));
    Ok(counted.into_iter().filter_map(word).collect())
}

/// The ids that live records have in a field, and how many have each: the most frequent first.
///
/// # Errors
/// When the database fails.
pub fn count_ids(read: &mut Read, shape: &Shape, field: &str, most: i64) -> Result<Vec<(i64, i64)>> {
    let counted = count(read, shape, field, most)?;
    let id = |(k, count): (Vec<u8>, i64)| Some((key::integer_of(&k)?, count));
    Ok(counted.into_iter().filter_map(id).collect())
}

/// The live records that have an id in a field, behind one of them, in the order of their own ids: at most `most`.
///
/// # Errors
/// When the database fails.
pub fn having_id(
    read: &mut Read,
    shape: &Shape,
    field: &str,
    id: i64,
    after: Option<ItemId>,
    most: i64,
) -> Result<Vec<ItemId>> {
    let Some(index) = index(shape, field) else { return Ok(Vec::new()) };
    let mut k = Vec::with_capacity(9);
    key::push_integer(&mut k, id, false);
    Ok(item_keys::table
        .filter(item_keys::index_id.eq(index))
        .filter(item_keys::k.eq(k))
        .filter(item_keys::item_id.gt(after.unwrap_or(ItemId(0))))
        .order(item_keys::item_id)
        .limit(most)
        .select(item_keys::item_id)
        .load(read.connection())?)
}

/// The index of the elements of a field.
fn index(shape: &Shape, field: &str) -> Option<IndexId> {
    let parts = [Part { subject: Subject::Field(shape.field(field)?.id), desc: false }];
    let index = shape.indexes.iter().find(|index| index.kind == IndexKind::Set && index.parts == parts)?;
    Some(index.id)
}

/// The keys of elements that live records have in a field, and how many have each.
fn count(read: &mut Read, shape: &Shape, field: &str, most: i64) -> Result<Vec<(Vec<u8>, i64)>> {
    let Some(index) = index(shape, field) else { return Ok(Vec::new()) };
    Ok(item_keys::table
        .filter(item_keys::index_id.eq(index))
        .group_by(item_keys::k)
        .order((count_star().desc(), item_keys::k))
        .limit(most)
        .select((item_keys::k, count_star()))
        .load(read.connection())?)
}
