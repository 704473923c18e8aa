//! Items as answers: all of their values or some, with the objects that they point to.
//!
//! What is stored goes out unparsed wherever nothing is left out.

use crate::rows::{ItemRow, pick};
use crate::shape::Shape;
use model::{Error, Result};
use operation::RawRows;
use serde_json::Value;
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
    /// Prints an item.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn print(&self, row: &ItemRow, out: &mut String) -> Result<()> {
        let print =
            |row: &ItemRow, data: &str, out: &mut String| (self.shape.kind.print)(self.shape, row, data, out);
        match &self.keys {
            None if self.shape.leaving.is_empty() => print(row, row.data.as_str(), out),
            None => {
                let mut data = row.values()?;
                data.retain(|key, _| !self.shape.leaving.contains(key));
                print(row, &serde_json::to_string(&data).map_err(Error::internal)?, out);
            }
            Some(keys) => print(
                row,
                &serde_json::to_string(&pick(row.data.as_str(), keys)?).map_err(Error::internal)?,
                out,
            ),
        }
        if self.expanded.is_empty() {
            return Ok(());
        }
        // The item's closing brace comes behind what it points to.
        out.pop();
        out.push_str(",\"expanded\":{");
        for (place, expanded) in self.expanded.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            expanded.print(row, out)?;
        }
        out.push_str("}}");
        Ok(())
    }

    /// An item as JSON.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn json(&self, row: &ItemRow) -> Result<Value> {
        let mut text = String::with_capacity(row.data.as_str().len() + 512);
        self.print(row, &mut text)?;
        serde_json::from_str(&text).map_err(Error::internal)
    }

    /// Prints items.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn rows<'r>(&self, rows: impl Iterator<Item = &'r ItemRow>) -> Result<RawRows> {
        let mut printed = RawRows::default();
        for row in rows {
            self.print(row, printed.row())?;
        }
        Ok(printed)
    }
}

/// A field that is expanded, and the objects that it points to, printed, by id.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) key: String,
    pub(crate) objects: BTreeMap<i64, String>,
}

/// The first ids that a field of an item has.
pub(crate) fn pointed_to(row: &ItemRow, key: &str) -> Result<Vec<i64>> {
    let data = pick(row.data.as_str(), &[key])?;
    let ids = data.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Ok(ids.iter().filter_map(Value::as_i64).take(MOST_SHOWN).collect())
}

impl Expanded {
    /// Prints the objects of an item's field as a member of an object: `"supplier":[…]`.
    pub(crate) fn print(&self, row: &ItemRow, out: &mut String) -> Result<()> {
        out.push_str(&serde_json::to_string(&self.key).map_err(Error::internal)?);
        out.push_str(":[");
        let ids = pointed_to(row, &self.key)?;
        let texts: Vec<&str> = ids.iter().filter_map(|id| self.objects.get(id)).map(String::as_str).collect();
        out.push_str(&texts.join(","));
        out.push(']');
        Ok(())
    }
}
