//! Collections for tests, created without the operations of the area.

use diesel::prelude::*;
use fields::{Part, Subject};
use model::{CollectionId, FieldId, IndexId, JsonText};
use records::schema::{collection_fields as f, collection_indexes as i, collections as c};
use records::shape::{IndexKind, KeyFormat};
use serde_json::{Value, json};
use std::sync::Arc;
use store::Tx;
use testkit::{Key, TestApp};

/// Creates a collection with `fields`, each `{"key", "type"}` with optional `required`, `unique`, `indexed`,
/// `default` and `options`. The first field is the primary one.
pub async fn collection(app: &TestApp, key: &Key, fields: Value) -> CollectionId {
    let workspace = key.workspace;
    let made = app.db().write(move |tx| {
        let now = tx.now();
        let mut bytes = [0; 8];
        tx.random().fill(&mut bytes);
        let name = format!("c{:x}", u64::from_be_bytes(bytes));
        let id: CollectionId = diesel::insert_into(c::table)
            .values((
                c::workspace_id.eq(workspace),
                c::name.eq(&name),
                c::name_key.eq(&name),
                c::slug.eq(&name),
                c::position.eq(1),
                c::status.eq("active"),
                c::settings.eq("{}"),
                c::shape_version.eq(1),
                c::item_count.eq(0),
                c::version.eq(1),
                c::created_by.eq(r#"{"type":"system","id":"test"}"#),
                c::created_at.eq(now),
                c::updated_at.eq(now),
            ))
            .returning(c::id)
            .get_result(tx.connection())?;
        for (place, given) in fields.as_array().unwrap().iter().enumerate() {
            let field = field(tx, key_of(given), place, given, workspace, id)?;
            if place == 0 {
                diesel::update(c::table.find(id))
                    .set(c::primary_field_id.eq(field))
                    .execute(tx.connection())?;
            }
            for (flag, kind, origin) in
                [("unique", IndexKind::Unique, "unique"), ("indexed", IndexKind::Single, "user")]
            {
                if given[flag] == true {
                    index(
                        tx,
                        workspace,
                        id,
                        kind,
                        origin,
                        &[Part { subject: Subject::Field(field), desc: false }],
                    )?;
                }
            }
        }
        Ok(id)
    });
    made.await.unwrap()
}

fn key_of(given: &Value) -> &str {
    given["key"].as_str().unwrap()
}

pub fn field(
    tx: &mut Tx,
    key: &str,
    place: usize,
    given: &Value,
    workspace: model::WorkspaceId,
    collection: CollectionId,
) -> model::Result<FieldId> {
    let now = tx.now();
    let flag = |name: &str| given[name] == true;
    let options = if given["options"].is_null() { json!({}) } else { given["options"].clone() };
    let choices = options["choices"].as_array();
    let default = (!given["default"].is_null()).then(|| JsonText::of(&given["default"]));
    Ok(diesel::insert_into(f::table)
        .values((
            f::workspace_id.eq(workspace),
            f::collection_id.eq(collection),
            f::field_key.eq(key),
            f::label.eq(key),
            f::kind.eq(given["type"].as_str().unwrap()),
            f::required.eq(flag("required")),
            f::is_unique.eq(flag("unique")),
            f::default_value.eq(default),
            f::options.eq(options.to_string()),
            f::position.eq(i64::try_from(place).unwrap()),
            f::archived.eq(flag("archived")),
            f::next_number.eq(1 + i64::try_from(choices.map_or(0, Vec::len)).unwrap()),
            f::version.eq(1),
            f::created_at.eq(now),
            f::updated_at.eq(now),
        ))
        .returning(f::id)
        .get_result(tx.connection())?)
}

fn index(
    tx: &mut Tx,
    workspace: model::WorkspaceId,
    collection: CollectionId,
    kind: IndexKind,
    origin: &str,
    parts: &[Part],
) -> model::Result<IndexId> {
    let now = tx.now();
    Ok(diesel::insert_into(i::table)
        .values((
            i::workspace_id.eq(workspace),
            i::collection_id.eq(collection),
            i::kind.eq(kind.as_str()),
            i::parts.eq(JsonText::of(&parts)),
            i::origin.eq(origin),
            i::status.eq("ready"),
            i::built_to.eq(0),
            i::rows_done.eq(0),
            i::rows_total.eq(0),
            i::created_at.eq(now),
            i::updated_at.eq(now),
            i::key_format.eq(KeyFormat::Prefixed),
        ))
        .returning(i::id)
        .get_result(tx.connection())?)
}

/// Returns the choices of a select field with these keys. Labels are the keys with a capital.
pub fn choices(keys: &[&str]) -> Value {
    let choice = |(place, key): (usize, &&str)| {
        let label = format!("{}{}", key[..1].to_uppercase(), &key[1..]);
        json!({ "id": place + 1, "key": key, "label": label, "archived": false })
    };
    json!({ "choices": keys.iter().enumerate().map(choice).collect::<Vec<_>>() })
}

/// Creates a columnar index. The collection must have no items yet.
pub async fn columns(app: &TestApp, key: &Key, collection: CollectionId) -> IndexId {
    let workspace = key.workspace;
    let made = app.db().write(move |tx| {
        let shapes = records::shape::Shapes::new([&::collections::items::ITEMS]);
        let shape = records::shape::for_read(tx, &shapes, workspace, collection)?;
        let id =
            index(tx, workspace, collection, IndexKind::Columnar, "auto", &records::columnar::parts(&shape))?;
        records::shape::bump(tx, collection)?;
        Ok(id)
    });
    made.await.unwrap()
}

/// Merges the changes so far into small segments of a columnar index.
pub async fn merge(app: &TestApp, index: IndexId) {
    merge_by(app, index, 7).await;
}

/// Merges the changes so far into segments of `size` items.
pub async fn merge_by(app: &TestApp, index: IndexId, size: usize) {
    let shapes = Arc::new(records::shape::Shapes::new([&::collections::items::ITEMS]));
    while records::columnar::merge(app.db(), &shapes, index, size).await.unwrap() {}
}

/// Creates an index on these fields and system columns; `true` means descending. The collection must have no items
/// yet.
pub async fn index_on(
    app: &TestApp,
    key: &Key,
    collection: CollectionId,
    parts: &[(String, bool)],
) -> IndexId {
    let (workspace, parts) = (key.workspace, parts.to_vec());
    let made = app.db().write(move |tx| {
        let shape = records::shape::for_read(
            tx,
            &records::shape::Shapes::new([&::collections::items::ITEMS]),
            workspace,
            collection,
        )?;
        let part = |(name, desc): &(String, bool)| Part {
            subject: Subject::named(&shape, name).unwrap(),
            desc: *desc,
        };
        let parts: Vec<Part> = parts.iter().map(part).collect();
        let is_set = parts[0].subject.family(&shape).unwrap().is_set();
        let kind = match parts.len() {
            1 if is_set => IndexKind::Set,
            1 => IndexKind::Single,
            _ => IndexKind::Composite,
        };
        let id = index(tx, workspace, collection, kind, "user", &parts)?;
        records::shape::bump(tx, collection)?;
        Ok(id)
    });
    made.await.unwrap()
}
