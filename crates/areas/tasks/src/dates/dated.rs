//! Tasks by their dates.

use crate::record::kind::TASKS;
use crate::record::task::{Task, TaskStatus};
use fields::FieldType;
use model::{Error, Result, WorkspaceId};
use ports::{DateWindow, DatedRecord, DatedRecords, DatedSet};
use query::{DateSpan, Planner, dated_rows};
use records::sets;
use records::shape::Shapes;
use serde_json::json;
use std::sync::Arc;
use store::Read;

/// The open tasks of all workspaces.
pub(crate) struct DatedTasks {
    pub(crate) shapes: Arc<Shapes>,
    pub(crate) planner: Arc<Planner>,
}

impl DatedRecords for DatedTasks {
    fn keeps(&self, set: DatedSet) -> bool {
        set == DatedSet::Tasks
    }

    fn field_type(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        _: DatedSet,
        field: &str,
    ) -> Result<Option<FieldType>> {
        let shape = sets::for_read(read, &self.shapes, workspace, &TASKS)?;
        Ok(shape.field(field).map(|field| field.kind))
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
        let shape = sets::for_read(read, &self.shapes, workspace, &TASKS)?;
        let open: Vec<&str> =
            TaskStatus::ALL.into_iter().filter(|status| status.is_open()).map(TaskStatus::as_str).collect();
        let open = json!({ "field": "status", "op": "in", "value": open });
        let DateWindow { field, first, last } = window;
        let span = DateSpan { field, first, last, condition: Some(&open) };
        let rows = dated_rows(read, &self.planner, &shape, span, after, most)?;
        let dated = rows.into_iter().map(|found| {
            let task = Task::of(&found.row)?;
            let record = serde_json::to_value(&task).map_err(Error::internal)?;
            let (id, contact) = (found.row.id.0, task.contact_id);
            Ok(DatedRecord { id, place: found.place, value: found.value, contact, time_zone: None, record })
        });
        dated.collect()
    }
}
