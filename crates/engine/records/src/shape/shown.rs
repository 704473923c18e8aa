//! A record as it is sent: stored JSON is part of the answer as it is.

use crate::rows::ItemRow;
use model::{Error, Result};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A record and what is shown of it, for [`Kind::print`](super::Kind::print).
#[derive(Debug)]
pub struct Shown<'a> {
    /// The record as it is stored.
    pub row: &'a ItemRow,
    /// The values that are shown, as a JSON object.
    pub data: &'a RawValue,
    /// The objects that fields refer to, where they were asked for.
    pub expanded: Option<ExpandedFields<'a>>,
}

/// The objects that the fields of a record refer to, by field key.
#[derive(Debug)]
pub struct ExpandedFields<'a>(Vec<(&'a str, Vec<&'a RawValue>)>);

impl<'a> ExpandedFields<'a> {
    /// The objects of some fields, each with its key.
    pub(crate) fn new(fields: Vec<(&'a str, Vec<&'a RawValue>)>) -> Self {
        Self(fields)
    }
}

impl Serialize for ExpandedFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, objects)| (key, objects)))
    }
}

/// Appends a value as JSON.
///
/// # Errors
/// `internal_error` if stored JSON that is a part of it is damaged.
pub fn push_json(out: &mut String, value: &(impl Serialize + ?Sized)) -> Result<()> {
    out.push_str(&serde_json::to_string(value).map_err(Error::internal)?);
    Ok(())
}
