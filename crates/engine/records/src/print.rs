//! Items as answers: all of their values or some, with the objects that they point to.
//!
//! What is stored goes out unparsed wherever nothing is left out.

use crate::rows::{ItemRow, pick};
use crate::shape::{ExpandedFields, Shape, Shown};
use model::{Error, Result};
use operation::RawRows;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The most objects that are shown for a field of an item.
const MOST_SHOWN: usize = 25;

/// Prints items of one collection.
#[derive(Debug)]
pub struct Printer<'a> {
    pub(crate) shape: &'a Shape,
    /// The keys of the values that are shown; `None` for all.
    pub(crate) keys: Option<Vec<&'a str>>,
    pub(crate) expanded: Vec<Expanded>,
}

impl<'a> Printer<'a> {
    /// One that prints items with all of their values.
    pub fn whole(shape: &'a Shape) -> Self {
        Self { shape, keys: None, expanded: Vec::new() }
    }
}

impl Printer<'_> {
    /// The values of an item that are shown.
    ///
    /// # Errors
    /// `internal_error` if stored JSON is damaged.
    pub fn values<'r>(&self, row: &'r ItemRow) -> Result<Cow<'r, RawValue>> {
        let data = match &self.keys {
            None if self.shape.leaving.is_empty() => return Ok(Cow::Borrowed(row.data.raw()?)),
            None => {
                let mut data = row.values()?;
                data.retain(|key, _| !self.shape.leaving.contains(key));
                data
            }
            Some(keys) => pick(row.data.as_str(), keys)?,
        };
        Ok(Cow::Owned(to_raw_value(&data).map_err(Error::internal)?))
    }

    /// Prints an item.
    ///
    /// # Errors
    /// `internal_error` if stored JSON is damaged.
    pub fn print(&self, row: &ItemRow, out: &mut String) -> Result<()> {
        let data = self.values(row)?;
        let expanded = match self.expanded.is_empty() {
            true => None,
            false => Some(ExpandedFields::new(
                self.expanded.iter().map(|expanded| expanded.objects_of(row)).collect::<Result<_>>()?,
            )),
        };
        (self.shape.kind.print)(Shown { row, data: &data, expanded }, out)
    }

    /// An item as JSON.
    ///
    /// # Errors
    /// `internal_error` if stored JSON is damaged.
    pub fn json(&self, row: &ItemRow) -> Result<Value> {
        let mut text = String::with_capacity(row.data.as_str().len() + 512);
        self.print(row, &mut text)?;
        serde_json::from_str(&text).map_err(Error::internal)
    }

    /// Prints items.
    ///
    /// # Errors
    /// `internal_error` if stored JSON is damaged.
    pub fn rows<'r>(&self, rows: impl Iterator<Item = &'r ItemRow>) -> Result<RawRows> {
        let mut printed = RawRows::default();
        for row in rows {
            self.print(row, printed.row())?;
        }
        Ok(printed)
    }
}

/// A field that is expanded, and the objects that it points to, by id.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) key: String,
    pub(crate) objects: BTreeMap<i64, Box<RawValue>>,
}

/// The first ids that a field of an item has.
pub(crate) fn pointed_to(row: &ItemRow, key: &str) -> Result<Vec<i64>> {
    let data = pick(row.data.as_str(), &[key])?;
    let ids = data.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Ok(ids.iter().filter_map(Value::as_i64).take(MOST_SHOWN).collect())
}

impl Expanded {
    /// The objects of an item's field, with its key.
    fn objects_of(&self, row: &ItemRow) -> Result<(&str, Vec<&RawValue>)> {
        let ids = pointed_to(row, &self.key)?;
        let objects = ids.iter().filter_map(|id| self.objects.get(id)).map(|object| &**object);
        Ok((self.key.as_str(), objects.collect()))
    }
}
