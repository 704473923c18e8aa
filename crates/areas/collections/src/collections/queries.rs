//! Queries on collections.

use super::model::{Collection, CollectionStatus};
use super::rank::Rank;
use diesel::prelude::*;
use fields::field_keys::{numbered, slug};
use fields::text;
use model::{Code, CollectionGroupId, CollectionId, Error, FieldId, Result, WorkspaceId};
use records::count::ItemCount;
use records::count::{self, EXACT, EXACT_IN_LISTS};
use records::definitions::{CollectionField, rewrite};
use records::schema::{collection_fields, collections};
use records::shape::{self, CollectionRow, Shape, Shapes};
use std::collections::HashMap;
use store::{OptInPage, Read, Tx};

/// The most collections of a workspace.
const MOST: i64 = 1_000;

/// The filters of a list of collections.
pub(super) struct Filter {
    pub(super) group: Option<CollectionGroupId>,
    pub(super) status: CollectionStatus,
    pub(super) words: Option<String>,
}

/// Excludes the sets of other kinds of records, which are stored in the same table with negative ids.
fn is_collection() -> diesel::dsl::Gt<collections::id, CollectionId> {
    collections::id.gt(CollectionId(0))
}

pub(super) fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    filter: Filter,
    page: &OptInPage,
) -> Result<Vec<CollectionRow>> {
    let mut query = collections::table
        .filter(collections::workspace_id.eq(workspace))
        .filter(is_collection())
        .filter(collections::trashed_at.is_null())
        .filter(collections::status.eq(filter.status))
        .order((collections::position, collections::id))
        .limit(page.fetch())
        .select(CollectionRow::as_select())
        .into_boxed();
    if let Some(group) = filter.group {
        query = query.filter(collections::group_id.eq(group));
    }
    if let Some(words) = filter.words {
        let literal =
            text::name_key(words.trim()).replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        query = query.filter(collections::name_key.like(format!("%{literal}%")).escape('\\'));
    }
    if let Some(Rank { position, id }) = page.after::<Rank<CollectionId>>()? {
        query = query.filter(
            collections::position
                .gt(position)
                .or(collections::position.eq(position).and(collections::id.gt(id))),
        );
    }
    Ok(query.load(read.connection())?)
}

