//! Items by their dates.

use fields::FieldType;
use model::{Code, CollectionId, Error, Result, WorkspaceId};
use ports::{DateWindow, DatedRecord, DatedRecords, DatedSet};
use query::{DateSpan, Planner, dated_rows};
use records::print::Printer;
use records::shape::{self, Shape, Shapes};
use std::sync::Arc;
use store::Read;

/// The items of all workspaces.
pub(crate) struct DatedItems {
    pub(crate) shapes: Arc<Shapes>,
    pub(crate) planner: Arc<Planner>,
}

impl DatedItems {
    fn shape(&self, read: &mut Read, workspace: WorkspaceId, set: DatedSet) -> Result<Arc<Shape>> {
        match set {
            // Sets of other kinds of records have negative ids.
            DatedSet::Items(id @ CollectionId(1..)) => shape::for_read(read, &self.shapes, workspace, id),
            _ => Err(Error::not_found("collection")),
        }
    }
}

impl DatedRecords for DatedItems {
    fn keeps(&self, set: DatedSet) -> bool {
        matches!(set, DatedSet::Items(_))
    }

    fn field_type(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        set: DatedSet,
        field: &str,
    ) -> Result<Option<FieldType>> {
        match self.shape(read, workspace, set) {
            Ok(shape) => Ok(shape.field(field).map(|field| field.kind)),
            Err(error) if error.code() == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn within(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        set: DatedSet,
        window: DateWindow<'_>,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<DatedRecord>> {
        let shape = self.shape(read, workspace, set)?;
        let DateWindow { field, first, last } = window;
        let span = DateSpan { field, first, last, condition: None };
        let printer = Printer::whole(&shape);
        let rows = dated_rows(read, &self.planner, &shape, span, after, most)?;
        let dated = rows.into_iter().map(|found| {
            let record = printer.json(&found.row)?;
            let (id, place, value) = (found.row.id.0, found.place, found.value);
            Ok(DatedRecord { id, place, value, contact: None, time_zone: None, record })
        });
        dated.collect()
    }
}
