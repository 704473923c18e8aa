//! Labels of options and titles of objects, for exports that people read.

use fields::{Data, Field, FieldType};
use model::{FileId, ItemId, MemberId, Result};
use records::rows;
use records::sets;
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use store::Read;

/// The maximum number of objects per query.
const AT_ONCE: usize = 1_000;

/// The titles of the objects that some records refer to, by field type and id.
pub(super) struct Labels(HashMap<(FieldType, i64), String>);

impl Labels {
    /// Reads the titles of all objects that the fields of some records refer to. Runs one query per field type and
    /// target collection.
    pub(super) fn of<'a>(
        read: &mut Read,
        shapes: &Shapes,
        shape: &Shape,
        fields: impl Iterator<Item = &'a Field>,
        records: &[Data],
    ) -> Result<Self> {
        let mut named: HashMap<_, (&Field, BTreeSet<i64>)> = HashMap::new();
        for field in fields.filter(|field| field.kind.is_reference()) {
            let ids = records.iter().flat_map(|data| ids(data.get(&field.key)));
            let target = (field.kind, field.options.target_collection_id);
            named.entry(target).or_insert_with(|| (field, BTreeSet::new())).1.extend(ids);
        }
        let mut labels = HashMap::new();
        for (field, ids) in named.into_values() {
            let ids: Vec<i64> = ids.into_iter().collect();
            for some in ids.chunks(AT_ONCE) {
                let found = titles(read, shapes, shape, field, some)?;
                let found = found.into_iter().filter(|(_, title)| !title.trim().is_empty());
                labels.extend(found.map(|(id, title)| ((field.kind, id), title)));
            }
        }
        Ok(Self(labels))
    }

    /// Replaces values by their labels. A deleted object, or one without a title, keeps its id.
    pub(super) fn put<'a>(&self, fields: impl Iterator<Item = &'a Field>, data: &mut Data) {
        for field in fields {
            let Some(value) = data.get_mut(&field.key) else { continue };
            match value {
                Value::Array(all) => all.iter_mut().for_each(|one| self.put_one(field, one)),
                one => self.put_one(field, one),
            }
        }
    }

    fn put_one(&self, field: &Field, value: &mut Value) {
        let label = match value {
            Value::String(key) if matches!(field.kind, FieldType::Select | FieldType::MultiSelect) => {
                let choice = field.options.choices().iter().find(|choice| choice.key == *key);
                choice.map(|choice| choice.label.clone())
            }
            Value::Number(id) => id.as_i64().and_then(|id| self.0.get(&(field.kind, id)).cloned()),
            _ => None,
        };
        if let Some(label) = label {
            *value = label.into();
        }
    }
}

fn ids(value: Option<&Value>) -> impl Iterator<Item = i64> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_i64)
}

/// Returns the titles of live records, the names of files, and the names or e-mail addresses of members.
fn titles(
    read: &mut Read,
    shapes: &Shapes,
    shape: &Shape,
    field: &Field,
    ids: &[i64],
) -> Result<Vec<(i64, String)>> {
    let workspace = shape.workspace;
    Ok(match field.kind {
        FieldType::File => {
            let ids: Vec<FileId> = ids.iter().copied().map(FileId).collect();
            let found = files::among(read, workspace, &ids)?;
            found.into_iter().map(|file| (file.id.0, file.name)).collect()
        }
        FieldType::User => {
            let ids: Vec<MemberId> = ids.iter().copied().map(MemberId).collect();
            let name = |name: String, email| if name.trim().is_empty() { email } else { name };
            let found = shapes.members(read, workspace, &ids)?;
            found.into_iter().map(|member| (member.id.0, name(member.name, member.email))).collect()
        }
        kind => match sets::target_of(read, shapes, workspace, field)? {
            Some(target) => of_records(read, shapes, kind, &target, ids)?,
            None => Vec::new(),
        },
    })
}

/// Returns the titles of records. A merged record has the title of the record that replaced it.
fn of_records(
    read: &mut Read,
    shapes: &Shapes,
    kind: FieldType,
    shape: &Shape,
    ids: &[i64],
) -> Result<Vec<(i64, String)>> {
    let ids: Vec<ItemId> = ids.iter().copied().map(ItemId).collect();
    let survivors = shapes.merged().survivors(read, kind, shape.workspace, &ids)?;
    let current: BTreeSet<ItemId> = ids.iter().map(|id| *survivors.get(id).unwrap_or(id)).collect();
    let current: Vec<ItemId> = current.into_iter().collect();
    let titles: HashMap<ItemId, String> = rows::titles(read, shape, &current)?.into_iter().collect();
    let title = |id: &ItemId| Some((id.0, titles.get(survivors.get(id).unwrap_or(id))?.clone()));
    Ok(ids.iter().filter_map(title).collect())
}
