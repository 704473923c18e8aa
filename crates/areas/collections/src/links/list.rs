//! The operation that lists the links of an item.
//!
//! Outgoing links come first, sorted by field and position, and then incoming ones, sorted by field and source item.
//! Links whose other end is in the trash are left out.

use super::model::{
    ItemLink, ItemLinkKind, LinkDirection, LinkDirections, LinkQuery, LinkTarget, LinkTargetType, TargetId,
};
use super::targets;
use diesel::prelude::*;
use model::{Caller, Code, CollectionId, FieldId, ItemId, LinkId, Result, WorkspaceId};
use operation::{OptIn, OptInList, Path, Query, Rows, State, operation};
use ports::LinkDirectory;
use records::links::table::{self, FREE, ITEM, LinkRow};
use records::rows;
use records::schema::{item_links, items as items_table};
use records::shape::{self, Shape, Shapes};
use std::collections::HashMap;
use std::str::FromStr;
use store::Read;

/// The position of a link in the list, as cursors contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkPosition {
    Out(FieldId, i64, LinkId),
    In(FieldId, ItemId),
}

impl FromStr for LinkPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split(':');
        let direction = parts.next();
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or(());
        match direction {
            Some("out") => Ok(Self::Out(FieldId(number()?), number()?, LinkId(number()?))),
            Some("in") => Ok(Self::In(FieldId(number()?), ItemId(number()?))),
            _ => Err(()),
        }
    }
}

impl LinkPosition {
    fn of(link: &ItemLink, fields: &Fields) -> String {
        let field = fields.id_of(link);
        match link.direction {
            LinkDirection::Out => format!("out:{field}:{}:{}", link.position, link.id),
            LinkDirection::In => format!("in:{field}:{}", link.from.item_id),
        }
    }
}

/// The fields of the links of a page.
#[derive(Debug, Default)]
struct Fields {
    keys: HashMap<FieldId, String>,
    of_link: HashMap<LinkId, FieldId>,
}

impl Fields {
    fn id_of(&self, link: &ItemLink) -> FieldId {
        self.of_link.get(&link.id).copied().unwrap_or(FREE)
    }
}

/// What the item is linked to
///
/// Lists links of relation fields and free links, each with a summary of the object at the other end. Outgoing links
/// come first, by field and position.
#[expect(clippy::too_many_arguments, reason = "an operation names each thing that it takes")]
#[operation(get "/collections/{collectionId}/items/{itemId}/links", scope = "items:read", ceiling = 200)]
pub fn list_item_links(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Query(query): Query<LinkQuery>,
    page: OptIn,
    shapes: State<Shapes>,
    directory: State<LinkDirectory>,
) -> Result<OptInList<ItemLink>> {
    let workspace = caller.workspace_id();
    let shape = shape::for_read(read, &shapes.0, workspace, collection_id)?;
    rows::live(read, &shape, item_id)?;
    let after = page.page().after()?;
    let list = List {
        workspace,
        shape: &shape,
        shapes: &shapes.0,
        directory: &directory.0,
        item: item_id,
        query: &query,
    };
    let (mut fields, most) = (Fields::default(), page.page().fetch());
    let mut links = list.leading_out(read, after, most, &mut fields)?;
    let left = most - i64::try_from(links.len()).unwrap_or(most);
    if left > 0 {
        links.extend(list.leading_in(read, after, left, &mut fields)?);
    }
    Ok(page.answer(links, |link| LinkPosition::of(link, &fields)))
}

struct List<'a> {
    workspace: WorkspaceId,
    shape: &'a Shape,
    shapes: &'a Shapes,
    directory: &'a LinkDirectory,
    item: ItemId,
    query: &'a LinkQuery,
}

