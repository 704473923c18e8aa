//! Items by their values in fields: a table of them where no index knows the fields, and the comparison that decides.

use crate::rows::fetch::live_by_ids;
use crate::schema::items;
use crate::shape::Shape;
use diesel::prelude::*;
use fields::{Data, Subject};
use model::{Code, Error, FieldId, ItemId, JsonText, Result};
use serde_json::json;
use std::collections::HashMap;
use store::Read;

/// The most items that are looked at one by one where no index knows the fields.
const MOST_SCANNED: usize = 200_000;

/// So many of them at a time.
const SLICE: i64 = 5_000;

/// The most items that are looked at for one row: those whose values begin alike.
pub(crate) const MOST_ALIKE: usize = 5_000;

/// Live items by their values in fields that no index knows, as far as they were looked at. Kept from one transaction to
/// the next, it learns of items that were created since, by their ids. It does not see an older item that somebody else
/// gave such values or restored meanwhile; one that has lost them it sees.
#[derive(Debug, Default)]
pub struct Table {
    /// The shape's version and the fields that the items were looked at by.
    by: Option<(i64, Vec<FieldId>)>,
    items: HashMap<String, Vec<ItemId>>,
    last: Option<ItemId>,
    seen: usize,
}

/// A table in use.
#[derive(Debug, Default)]
pub(crate) struct TableInUse {
    pub(crate) table: Table,
    is_current: bool,
    /// Items that were created since: the transaction is not over, so the table has to find them by itself.
    pub(crate) created: HashMap<String, Vec<ItemId>>,
}

/// Returns those of some items that are live and have the values.
pub(crate) fn having(
    read: &mut Read,
    shape: &Shape,
    fields: &[FieldId],
    candidates: Vec<i64>,
    wanted: &Data,
) -> Result<Vec<ItemId>> {
    let spelling = spelled(shape, fields, wanted);
    let mut ids = Vec::new();
    for row in live_by_ids(read, shape, &candidates)? {
        if spelled(shape, fields, &row.values()?) == spelling {
            ids.push(row.id);
        }
    }
    Ok(ids)
}

impl TableInUse {
    pub(crate) fn of(table: Table) -> Self {
        Self { table, ..Self::default() }
    }

    /// Finds the items that have the values.
    pub(crate) fn find(
        &mut self,
        read: &mut Read,
        shape: &Shape,
        fields: &[FieldId],
        wanted: &Data,
    ) -> Result<Vec<ItemId>> {
        if !self.is_current {
            self.table.look(read, shape, fields)?;
            self.is_current = true;
        }
        let Some(spelling) = spelled(shape, fields, wanted) else { return Ok(Vec::new()) };
        let known = [self.table.items.get(&spelling), self.created.get(&spelling)];
        let candidates: Vec<i64> =
            known.into_iter().flatten().flatten().map(|id| id.0).take(MOST_ALIKE).collect();
        // Since the table was made they may have been changed or deleted.
        having(read, shape, fields, candidates, wanted)
    }
}

/// The values of the fields as one text, equal for values that are equal; `None` where one is missing.
pub(crate) fn spelled(shape: &Shape, fields: &[FieldId], data: &Data) -> Option<String> {
    let mut values = Vec::with_capacity(fields.len());
    for id in fields {
        let field = shape.field_by_id(*id)?;
        values.push(fields::identity(field, data.get(&field.key)?)?);
    }
    serde_json::to_string(&values).ok()
}

impl Table {
    /// Looks at the live items that it does not know yet.
    fn look(&mut self, read: &mut Read, shape: &Shape, fields: &[FieldId]) -> Result<()> {
        let by = Some((shape.version, fields.to_vec()));
        if self.by != by {
            *self = Self { by, ..Self::default() };
        }
        loop {
            let rows: Vec<(ItemId, JsonText)> = items::table
                .filter(items::collection_id.eq(shape.collection))
                .filter(items::trashed_at.is_null())
                .filter(items::id.gt(self.last.unwrap_or(ItemId(0))))
                .order(items::id)
                .limit(SLICE)
                .select((items::id, items::data))
                .load(read.connection())?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            self.last = Some(*last);
            self.seen += rows.len();
            if self.seen > MOST_SCANNED {
                return Err(too_expensive(shape, fields));
            }
            for (id, data) in &rows {
                if let Some(text) = spelled(shape, fields, &data.parse()?) {
                    self.items.entry(text).or_default().push(*id);
                }
            }
        }
    }
}

fn too_expensive(shape: &Shape, fields: &[FieldId]) -> Error {
    let names: Vec<&str> = fields.iter().filter_map(|id| Subject::Field(*id).name(shape)).collect();
    let message = format!(
        "The {} has too many {}s to search without an index. Make `{}` unique, or create an index on it.",
        shape.noun(),
        shape.kind.noun,
        names.join("`, `")
    );
    Error::new(Code::QueryTooExpensive, message).param("match_on").with("details", json!({ "fields": names }))
}
