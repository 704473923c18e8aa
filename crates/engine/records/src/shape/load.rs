//! Loading shapes, and keeping them.

use super::{
    CollectionRow, CollectionSettings, CollectionStatus, FieldRow, Index, IndexRow, IndexStatus, KINDS, Kind,
    MergedRecords, Shape, set_of,
};
use crate::schema::{collection_fields, collection_indexes, collections};
use diesel::prelude::*;
use fields::{Field, FieldType};
use model::{Code, CollectionId, Error, FieldId, MemberId, Result, WorkspaceId};
use ports::{BusinessCalendar, ContactUses, Member, Members};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use store::{LockLevel, LockMode, Read, Tx, each};

/// The kinds of records that there are, and the shapes that were loaded. Every use asks the collection's row whether its
/// shape is still this one, so that what another replica changed is seen at once.
#[derive(Debug)]
pub struct Shapes {
    kinds: Vec<&'static Kind>,
    merged: MergedRecords,
    pub(super) base_url: Arc<str>,
    members: Option<Arc<dyn Members>>,
    business: Option<Arc<dyn BusinessCalendar>>,
    pub(super) contact_uses: ContactUses,
    kept: Mutex<HashMap<CollectionId, Arc<Shape>>>,
    /// Sets that have everything that their kind declares, so that nobody needs to look before each write.
    complete: Arc<Mutex<HashSet<CollectionId>>>,
}

/// More than this many are not kept.
const MOST_KEPT: usize = 1_000;
/// More sets than this are not remembered as complete.
const MOST_COMPLETE: usize = 100_000;

/// What must be read of a collection each time.
#[derive(Queryable, Selectable)]
#[diesel(table_name = collections)]
pub(crate) struct Stamp {
    shape_version: i64,
    status: CollectionStatus,
    settings: model::JsonText,
    primary_field_id: Option<FieldId>,
}

impl Shapes {
    /// The shapes of sets of these kinds.
    pub fn new(kinds: impl IntoIterator<Item = &'static Kind>) -> Self {
        let kinds: Vec<_> = kinds.into_iter().collect();
        Self {
            merged: MergedRecords::of(&kinds),
            kinds,
            base_url: Arc::from(""),
            members: None,
            business: None,
            contact_uses: ContactUses::default(),
            kept: Mutex::default(),
            complete: Arc::default(),
        }
    }

    /// The same, of a service that the world reaches at `base_url`.
    #[must_use]
    pub fn at(self, base_url: &str) -> Self {
        Self { base_url: Arc::from(base_url), ..self }
    }

    /// With the members of teams, whom values of `user` fields name. Without them such fields take no values.
    #[must_use]
    pub fn with_members(mut self, members: Arc<dyn Members>) -> Self {
        self.members = Some(members);
        self
    }

    /// With the profiles of businesses, whose country is that of telephone numbers without `+`.
    #[must_use]
    pub fn with_business(mut self, business: Arc<dyn BusinessCalendar>) -> Self {
        self.business = Some(business);
        self
    }

    /// With what refers to contacts. Without it none can be deleted permanently.
    #[must_use]
    pub fn with_contact_uses(mut self, contact_uses: ContactUses) -> Self {
        self.contact_uses = contact_uses;
        self
    }

    /// Tells fields of telephone numbers in which country the business is. Whoever changes it calls [`bump_all`].
    pub(super) fn place(&self, read: &mut Read, workspace: WorkspaceId, fields: &mut [Field]) -> Result<()> {
        let Some(business) = &self.business else { return Ok(()) };
        let mut numbers = fields.iter_mut().filter(|field| field.kind == FieldType::Phone).peekable();
        if numbers.peek().is_some() {
            let country = business.country(read, workspace)?;
            numbers.for_each(|field| field.home_country.clone_from(&country));
        }
        Ok(())
    }

    /// The country of the workspace's business, as an ISO 3166 code.
    ///
    /// # Errors
    /// When the database fails.
    pub fn country(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Option<String>> {
        self.business.as_ref().map_or(Ok(None), |business| business.country(read, workspace))
    }

    /// Those of `ids` that are members of the workspace's team.
    ///
    /// # Errors
    /// When the database fails.
    pub fn members(&self, read: &mut Read, workspace: WorkspaceId, ids: &[MemberId]) -> Result<Vec<Member>> {
        self.members.as_ref().map_or(Ok(Vec::new()), |members| members.among(read, workspace, ids))
    }

    /// The kind that the records of a set are of.
    ///
    /// # Errors
    /// When no group declared it.
    pub fn kind_of(&self, set: CollectionId) -> Result<&'static Kind> {
        let kind = self.kinds.iter().find(|kind| kind.has(set)).copied();
        kind.ok_or_else(|| Error::internal(format!("nobody declared the kind of records that set {set} has")))
    }

    /// The workspace's sets of kinds that have a built-in field of a type.
    pub fn sets_with(&self, kind: FieldType, workspace: WorkspaceId) -> Vec<CollectionId> {
        let has = |declared: &&&Kind| (declared.fields)().iter().any(|field| field.kind == kind);
        self.kinds.iter().filter(has).map(|declared| declared.set_of(workspace)).collect()
    }

