//! The table of links: reading it in the order of links, and writing both ends of a relation.
//!
//! A relation field has a row for each item that it points to. Where the target has a field that points back, that field
//! has a row of its own for the same link. [`insert`] and [`delete`] write both, and nothing else does.
//!
//! A link stays in the table while an end is in the trash, and is left out of whatever is shown.

use crate::schema::{collection_fields, item_links, items};
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable};
use fields::Field;
use model::{CollectionId, FieldId, ItemId, JsonText, LinkId, Result, Timestamp, WorkspaceId, text_enum};
use std::collections::HashMap;
use store::LockMode;
use store::{Read, Tx, each};

text_enum! {
    /// The type of object that a link points to.
    #[derive(Hash)]
    pub enum LinkTargetType {
        /// An item of any collection.
        Item = "item",
        /// A contact.
        Contact = "contact",
        /// A task.
        Task = "task",
        /// A conversation.
        Conversation = "conversation",
        /// A file.
        File = "file",
        /// A run of an agent.
        Run = "run",
    }
}

impl LinkTargetType {
    /// Whether their ids are numbers.
    pub fn has_numbers(self) -> bool {
        self != Self::Run
    }
}

/// The type of links between items.
pub const ITEM: LinkTargetType = LinkTargetType::Item;

/// What stands in `field_id` for a link that belongs to no field.
pub const FREE: FieldId = FieldId(0);

/// More rows than this are not put into one statement.
pub const CHUNK: usize = 500;