impl List<'_> {
    fn wants(&self, direction: LinkDirections) -> bool {
        let wanted = self.query.direction.unwrap_or_default();
        wanted == direction || wanted == LinkDirections::Both
    }

    /// Returns the next outgoing links.
    fn leading_out(
        &self,
        read: &mut Read,
        after: Option<LinkPosition>,
        most: i64,
        fields: &mut Fields,
    ) -> Result<Vec<ItemLink>> {
        if !self.wants(LinkDirections::Out) || matches!(after, Some(LinkPosition::In(..))) {
            return Ok(Vec::new());
        }
        let mut query = item_links::table
            .left_join(items_table::table.on(items_table::id.nullable().eq(table::to_item())))
            .filter(item_links::item_id.eq(self.item))
            .filter(item_links::to_kind.ne(ITEM).or(items_table::trashed_at.is_null()))
            .into_boxed();
        if let Some(key) = &self.query.field_key {
            let Some(field) = self.shape.field(key) else { return Ok(Vec::new()) };
            query = query.filter(item_links::field_id.eq(field.id));
        }
        if let Some(kind) = self.query.kind {
            query = query.filter(item_links::to_kind.eq(kind));
        }
        if let Some(role) = &self.query.role {
            query = query.filter(item_links::role.eq(role));
        }
        if let Some(LinkPosition::Out(field, position, id)) = after {
            let behind_id = item_links::position.eq(position).and(item_links::id.gt(id));
            let behind = item_links::position.gt(position).or(behind_id);
            query = query
                .filter(item_links::field_id.ge(field))
                .filter(item_links::field_id.gt(field).or(behind));
        }
        let rows: Vec<LinkRow> = query
            .order((item_links::field_id, item_links::position, item_links::id))
            .limit(most)
            .select(LinkRow::as_select())
            .load(read.connection())?;
        let linked = targets::pointed_to(read, self.directory, self.workspace, &rows)?;
        let show = |row: LinkRow| {
            fields.of_link.insert(row.id, row.field_id);
            let key = self.shape.field_by_id(row.field_id).map(|field| field.key.clone());
            let other = LinkTarget::of(&row).and_then(|target| linked.get(&target).cloned());
            ItemLink::of(row, LinkDirection::Out, key, other)
        };
        rows.into_iter().map(show).collect()
    }

    /// Returns the next incoming links.
    fn leading_in(
        &self,
        read: &mut Read,
        after: Option<LinkPosition>,
        most: i64,
        fields: &mut Fields,
    ) -> Result<Vec<ItemLink>> {
        let from_items = self.query.kind.is_none_or(|kind| kind == LinkTargetType::Item);
        if !self.wants(LinkDirections::In) || !from_items {
            return Ok(Vec::new());
        }
        let wanted = self.fields_leading_here(read, fields)?;
        let mut query = item_links::table
            .inner_join(items_table::table.on(items_table::id.eq(item_links::item_id)))
            .filter(item_links::to_kind.eq(ITEM))
            .filter(item_links::to_id.eq(self.item.to_string()))
            .filter(item_links::workspace_id.eq(self.workspace))
            .filter(item_links::field_id.eq_any(wanted))
            .filter(items_table::trashed_at.is_null())
            .into_boxed();
        if let Some(role) = &self.query.role {
            query = query.filter(item_links::role.eq(role));
        }
        if let Some(LinkPosition::In(field, item)) = after {
            let behind = item_links::field_id.gt(field).or(item_links::item_id.gt(item));
            query = query.filter(item_links::field_id.ge(field)).filter(behind);
        }
        let rows: Vec<LinkRow> = query
            .order((item_links::field_id, item_links::item_id))
            .limit(most)
            .select(LinkRow::as_select())
            .load(read.connection())?;
        let from: Vec<ItemId> = rows.iter().map(|row| row.item_id).collect();
        let linked = targets::shown_items(read, self.workspace, &from)?;
        let show = |row: LinkRow| {
            fields.of_link.insert(row.id, row.field_id);
            let key = fields.keys.get(&row.field_id).cloned();
            let other = LinkTarget { kind: LinkTargetType::Item, id: TargetId::Number(row.item_id.0) };
            ItemLink::of(row, LinkDirection::In, key, linked.get(&other).cloned())
        };
        rows.into_iter().map(show).collect()
    }

    /// Returns the fields whose links lead to the item and are to be listed. If both directions are listed, a link
    /// between two mutual relation fields appears only as an outgoing link.
    fn fields_leading_here(&self, read: &mut Read, fields: &mut Fields) -> Result<Vec<FieldId>> {
        let both = self.wants(LinkDirections::Out);
        let mut wanted = Vec::new();
        if self.query.field_key.is_none() {
            wanted.push(FREE);
        }
        for id in table::pointing_fields(read, self.workspace, self.item)? {
            let Some(home) = table::home(read, self.workspace, id)? else { continue };
            let shape = match shape::for_read(read, self.shapes, self.workspace, home) {
                Ok(shape) => shape,
                Err(error) if error.code() == Code::NotFound => continue,
                Err(error) => return Err(error),
            };
            let Some(field) = shape.field_by_id(id) else { continue };
            let back = field.options.reverse_field_id.and_then(|back| self.shape.field_by_id(back));
            let is_mirrored = back.is_some_and(|back| back.options.reverse_field_id == Some(id));
            let fits = self.query.field_key.as_ref().is_none_or(|key| *key == field.key);
            if fits && !(both && is_mirrored) {
                fields.keys.insert(id, field.key.clone());
                wanted.push(id);
            }
        }
        Ok(wanted)
    }
}

/// The kinds of link
///
/// Lists the types of object that links can point to, and whether each is available in this version of the service.
#[operation(get "/item-links/kinds", scope = any_key)]
pub fn list_item_link_kinds(_caller: &Caller, directory: State<LinkDirectory>) -> Result<Rows<ItemLinkKind>> {
    let kind = |kind: LinkTargetType| ItemLinkKind {
        kind,
        object: "item_link_kind",
        label: match kind {
            LinkTargetType::Item => "Item",
            LinkTargetType::Contact => "Contact",
            LinkTargetType::Task => "Task",
            LinkTargetType::Conversation => "Conversation",
            LinkTargetType::File => "File",
            LinkTargetType::Run => "Run",
        },
        id_type: if kind.has_numbers() { "integer" } else { "string" },
        available: kind == LinkTargetType::Item || directory.0.of(kind.as_str()).is_some(),
        relation: kind == LinkTargetType::Item,
    };
    Ok(Rows(LinkTargetType::ALL.map(kind).into()))
}