    /// The set of the records that values of fields of this type name, in a workspace.
    pub(crate) fn set_named_by(&self, kind: FieldType, workspace: WorkspaceId) -> Option<CollectionId> {
        self.named_by(kind).map(|named| named.set_of(workspace))
    }

    /// The kind of the records that values of fields of this type name.
    pub(crate) fn named_by(&self, kind: FieldType) -> Option<&'static Kind> {
        let is_named = |declared: &&&Kind| declared.referenced_by.is_some_and(|by| by.kind == kind);
        self.kinds.iter().find(is_named).copied()
    }

    /// The kinds whose records values name, and what merged ones became.
    pub fn merged(&self) -> &MergedRecords {
        &self.merged
    }

    /// Whether a set has been found to have everything that its kind declares.
    pub(crate) fn is_complete(&self, set: CollectionId) -> bool {
        self.complete.lock().unwrap_or_else(PoisonError::into_inner).contains(&set)
    }

    /// Notes that a set is complete, once the transaction that found it so is committed: it may be the one that made the
    /// set.
    pub(crate) fn note_complete(&self, tx: &mut Tx, set: CollectionId) {
        let complete = self.complete.clone();
        tx.after_commit(move || {
            let mut complete = complete.lock().unwrap_or_else(PoisonError::into_inner);
            if complete.len() >= MOST_COMPLETE {
                complete.clear();
            }
            complete.insert(set);
        });
    }

    /// The shape that a set had when it was last looked at. What is made by it holds only where a transaction finds its
    /// [version](Shape::version) unchanged.
    pub fn latest(&self, set: CollectionId) -> Option<Arc<Shape>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&set).cloned()
    }

    fn kept(&self, collection: CollectionId, version: i64) -> Option<Arc<Shape>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&collection).filter(|shape| shape.version == version).cloned()
    }

    fn keep(&self, shape: &Arc<Shape>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(shape.collection, shape.clone());
    }
}

/// The shape of a live collection, for reading its items.
///
/// # Errors
/// `not_found`.
pub fn for_read(
    read: &mut Read,
    shapes: &Shapes,
    workspace: WorkspaceId,
    collection: CollectionId,
) -> Result<Arc<Shape>> {
    let stamp = stamp(read, workspace, collection)?;
    stamped(read, shapes, workspace, collection, stamp)
}

/// The shape of a live collection of which this was read.
///
/// # Errors
/// When the database fails.
pub(crate) fn stamped(
    read: &mut Read,
    shapes: &Shapes,
    workspace: WorkspaceId,
    collection: CollectionId,
    stamp: Stamp,
) -> Result<Arc<Shape>> {
    if let Some(shape) = shapes.kept(collection, stamp.shape_version) {
        return Ok(shape);
    }
    let shape = Arc::new(load(read, shapes, workspace, collection, stamp)?);
    shapes.keep(&shape);
    Ok(shape)
}

fn stamp(read: &mut Read, workspace: WorkspaceId, collection: CollectionId) -> Result<Stamp> {
    let stamp = each!(read.connection(), |connection| collections::table
        .filter(collections::id.eq(collection))
        .filter(collections::workspace_id.eq(workspace))
        .filter(collections::trashed_at.is_null())
        .select(Stamp::as_select())
        .get_result(connection));
    stamp.optional()?.ok_or_else(|| Error::not_found("collection"))
}

/// The shape of a collection whose items are about to be changed. On PostgreSQL it stays as it is until the transaction
/// ends; the one writer of SQLite sees to that by itself.
///
/// # Errors
/// `not_found`, and `invalid_state` for an archived collection.
pub fn for_write(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    collection: CollectionId,
) -> Result<Arc<Shape>> {
    let shape = held(tx, shapes, workspace, collection)?;
    if shape.archived {
        return Err(Error::new(
            Code::InvalidState,
            "The collection is archived, so its items cannot be changed.",
        )
        .with("details", serde_json::json!({ "state": CollectionStatus::Archived })));
    }
    Ok(shape)
}

/// The same for what the service itself brings up to date, which it does in archived collections too.
///
/// # Errors
/// `not_found`.
pub fn held(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    collection: CollectionId,
) -> Result<Arc<Shape>> {
    lock(tx, workspace, collection, LockMode::Shared)?;
    for_read(tx, shapes, workspace, collection)
}

/// The shape of a live collection as this transaction made it. It is not kept: should the transaction fail, nobody
/// must find it.
///
/// # Errors
/// `not_found`.
pub fn within_change(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    collection: CollectionId,
) -> Result<Arc<Shape>> {
    let stamp = stamp(tx, workspace, collection)?;
    load(tx, shapes, workspace, collection, stamp).map(Arc::new)
}

