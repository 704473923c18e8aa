//! Tasks: what is to be done, by whom and until when, as records of a kind of their own.

mod activity;
mod change;
mod comments;
mod due;
mod events;
mod fields;
mod files;
mod graph;
mod kind;
mod list;
mod model;
mod operations;
mod ports;
mod recurrence;
mod sample;
mod series;
mod summary;
mod task;
mod write;

pub use kind::TASKS;
pub(crate) use ports::{TaskFileReferences, TaskTargets, TaskWork};
pub use sample::create as create_sample;

use operation::{Domain, EventType, Operations};

/// What is to be done.
pub struct Tasks;

impl Domain for Tasks {
    const AREA: &'static str = "Tasks";
    const ORDER: u16 = 120;
    const DESCRIPTION: &'static str = "Tasks are what is to be done, by a member of the team or an agent. They can have subtasks, wait for other \
         tasks, recur, and have checklists, comments and files.";

    fn operations() -> Operations {
        vec![
            Box::new(list::ListTasks),
            Box::new(operations::CreateTask),
            Box::new(summary::GetTaskSummary),
            Box::new(operations::BulkUpdateTasks),
            Box::new(operations::GetTask),
            Box::new(operations::UpdateTask),
            Box::new(operations::DeleteTask),
            Box::new(operations::CompleteTask),
            Box::new(operations::ReopenTask),
            Box::new(operations::AssignTask),
            Box::new(operations::UnassignTask),
            Box::new(list::ListSubtasks),
            Box::new(operations::CreateSubtask),
            Box::new(operations::AddTaskLabel),
            Box::new(operations::RemoveTaskLabel),
            Box::new(comments::ListTaskComments),
            Box::new(comments::CreateTaskComment),
            Box::new(comments::UpdateTaskComment),
            Box::new(comments::DeleteTaskComment),
            Box::new(activity::ListTaskActivity),
            Box::new(files::ListTaskFiles),
            Box::new(files::AttachTaskFile),
            Box::new(files::DetachTaskFile),
        ]
    }

    fn event_types() -> Vec<EventType> {
        let mut all = EventType::of::<events::TaskEvent<'_>>();
        all.extend(EventType::of::<events::TaskCommentEvent>());
        all.extend(EventType::of::<events::TaskFileEvent>());
        all
    }
}