/// A link as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = item_links)]
#[expect(missing_docs, reason = "the columns are those of an item link as the API shows it")]
pub struct LinkRow {
    pub id: LinkId,
    pub collection_id: CollectionId,
    pub item_id: ItemId,
    pub field_id: FieldId,
    pub to_kind: LinkTargetType,
    pub to_collection_id: Option<CollectionId>,
    pub to_id: String,
    pub role: Option<String>,
    pub note: Option<String>,
    pub position: i64,
    pub version: i64,
    pub created_by: JsonText,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl LinkRow {
    /// The item it points to; `None` where it points to something else.
    pub fn item(&self) -> Option<ItemId> {
        self.to_id.parse().ok().filter(|_| self.to_kind == ITEM)
    }
}

/// A link to be stored.
#[derive(Debug, Clone, Insertable)]
#[diesel(table_name = item_links)]
#[expect(missing_docs, reason = "the columns are those of `LinkRow`")]
pub struct NewLink<'a> {
    pub workspace_id: WorkspaceId,
    pub collection_id: CollectionId,
    pub item_id: ItemId,
    pub field_id: FieldId,
    pub to_kind: LinkTargetType,
    pub to_collection_id: Option<CollectionId>,
    pub to_id: String,
    pub role: Option<&'a str>,
    pub note: Option<&'a str>,
    pub position: i64,
    pub version: i64,
    pub created_by: &'a JsonText,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The item that a link points to, to be joined. Other targets have no number, and are not to be read as one.
pub fn to_item() -> SqlLiteral<Nullable<BigInt>> {
    sql("CASE WHEN item_links.to_kind = 'item' THEN CAST(item_links.to_id AS BIGINT) END")
}

/// The first live items that a relation field of an item points to, in the order of links.
pub fn pointed_to(read: &mut Read, item: ItemId, field: FieldId, most: usize) -> Result<Vec<ItemId>> {
    let links = item_links::table
        .inner_join(items::table.on(items::id.nullable().eq(to_item())))
        .filter(item_links::item_id.eq(item))
        .filter(item_links::field_id.eq(field))
        .filter(items::trashed_at.is_null())
        .order((item_links::position, item_links::id))
        .select(items::id)
        .limit(i64::try_from(most).unwrap_or(i64::MAX));
    Ok(links.load(read.connection())?)
}

/// The rows of a relation field of an item, with those that point into the trash, in the order of links.
pub(crate) fn rows_of(read: &mut Read, item: ItemId, field: FieldId) -> Result<Vec<LinkRow>> {
    let rows = item_links::table
        .filter(item_links::item_id.eq(item))
        .filter(item_links::field_id.eq(field))
        .order((item_links::position, item_links::id))
        .select(LinkRow::as_select());
    Ok(rows.load(read.connection())?)
}

/// The link of a field from an item to an object.
pub fn between(
    read: &mut Read,
    item: ItemId,
    field: FieldId,
    kind: LinkTargetType,
    to: &str,
) -> Result<Option<LinkRow>> {
    let found = item_links::table
        .filter(item_links::item_id.eq(item))
        .filter(item_links::field_id.eq(field))
        .filter(item_links::to_kind.eq(kind))
        .filter(item_links::to_id.eq(to))
        .select(LinkRow::as_select())
        .get_result(read.connection());
    Ok(found.optional()?)
}

/// A link that an item is an end of.
pub fn of_item(read: &mut Read, workspace: WorkspaceId, item: ItemId, id: LinkId) -> Result<Option<LinkRow>> {
    let found = item_links::table
        .filter(item_links::id.eq(id))
        .filter(item_links::workspace_id.eq(workspace))
        .select(LinkRow::as_select())
        .get_result(read.connection())
        .optional()?;
    Ok(found.filter(|link| link.item_id == item || link.item() == Some(item)))
}

/// Makes the free links to an object lead to another of its kind, which has taken its place. A link of an item that has
/// one to the other already goes.
///
/// # Errors
/// When the database fails.
pub fn retarget(
    tx: &mut Tx,
    workspace: WorkspaceId,
    kind: LinkTargetType,
    from: &str,
    to: &str,
) -> Result<()> {
    let leading_to = |id: &str| {
        item_links::workspace_id
            .eq(workspace)
            .and(item_links::to_kind.eq(kind))
            .and(item_links::to_id.eq(id.to_owned()))
    };
    let linked: Vec<(ItemId, FieldId)> = item_links::table
        .filter(leading_to(to))
        .select((item_links::item_id, item_links::field_id))
        .load(tx.connection())?;
    for (item, field) in linked {
        diesel::delete(item_links::table.filter(leading_to(from)))
            .filter(item_links::item_id.eq(item))
            .filter(item_links::field_id.eq(field))
            .execute(tx.connection())?;
    }
    diesel::update(item_links::table.filter(leading_to(from)))
        .set((item_links::to_id.eq(to), item_links::updated_at.eq(tx.now())))
        .execute(tx.connection())?;
    Ok(())
}

/// The free links of an item to objects of a kind that are not in the trash, with a role or with any.
pub fn free_links(
    read: &mut Read,
    item: ItemId,
    kind: LinkTargetType,
    role: Option<&str>,
    most: usize,
) -> Result<Vec<LinkRow>> {
    let mut links = item_links::table
        .left_join(items::table.on(items::id.nullable().eq(to_item())))
        .filter(item_links::item_id.eq(item))
        .filter(item_links::field_id.eq(FREE))
        .filter(item_links::to_kind.eq(kind))
        .filter(items::trashed_at.is_null())
        .into_boxed();
    if let Some(role) = role {
        links = links.filter(item_links::role.eq(role));
    }
    let links = links.order((item_links::position, item_links::id)).select(LinkRow::as_select());
    Ok(links.limit(i64::try_from(most).unwrap_or(i64::MAX)).load(read.connection())?)
}

/// The links of a field that leave from one of `from` and lead to a live item.
pub fn live_rows(read: &mut Read, field: FieldId, from: &[ItemId]) -> Result<Vec<LinkRow>> {
    let mut rows = Vec::new();
    for from in from.chunks(CHUNK) {
        let some: Vec<LinkRow> = item_links::table
            .inner_join(items::table.on(items::id.nullable().eq(to_item())))
            .filter(item_links::field_id.eq(field))
            .filter(item_links::item_id.eq_any(from))
            .filter(items::trashed_at.is_null())
            .order(item_links::id)
            .select(LinkRow::as_select())
            .load(read.connection())?;
        rows.extend(some);
    }
    Ok(rows)
}

/// The fields of items by which an item is pointed to, without free links.
pub fn pointing_fields(read: &mut Read, workspace: WorkspaceId, item: ItemId) -> Result<Vec<FieldId>> {
    let mut fields: Vec<FieldId> = Vec::new();
    // Each step is one look into the index, however many items point here.
    loop {
        let after = fields.last().copied().unwrap_or(FREE);
        let next: Option<FieldId> = item_links::table
            .filter(item_links::to_kind.eq(ITEM))
            .filter(item_links::to_id.eq(item.to_string()))
            .filter(item_links::workspace_id.eq(workspace))
            .filter(item_links::field_id.gt(after))
            .select(diesel::dsl::min(item_links::field_id))
            .get_result(read.connection())?;
        match next {
            Some(field) => fields.push(field),
            None => return Ok(fields),
        }
    }
}

/// The live items that point to an item by a field, by their ids behind `after`.
pub fn pointing(
    read: &mut Read,
    workspace: WorkspaceId,
    item: ItemId,
    field: FieldId,
    after: ItemId,
    most: usize,
) -> Result<Vec<ItemId>> {
    let found = item_links::table
        .inner_join(items::table.on(items::id.eq(item_links::item_id)))
        .filter(item_links::to_kind.eq(ITEM))
        .filter(item_links::to_id.eq(item.to_string()))
        .filter(item_links::workspace_id.eq(workspace))
        .filter(item_links::field_id.eq(field))
        .filter(item_links::item_id.gt(after))
        .filter(items::trashed_at.is_null())
        .order(item_links::item_id)
        .select(item_links::item_id)
        .limit(i64::try_from(most).unwrap_or(i64::MAX));
    Ok(found.load(read.connection())?)
}

/// The first `most` items that point to one by a field, live or in the trash.
pub(crate) fn all_pointing(
    read: &mut Read,
    workspace: WorkspaceId,
    item: ItemId,
    field: FieldId,
    most: usize,
) -> Result<Vec<ItemId>> {
    let found = item_links::table
        .filter(item_links::to_kind.eq(ITEM))
        .filter(item_links::to_id.eq(item.to_string()))
        .filter(item_links::workspace_id.eq(workspace))
        .filter(item_links::field_id.eq(field))
        .order(item_links::item_id)
        .select(item_links::item_id)
        .limit(i64::try_from(most).unwrap_or(i64::MAX));
    Ok(found.load(read.connection())?)
}

/// The items that point to one by a field, and by the same field to another that is live.
pub(crate) fn pointing_elsewhere(
    read: &mut Read,
    workspace: WorkspaceId,
    item: ItemId,
    field: FieldId,
) -> Result<Vec<ItemId>> {
    let elsewhere = diesel::alias!(item_links as elsewhere);
    let same = elsewhere
        .field(item_links::item_id)
        .eq(item_links::item_id)
        .and(elsewhere.field(item_links::field_id).eq(item_links::field_id))
        .and(elsewhere.field(item_links::id).ne(item_links::id));
    let target = sql::<Nullable<BigInt>>("CAST(elsewhere.to_id AS BIGINT)");
    let found = item_links::table
        .inner_join(elsewhere.on(same))
        .inner_join(items::table.on(items::id.nullable().eq(target)))
        .filter(item_links::to_kind.eq(ITEM))
        .filter(item_links::to_id.eq(item.to_string()))
        .filter(item_links::workspace_id.eq(workspace))
        .filter(item_links::field_id.eq(field))
        .filter(items::trashed_at.is_null())
        .select(item_links::item_id)
        .distinct();
    Ok(found.load(read.connection())?)
}

/// Those of some items that are live.
pub(crate) fn live_among(read: &mut Read, workspace: WorkspaceId, ids: &[ItemId]) -> Result<Vec<ItemId>> {
    let found = items::table
        .filter(items::id.eq_any(ids))
        .filter(items::workspace_id.eq(workspace))
        .filter(items::trashed_at.is_null())
        .select(items::id);
    Ok(found.load(read.connection())?)
}

/// Whether an item is in the trash, and not gone for good.
pub(crate) fn is_in_trash(read: &mut Read, workspace: WorkspaceId, item: ItemId) -> Result<bool> {
    let found = items::table
        .filter(items::id.eq(item))
        .filter(items::workspace_id.eq(workspace))
        .filter(items::trashed_at.is_not_null());
    Ok(diesel::select(diesel::dsl::exists(found)).get_result(read.connection())?)
}

/// The collection of a field; `None` for one that is gone.
pub fn home(read: &mut Read, workspace: WorkspaceId, field: FieldId) -> Result<Option<CollectionId>> {
    let found = collection_fields::table
        .filter(collection_fields::id.eq(field))
        .filter(collection_fields::workspace_id.eq(workspace))
        .select(collection_fields::collection_id)
        .get_result(read.connection());
    Ok(found.optional()?)
}

/// The last place among the links of a field, for each item that has any.
pub fn last_places(read: &mut Read, field: FieldId, items: &[ItemId]) -> Result<HashMap<ItemId, i64>> {
    let mut places = HashMap::new();
    for items in items.chunks(CHUNK) {
        let some: Vec<(ItemId, Option<i64>)> = item_links::table
            .filter(item_links::field_id.eq(field))
            .filter(item_links::item_id.eq_any(items))
            .group_by(item_links::item_id)
            .select((item_links::item_id, diesel::dsl::max(item_links::position)))
            .load(read.connection())?;
        places.extend(some.into_iter().map(|(item, place)| (item, place.unwrap_or_default())));
    }
    Ok(places)
}

/// Stores links.
pub fn insert(tx: &mut Tx, links: &[NewLink<'_>]) -> Result<()> {
    for links in links.chunks(CHUNK) {
        each!(tx.connection(), |connection| diesel::insert_into(item_links::table)
            .values(links)
            .execute(connection))?;
    }
    Ok(())
}

/// Removes the links of a field from an item to others, and what points back by `reverse`.
pub fn delete(
    tx: &mut Tx,
    item: ItemId,
    field: FieldId,
    reverse: Option<FieldId>,
    others: &[ItemId],
) -> Result<()> {
    for others in others.chunks(CHUNK) {
        let to_ids: Vec<String> = others.iter().map(ToString::to_string).collect();
        let rows = item_links::table
            .filter(item_links::item_id.eq(item))
            .filter(item_links::field_id.eq(field))
            .filter(item_links::to_kind.eq(ITEM))
            .filter(item_links::to_id.eq_any(to_ids));
        diesel::delete(rows).execute(tx.connection())?;
        let Some(reverse) = reverse else { continue };
        let mirrored = item_links::table
            .filter(item_links::item_id.eq_any(others))
            .filter(item_links::field_id.eq(reverse))
            .filter(item_links::to_kind.eq(ITEM))
            .filter(item_links::to_id.eq(item.to_string()));
        diesel::delete(mirrored).execute(tx.connection())?;
    }
    Ok(())
}

/// Puts a link in its place.
pub fn place(tx: &mut Tx, id: LinkId, position: i64) -> Result<()> {
    diesel::update(item_links::table.find(id))
        .set(item_links::position.eq(position))
        .execute(tx.connection())?;
    Ok(())
}

/// Gives a link another role, note and place.
pub fn revise(
    tx: &mut Tx,
    link: &LinkRow,
    role: Option<&str>,
    note: Option<&str>,
    position: i64,
) -> Result<()> {
    let now = tx.now();
    diesel::update(item_links::table.find(link.id))
        .set((
            item_links::role.eq(role),
            item_links::note.eq(note),
            item_links::position.eq(position),
            item_links::version.eq(link.version + 1),
            item_links::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// What relation fields are, with both of their ends.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// The id of the field.
    pub field: FieldId,
    /// Whether an item points to one at most.
    pub one: bool,
    /// The collection that it points to.
    pub target: CollectionId,
    /// The field of the target that points back, and whether it does so to one item at most.
    pub reverse: Option<(FieldId, bool)>,
}

impl Ends {
    /// The ends of a relation field, as far as the field itself tells.
    pub(crate) fn one_sided(field: &Field) -> Option<Self> {
        let target = field.options.target_collection_id?;
        let one = field.options.cardinality() == fields::Cardinality::One;
        Some(Self { field: field.id, one, target, reverse: None })
    }

    /// How the item at the other end is held when a link to it is made or removed: one that knows of the link changes
    /// by it.
    pub fn mode(&self) -> LockMode {
        if self.reverse.is_some() { LockMode::Exclusive } else { LockMode::Shared }
    }

    /// The field that points back.
    pub fn back(&self) -> Option<FieldId> {
        self.reverse.map(|(field, _)| field)
    }
}