/// A live collection whose shape is about to be changed: nobody else writes its items or changes it until the
/// transaction ends. Call [`bump`] when the change is made.
///
/// # Errors
/// `not_found`.
pub fn for_change(tx: &mut Tx, workspace: WorkspaceId, collection: CollectionId) -> Result<CollectionRow> {
    lock(tx, workspace, collection, LockMode::Exclusive)?;
    collections::table
        .filter(collections::id.eq(collection))
        .filter(collections::workspace_id.eq(workspace))
        .filter(collections::trashed_at.is_null())
        .select(CollectionRow::as_select())
        .get_result(tx.connection())
        .optional()?
        .ok_or_else(|| Error::not_found("collection"))
}

/// Locks several collections for changes of their shapes, in the order in which that must be done. A [`for_change`] of
/// any of them waits for nobody then.
///
/// # Errors
/// When the database fails.
pub fn lock_for_change(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collections: impl IntoIterator<Item = CollectionId>,
) -> Result<()> {
    for collection in collections.into_iter().collect::<BTreeSet<_>>() {
        lock(tx, workspace, collection, LockMode::Exclusive)?;
    }
    Ok(())
}

/// Shared by whoever writes items, exclusive to whoever changes the shape. It is no lock of the collection's row: such
/// locks are not served in turn, so a change could wait for ever while others go on writing, and each writer would write
/// to the row.
fn lock(tx: &mut Tx, workspace: WorkspaceId, collection: CollectionId, mode: LockMode) -> Result<()> {
    tx.expect_lock_order(LockLevel::Collection, collection.0, mode)?;
    // With the workspace, so that nobody can lock what is another's.
    let name = format!("shape {workspace} {collection}");
    match mode {
        LockMode::Shared => tx.lock_shared(&name),
        LockMode::Exclusive => tx.lock(&name),
    }
}

/// Says that the shape changed, so that nobody uses an old one.
///
/// # Errors
/// When the database fails.
pub fn bump(tx: &mut Tx, collection: CollectionId) -> Result<()> {
    tx.expect_lock_order(LockLevel::Collection, collection.0, LockMode::Exclusive)?;
    let version = new_version(tx);
    diesel::update(collections::table.find(collection))
        .set(collections::shape_version.eq(version))
        .execute(tx.connection())?;
    Ok(())
}

/// Invalidates all shapes of a workspace.
///
/// # Errors
/// When the database fails.
pub fn bump_all(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    // The set of a kind is stored with its first record, which another transaction may be about to commit.
    let of_kinds = (1..KINDS).map(|number| set_of(number, workspace));
    let stored: Vec<CollectionId> = collections::table
        .filter(collections::workspace_id.eq(workspace))
        .select(collections::id)
        .load(tx.connection())?;
    let all: BTreeSet<_> = stored.into_iter().chain(of_kinds).collect();
    lock_for_change(tx, workspace, all)?;
    let version = new_version(tx);
    diesel::update(collections::table.filter(collections::workspace_id.eq(workspace)))
        .set(collections::shape_version.eq(version))
        .execute(tx.connection())?;
    Ok(())
}

/// A version for a new or changed shape. It is drawn, not counted: a shape that was loaded by a transaction which then
/// failed must never pass for the one that the next transaction makes.
pub fn new_version(tx: &Tx) -> i64 {
    let mut bytes = [0; 8];
    tx.random().fill(&mut bytes);
    i64::from_be_bytes(bytes) & i64::MAX
}

fn load(
    read: &mut Read,
    shapes: &Shapes,
    workspace: WorkspaceId,
    collection: CollectionId,
    stamp: Stamp,
) -> Result<Shape> {
    let kind = shapes.kind_of(collection)?;
    let rows: Vec<FieldRow> = collection_fields::table
        .filter(collection_fields::collection_id.eq(collection))
        .filter(collection_fields::workspace_id.eq(workspace))
        .order((collection_fields::position, collection_fields::id))
        .select(FieldRow::as_select())
        .load(read.connection())?;
    let indexes: Vec<IndexRow> = collection_indexes::table
        .filter(collection_indexes::collection_id.eq(collection))
        .filter(collection_indexes::workspace_id.eq(workspace))
        .filter(collection_indexes::status.ne(IndexStatus::Dropping))
        .order(collection_indexes::id)
        .select(IndexRow::as_select())
        .load(read.connection())?;
    let (leaving, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.trashed_at.is_some());
    let settings: CollectionSettings = stamp.settings.parse()?;
    let mut fields = (kind.fields)();
    let primary = kind.title_field(&fields).or(stamp.primary_field_id);
    for row in rows {
        let stored = row.field()?;
        match fields.iter_mut().find(|field| field.open_choices && field.key == stored.key) {
            Some(built_in) => built_in.take_choices(stored),
            None => fields.push(stored),
        }
    }
    shapes.place(read, workspace, &mut fields)?;
    Ok(Shape {
        workspace,
        kind,
        collection,
        version: stamp.shape_version,
        archived: stamp.status == CollectionStatus::Archived,
        settings,
        primary,
        fields: kind.with_fields(fields),
        leaving: leaving.into_iter().map(|row| row.field_key).collect(),
        indexes: indexes.iter().map(Index::of).collect::<Result<_>>()?,
        base_url: shapes.base_url.clone(),
        merged: shapes.merged.clone(),
        contact_uses: shapes.contact_uses.clone(),
    })
}
