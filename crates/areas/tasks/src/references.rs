//! Tasks in other areas: as open work of the team, as targets of links, and as users of files.

use crate::record::kind::TASKS;
use crate::record::task::{Stored, TaskStatus};
use crate::schema::{task_files, task_states};
use diesel::dsl::count_star;
use diesel::prelude::*;
use model::{FileId, ItemId, MemberId, Result, TaskId, WorkspaceId};
use ports::{FileReferences, FileUse, LinkTargets, LinkedTarget, OpenWork, WorkType};
use records::links::locks;
use records::rows::live_by_ids;
use records::sets;
use records::shape::Shapes;
use std::collections::HashMap;
use std::sync::Arc;
use store::{LockMode, Read, Tx};

/// Open tasks as the open work of team members.
pub(crate) struct TaskWork;

impl OpenWork for TaskWork {
    fn work_type(&self) -> WorkType {
        WorkType::Tasks
    }

    fn by_member(&self, read: &mut Read, workspace: WorkspaceId) -> Result<HashMap<MemberId, i64>> {
        let counts: Vec<(Option<MemberId>, i64)> = task_states::table
            .filter(task_states::workspace_id.eq(workspace))
            .filter(task_states::user_id.is_not_null())
            .filter(task_states::status.ne_all([TaskStatus::Done, TaskStatus::Cancelled]))
            .group_by(task_states::user_id)
            .select((task_states::user_id, count_star()))
            .load(read.connection())?;
        Ok(counts.into_iter().filter_map(|(member, count)| Some((member?, count))).collect())
    }
}

/// Tasks as targets of links.
pub(crate) struct TaskTargets(pub(crate) Arc<Shapes>);

impl LinkTargets for TaskTargets {
    fn target_type(&self) -> &'static str {
        "task"
    }

    fn hold(&self, tx: &mut Tx, workspace: WorkspaceId, id: &str) -> Result<bool> {
        let Ok(id) = id.parse::<ItemId>() else { return Ok(false) };
        let live = locks::live(tx, workspace, TASKS.set_of(workspace), &[id], LockMode::Shared)?;
        Ok(live.contains(&id))
    }

    fn show(&self, read: &mut Read, workspace: WorkspaceId, ids: &[&str]) -> Result<Vec<LinkedTarget>> {
        let shape = sets::for_read(read, &self.0, workspace, &TASKS)?;
        let ids: Vec<i64> = ids.iter().filter_map(|id| id.parse::<TaskId>().ok()).map(|id| id.0).collect();
        let rows = live_by_ids(read, &shape, &ids)?;
        rows.iter()
            .map(|row| {
                Ok(LinkedTarget {
                    id: row.id.to_string(),
                    title: Some(row.title.clone()),
                    mime_type: None,
                    status: Some(Stored::of(row)?.status.as_str().to_owned()),
                })
            })
            .collect()
    }
}

/// Tasks as users of files.
pub(crate) struct TaskFileReferences;

impl FileReferences for TaskFileReferences {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, file: FileId, most: i64) -> Result<Vec<FileUse>> {
        let tasks: Vec<TaskId> = task_files::table
            .filter(task_files::file_id.eq(file))
            .filter(task_files::workspace_id.eq(workspace))
            .order(task_files::task_id)
            .limit(most)
            .select(task_files::task_id)
            .load(read.connection())?;
        Ok(tasks.into_iter().map(|id| FileUse { r#type: "task", id: id.to_string() }).collect())
    }
}
