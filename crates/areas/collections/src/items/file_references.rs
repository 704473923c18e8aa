//! The items that refer to a file.

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use fields::FieldType;
use model::{CollectionId, FileId, ItemId, Result, WorkspaceId};
use ports::{FileReferences, FileUse};
use records::schema::{collection_fields, collections, item_files, item_links, items};
use serde_json::Value;
use std::collections::BTreeSet;
use store::Read;

/// Items as users of files: by attachment, by link, or by a value of a field.
pub struct ItemReferences;

impl FileReferences for ItemReferences {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, file: FileId, most: i64) -> Result<Vec<FileUse>> {
        let attached: Vec<ItemId> = item_files::table
            .filter(item_files::file_id.eq(file))
            .filter(item_files::workspace_id.eq(workspace))
            .order(item_files::item_id)
            .limit(most)
            .select(item_files::item_id)
            .load(read.connection())?;
        let linked: Vec<ItemId> = item_links::table
            .filter(item_links::to_kind.eq("file"))
            .filter(item_links::to_id.eq(file.to_string()))
            .filter(item_links::workspace_id.eq(workspace))
            .order((item_links::field_id, item_links::item_id))
            .limit(most)
            .select(item_links::item_id)
            .load(read.connection())?;
        let valued = in_values(read, workspace, file, most)?;
        let all: BTreeSet<ItemId> = attached.into_iter().chain(linked).chain(valued).collect();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(all.into_iter().take(most).map(|id| FileUse { r#type: "item", id: id.to_string() }).collect())
    }
}

/// Returns the live items with the file as a value. Only collections with file fields are read.
fn in_values(read: &mut Read, workspace: WorkspaceId, file: FileId, most: i64) -> Result<Vec<ItemId>> {
    let own = collections::table.filter(collections::workspace_id.eq(workspace)).select(collections::id);
    let fields: Vec<(CollectionId, String)> = collection_fields::table
        .filter(collection_fields::collection_id.eq_any(own))
        .filter(collection_fields::kind.eq(FieldType::File.as_str()))
        .filter(collection_fields::trashed_at.is_null())
        .select((collection_fields::collection_id, collection_fields::field_key))
        .load(read.connection())?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for (collection, key) in fields {
        let mut after = ItemId(0);
        while found.len() < most {
            let candidates = candidates(read, collection, &key, file, after)?;
            let Some((last, _)) = candidates.last() else { break };
            after = *last;
            let used = candidates.iter().filter(|(_, data)| has_file(data, &key, file)).map(|(id, _)| *id);
            found.extend(used);
        }
    }
    Ok(found)
}

/// Returns the next items whose JSON contains both the key of the field and the digits of the file's id. That is a
/// superset of the items with the file, so the caller checks them. `replace(data, x, '') <> data` is equivalent to
/// "`data` contains `x`" on both databases.
fn candidates(
    read: &mut Read,
    collection: CollectionId,
    key: &str,
    file: FileId,
    after: ItemId,
) -> Result<Vec<(ItemId, String)>> {
    const AT_A_TIME: i64 = 500;
    let contains = |text: String| sql::<Bool>("replace(data, ").bind::<Text, _>(text).sql(", '') <> data");
    Ok(items::table
        .filter(items::collection_id.eq(collection))
        .filter(items::trashed_at.is_null())
        .filter(items::id.gt(after))
        .filter(contains(format!("\"{key}\":[")))
        .filter(contains(file.to_string()))
        .order(items::id)
        .limit(AT_A_TIME)
        .select((items::id, items::data))
        .load(read.connection())?)
}

fn has_file(data: &str, key: &str, file: FileId) -> bool {
    let data: Value = serde_json::from_str(data).unwrap_or_default();
    let ids = data.get(key).and_then(Value::as_array);
    ids.is_some_and(|ids| ids.iter().any(|id| id.as_i64() == Some(file.0)))
}
