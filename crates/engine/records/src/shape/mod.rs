//! The shape of a set of records: its kind, its fields and its indexes, as reads and writes of records need them.
//!
//! A [`Shape`] is a snapshot. It is loaded once, shared, and checked against `collections.shape_version`, which is
//! another one after every change of fields or indexes; whoever writes items holds that row against changes of the shape meanwhile.

mod collection;
mod field;
mod index;
mod load;
mod merged;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
mod shown;

pub use collection::{CollectionRow, CollectionSettings, CollectionStatus};
pub use field::FieldRow;
pub use index::{Index, IndexKind, IndexOrigin, IndexRow, IndexStatus, KeyFormat};
pub use load::{
    Shapes, bump, bump_all, for_change, for_read, for_write, held, lock_for_change, new_version,
    within_change,
};
pub(crate) use load::{Stamp, stamped};
pub use merged::MergedRecords;
pub use shown::{ExpandedFields, Shown, push_json};

use crate::Author;
use crate::activity::{Action, Changes};
use crate::rows::ItemRow;
use fields::{Data, Field, FieldSet, FieldType};
use model::{CollectionId, FieldId, ItemId, Result, WorkspaceId};
use ports::ContactUses;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use store::{Read, Tx};

/// A kind of records: what a group declares to keep its objects in this engine.
///
/// The items of collections are one kind, and callers make as many collections as they like. Of every other kind each
/// workspace has one set, which is stored as a collection that callers cannot name: its id is negative.
#[derive(Debug)]
pub struct Kind {
    /// Its number, from 1 to 31, or 0 for items of collections. The ids of its sets are made of it, so it never changes.
    pub number: u16,
    /// What one of its records is called in messages: `item`.
    pub noun: &'static str,
    /// What a set of them is called in messages: `collection`.
    pub set_noun: &'static str,
    /// What bodies call the caller's own key of a record, which is unique: `external_key`.
    pub external_key: &'static str,
    /// The key of the hidden field with further values that identify a record: a JSON object with a list for each unique
    /// field that has some. No other record can have them, and records are found by them.
    pub aliases: Option<&'static str>,
    /// Where values of fields, of any kind of records, are ids of such records.
    pub referenced_by: Option<ReferencedBy>,
    /// The fields that the service defines ([`Field::built_in`]), before those of the workspace. Where a workspace can add
    /// some, their keys begin with `$`, as no other field's does.
    pub fields: fn() -> Vec<Field>,
    /// Where a body has the value of the field with this key, such as `data.price`: errors name it so.
    pub param: fn(key: &str) -> String,
    /// The key of the built-in field whose value is a record's title.
    pub title: Option<&'static str>,
    /// Indexes over built-in fields, each written as a sort: `-$last_seen`. Unique fields have theirs by themselves.
    pub indexes: &'static [&'static str],
    /// Appends a record as the JSON object that callers see.
    pub print: fn(Shown<'_>, out: &mut String) -> Result<()>,
    /// Fills in what follows from other values of a record that is about to be stored, and refuses one that lacks what
    /// every record of the kind needs. `before` has the values that a record had until then.
    pub complete:
        fn(data: &mut Data, before: Option<&Data>, external_key: Option<&str>, author: &Author) -> Result<()>,
    /// Texts that a record has in common with others that may be about the same. Records are
    /// [found by them](crate::search::sharing).
    pub match_keys: fn(&Data) -> Vec<String>,
    /// Does what follows from a change of a record, in its transaction: publishes its event.
    pub publish: fn(&mut Tx, &Author, &RecordChange<'_>) -> Result<()>,
}

/// The records into which others were merged, by the ids of the merged ones.
pub type Survivors = HashMap<ItemId, ItemId>;

/// How values of fields name records.
#[derive(Debug, Clone, Copy)]
pub struct ReferencedBy {
    /// The type of the fields.
    pub kind: FieldType,
    /// Finds the survivors of those records that were merged into others.
    pub survivors: fn(&mut Read, WorkspaceId, &[ItemId]) -> Result<Survivors>,
    /// Finds the records that were merged into these.
    pub merged_into: fn(&mut Read, WorkspaceId, &[ItemId]) -> Result<Vec<ItemId>>,
}

/// What happened to a record.
pub struct RecordChange<'a> {
    /// The shape of its set.
    pub shape: &'a Shape,
    /// The record, as it then is.
    pub row: &'a ItemRow,
    /// The type of activity.
    pub action: Action,
    /// By field, the old and the new values.
    pub changed: &'a Changes,
}

