//! Contacts by their dates.

use crate::record::kind::CONTACTS;
use fields::FieldType;
use model::{ContactId, Result, WorkspaceId};
use ports::{DateWindow, DatedRecord, DatedRecords, DatedSet};
use query::{DateSpan, DatedRow, Planner, dated_rows};
use records::print::Printer;
use records::sets;
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::sync::Arc;
use store::Read;

/// The contacts of all workspaces.
pub(crate) struct DatedContacts {
    pub(crate) shapes: Arc<Shapes>,
    pub(crate) planner: Arc<Planner>,
}

impl DatedRecords for DatedContacts {
    fn keeps(&self, set: DatedSet) -> bool {
        set == DatedSet::Contacts
    }

    fn field_type(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        _: DatedSet,
        field: &str,
    ) -> Result<Option<FieldType>> {
        let shape = sets::for_read(read, &self.shapes, workspace, &CONTACTS)?;
        Ok(shape.field(field).filter(|field| !field.hidden).map(|field| field.kind))
    }

    fn within(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        _: DatedSet,
        window: DateWindow<'_>,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<DatedRecord>> {
        let shape = sets::for_read(read, &self.shapes, workspace, &CONTACTS)?;
        let DateWindow { field, first, last } = window;
        let span = DateSpan { field, first, last, condition: None };
        let rows = dated_rows(read, &self.planner, &shape, span, after, most)?;
        rows.into_iter().map(|found| dated(&shape, found)).collect()
    }
}

fn dated(shape: &Shape, found: DatedRow) -> Result<DatedRecord> {
    let DatedRow { place, value, row } = found;
    let values = row.values()?;
    let time_zone = values.get("$timezone").and_then(Value::as_str).map(str::to_owned);
    let contact = Some(ContactId::from(row.id));
    let record = Printer::whole(shape).json(&row)?;
    Ok(DatedRecord { id: row.id.0, place, value, contact, time_zone, record })
}
