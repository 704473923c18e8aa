//! Records by their dates, for what is to happen at them.

use chrono::NaiveDate;
use fields::FieldType;
use model::{CollectionId, ContactId, Result, WorkspaceId};
use serde_json::Value;
use store::Read;

/// A set of records with dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatedSet {
    /// The contacts of a workspace.
    Contacts,
    /// The items of a collection.
    Items(CollectionId),
    /// The open tasks of a workspace.
    Tasks,
}

/// Values of a field, from one day to another, both included. Days of moments are those of UTC.
#[derive(Debug, Clone, Copy)]
pub struct DateWindow<'a> {
    /// The key of the field, of type `date` or `datetime`.
    pub field: &'a str,
    /// The first day.
    pub first: NaiveDate,
    /// The last day.
    pub last: NaiveDate,
}

/// A live record with a date.
#[derive(Debug, Clone, PartialEq)]
pub struct DatedRecord {
    /// The id.
    pub id: i64,
    /// Its place in the order of the dates, behind which a search goes on.
    pub place: String,
    /// The value of the field.
    pub value: String,
    /// The contact whom the record is about.
    pub contact: Option<ContactId>,
    /// The time zone of the contact, if the record is one and it is known.
    pub time_zone: Option<String>,
    /// The record as events show it.
    pub record: Value,
}

/// Records with dates. Each group that keeps such records implements it.
pub trait DatedRecords: Send + Sync {
    /// Whether it keeps this set.
    fn keeps(&self, set: DatedSet) -> bool;

    /// The type of a field of the set; `None` if there is no such set or field.
    ///
    /// # Errors
    /// When the database fails.
    fn field_type(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        set: DatedSet,
        field: &str,
    ) -> Result<Option<FieldType>>;

    /// The records with a date in a window, in the order of their dates: at most `most` of them, behind the place `after`.
    ///
    /// # Errors
    /// `not_found` and `validation_error` if the set or the field is gone.
    fn within(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        set: DatedSet,
        window: DateWindow<'_>,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<DatedRecord>>;
}