/// The version of a shape that is not stored.
const UNSTORED: i64 = -1;

/// Numbers of kinds: from 0 up to, and without, this one.
const KINDS: i64 = 32;

/// The workspace's set of the kind with this number, which is not that of items.
fn set_of(number: i64, workspace: WorkspaceId) -> CollectionId {
    CollectionId(-(workspace.0 * KINDS + number))
}

impl Kind {
    /// The workspace's set of this kind, which is not that of items.
    pub fn set_of(&self, workspace: WorkspaceId) -> CollectionId {
        set_of(i64::from(self.number), workspace)
    }

    /// Fields as those of a set of this kind.
    fn with_fields(&self, fields: Vec<Field>) -> FieldSet {
        FieldSet::new(self.set_noun, self.external_key, fields)
    }

    /// The built-in field whose value is a record's title.
    fn title_field(&self, built_in: &[Field]) -> Option<FieldId> {
        let title = self.title?;
        built_in.iter().find(|field| field.key == title).map(|field| field.id)
    }

    /// Whether a set is of this kind.
    pub fn has(&self, set: CollectionId) -> bool {
        let number = if set.0 < 0 { -set.0 % KINDS } else { 0 };
        number == i64::from(self.number)
    }
}

/// The shape of a set of records, at one moment.
#[derive(Debug)]
pub struct Shape {
    /// The tenant.
    pub workspace: WorkspaceId,
    /// What its records are.
    pub kind: &'static Kind,
    /// The id of the collection.
    pub collection: CollectionId,
    /// The state of the shape: another one after every change.
    pub version: i64,
    /// Whether items may be changed: an archived collection is read-only.
    pub archived: bool,
    /// The collection's settings.
    pub settings: CollectionSettings,
    /// The field whose value is an item's title.
    pub primary: Option<FieldId>,
    /// The fields, in order. Deleted ones are not among them.
    pub fields: FieldSet,
    /// Keys of deleted fields whose values are still being taken out of items.
    pub leaving: Vec<String>,
    /// The indexes, whatever their state; deleted ones are not among them.
    pub indexes: Vec<Index>,
    /// How the world reaches the service, for links to records.
    pub base_url: Arc<str>,
    /// The kinds whose merged records values may still name.
    pub merged: MergedRecords,
    /// What refers to contacts, for the kind that they are of.
    pub contact_uses: ContactUses,
}

impl Deref for Shape {
    type Target = FieldSet;
    fn deref(&self) -> &FieldSet {
        &self.fields
    }
}

impl Shape {
    /// The shape of a workspace's set of a kind to which nothing was written yet.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn built_in(
        read: &mut Read,
        shapes: &Shapes,
        workspace: WorkspaceId,
        kind: &'static Kind,
    ) -> Result<Self> {
        let mut fields = (kind.fields)();
        shapes.place(read, workspace, &mut fields)?;
        let fields = kind.with_fields(fields);
        Ok(Self {
            workspace,
            kind,
            collection: kind.set_of(workspace),
            version: UNSTORED,
            archived: false,
            settings: CollectionSettings::default(),
            primary: kind.title_field(&fields),
            fields,
            leaving: Vec::new(),
            indexes: Vec::new(),
            base_url: shapes.base_url.clone(),
            merged: shapes.merged().clone(),
            contact_uses: shapes.contact_uses.clone(),
        })
    }

    /// Whether the set is there: it is made with the first record.
    pub fn is_stored(&self) -> bool {
        self.version != UNSTORED
    }

    /// Where a body has the value of the field with this key.
    pub fn param(&self, key: &str) -> String {
        (self.kind.param)(key)
    }

    /// The unique fields that the service defines: those that identify a record.
    pub fn identities(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.is_built_in() && field.unique)
    }

    /// The field whose value is an item's title.
    pub fn primary(&self) -> Option<&Field> {
        self.field_by_id(self.primary?)
    }
}
