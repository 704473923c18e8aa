//! Counting the elements of sets, such as tags, by the index of their field.

use crate::schema::item_keys;
use crate::shape::{IndexKind, Shape};
use diesel::dsl::count_star;
use diesel::prelude::*;
use fields::{Part, Subject, key};
use model::Result;
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

/// The keys of elements that live records have in a field, and how many have each.
fn count(read: &mut Read, shape: &Shape, field: &str, most: i64) -> Result<Vec<(Vec<u8>, i64)>> {
    let Some(field) = shape.field(field) else { return Ok(Vec::new()) };
    let parts = [Part { subject: Subject::Field(field.id), desc: false }];
    let index = shape.indexes.iter().find(|index| index.kind == IndexKind::Set && index.parts == parts);
    let Some(index) = index else { return Ok(Vec::new()) };
    Ok(item_keys::table
        .filter(item_keys::index_id.eq(index.id))
        .group_by(item_keys::k)
        .order((count_star().desc(), item_keys::k))
        .limit(most)
        .select((item_keys::k, count_star()))
        .load(read.connection())?)
}