/// Returns a live collection.
///
/// # Errors
/// `not_found`.
pub(super) fn find(read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<CollectionRow> {
    collections::table
        .filter(collections::id.eq(id))
        .filter(collections::workspace_id.eq(workspace))
        .filter(collections::trashed_at.is_null())
        .select(CollectionRow::as_select())
        .get_result(read.connection())
        .optional()?
        .ok_or_else(|| Error::not_found("collection"))
}

/// Builds the collections of a list, which have no fields.
pub(super) fn briefly(read: &mut Read, rows: Vec<CollectionRow>) -> Result<Vec<Collection>> {
    let primary: Vec<FieldId> = rows.iter().filter_map(|row| row.primary_field_id).collect();
    let keys: HashMap<FieldId, String> = collection_fields::table
        .filter(collection_fields::id.eq_any(primary))
        .select((collection_fields::id, collection_fields::field_key))
        .load::<(FieldId, String)>(read.connection())?
        .into_iter()
        .collect();
    rows.into_iter()
        .map(|row| {
            let counted = count::known(read, &row, EXACT_IN_LISTS)?;
            let primary = row.primary_field_id.and_then(|id| keys.get(&id).cloned());
            Collection::of(row, primary, counted, None)
        })
        .collect()
}

/// A collection with its fields.
pub(super) fn in_full(read: &mut Read, row: CollectionRow, shape: &Shape) -> Result<Collection> {
    let counted = count::known(read, &row, EXACT)?;
    with_count(read, row, shape, counted)
}

/// Builds a collection with its fields and a known number of items.
pub(super) fn with_count(
    read: &mut Read,
    row: CollectionRow,
    shape: &Shape,
    counted: ItemCount,
) -> Result<Collection> {
    let progress = rewrite::progress(read, shape.collection)?;
    let fields = shape
        .fields
        .iter()
        .map(|field| CollectionField::of(shape, field, progress.get(&field.id).copied()))
        .collect();
    let primary = shape.primary().map(|field| field.key.clone());
    Collection::of(row, primary, counted, Some(fields))
}

/// Returns a collection with its fields, as this transaction left it.
pub(super) fn after_change(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    id: CollectionId,
) -> Result<Collection> {
    let row = find(tx, workspace, id)?;
    let shape = shape::within_change(tx, shapes, workspace, id)?;
    in_full(tx, row, &shape)
}

/// Returns a live collection with its fields.
///
/// # Errors
/// `not_found`.
pub(super) fn whole(
    read: &mut Read,
    shapes: &Shapes,
    workspace: WorkspaceId,
    id: CollectionId,
) -> Result<Collection> {
    let row = find(read, workspace, id)?;
    let shape = shape::for_read(read, shapes, workspace, id)?;
    in_full(read, row, &shape)
}

/// Locks the set of collections of a workspace, with their names and slugs, until the transaction ends.
pub(super) fn lock_names(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    tx.lock(&format!("collections {workspace}"))
}

/// Checks that no other collection has this name.
///
/// # Errors
/// `duplicate_value` at `name`.
pub(super) fn refuse_taken_name(
    read: &mut Read,
    workspace: WorkspaceId,
    name: &str,
    except: Option<CollectionId>,
) -> Result<()> {
    let holder: Option<CollectionId> = collections::table
        .filter(collections::workspace_id.eq(workspace))
        .filter(collections::name_key.eq(text::name_key(name)))
        .filter(collections::trashed_at.is_null())
        .select(collections::id)
        .get_result(read.connection())
        .optional()?;
    taken(holder, except, "name", "Another collection of the workspace has this name.")
}

/// Checks that no other collection has this slug.
///
/// # Errors
/// `duplicate_value` at `slug`.
pub(super) fn refuse_taken_slug(
    read: &mut Read,
    workspace: WorkspaceId,
    slug: &str,
    except: Option<CollectionId>,
) -> Result<()> {
    let holder = slug_holder(read, workspace, slug)?;
    taken(holder, except, "slug", "Another collection of the workspace has this slug.")
}

fn slug_holder(read: &mut Read, workspace: WorkspaceId, slug: &str) -> Result<Option<CollectionId>> {
    Ok(collections::table
        .filter(collections::workspace_id.eq(workspace))
        .filter(collections::slug.eq(slug))
        .filter(collections::trashed_at.is_null())
        .select(collections::id)
        .get_result(read.connection())
        .optional()?)
}

fn taken(
    holder: Option<CollectionId>,
    except: Option<CollectionId>,
    param: &str,
    message: &str,
) -> Result<()> {
    match holder.filter(|holder| Some(*holder) != except) {
        None => Ok(()),
        Some(holder) => Err(Error::duplicate(param, message, holder)),
    }
}

/// Derives a free slug from a name.
pub(super) fn free_slug(read: &mut Read, workspace: WorkspaceId, name: &str) -> Result<String> {
    let base = slug(name, '-');
    let base = if base.is_empty() { "collection".to_owned() } else { base };
    let same: Vec<String> = collections::table
        .filter(collections::workspace_id.eq(workspace))
        .filter(collections::trashed_at.is_null())
        .select(collections::slug)
        .load(read.connection())?;
    Ok(numbered(&base, '-', |slug| same.iter().any(|other| other == slug)))
}

/// Derives a free name for a copy.
pub(super) fn free_copy_name(read: &mut Read, workspace: WorkspaceId, name: &str) -> Result<String> {
    let taken: Vec<String> = collections::table
        .filter(collections::workspace_id.eq(workspace))
        .filter(collections::trashed_at.is_null())
        .select(collections::name_key)
        .load(read.connection())?;
    Ok(text::copy_name(name, 100, |name| taken.contains(&text::name_key(name))))
}

/// Returns the position after the last collection.
///
/// # Errors
/// `limit_reached`.
pub(super) fn next_position(read: &mut Read, workspace: WorkspaceId) -> Result<i64> {
    let (live, last): (i64, Option<i64>) = collections::table
        .filter(collections::workspace_id.eq(workspace))
        .filter(is_collection())
        .filter(collections::trashed_at.is_null())
        .select((diesel::dsl::count_star(), diesel::dsl::max(collections::position)))
        .get_result(read.connection())?;
    if live >= MOST {
        return Err(Error::new(Code::LimitReached, format!("A workspace has at most {MOST} collections.")));
    }
    Ok(last.map_or(0, |last| last + 1))
}

/// Stores the next version of a collection. It leaves out the item counts, which writers of items change
/// concurrently.
pub(super) fn store(tx: &mut Tx, row: &CollectionRow) -> Result<()> {
    let now = tx.now();
    diesel::update(collections::table.find(row.id))
        .set((
            collections::group_id.eq(row.group_id),
            collections::name.eq(&row.name),
            collections::name_key.eq(&row.name_key),
            collections::slug.eq(&row.slug),
            collections::description.eq(&row.description),
            collections::icon.eq(&row.icon),
            collections::color.eq(&row.color),
            collections::primary_field_id.eq(row.primary_field_id),
            collections::position.eq(row.position),
            collections::status.eq(row.status),
            collections::settings.eq(&row.settings),
            collections::version.eq(row.version + 1),
            collections::updated_at.eq(now),
            collections::trashed_at.eq(row.trashed_at),
        ))
        .execute(tx.connection())?;
    Ok(())
}
