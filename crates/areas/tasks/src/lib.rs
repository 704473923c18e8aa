//! Tasks, which are records of a kind of their own, and reminders.

mod activity;
mod comments;
mod dates;
mod edit;
mod files;
mod group;
mod lists;
mod record;
mod references;
pub mod reminders;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;

pub use edit::sample::create as create_sample;
pub use group::GROUP;
pub use record::kind::TASKS;

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
            Box::new(lists::list::ListTasks),
            Box::new(edit::operations::CreateTask),
            Box::new(lists::summary::GetTaskSummary),
            Box::new(edit::operations::BulkUpdateTasks),
            Box::new(edit::operations::GetTask),
            Box::new(edit::operations::UpdateTask),
            Box::new(edit::operations::DeleteTask),
            Box::new(edit::operations::CompleteTask),
            Box::new(edit::operations::ReopenTask),
            Box::new(edit::operations::AssignTask),
            Box::new(edit::operations::UnassignTask),
            Box::new(lists::list::ListSubtasks),
            Box::new(edit::operations::CreateSubtask),
            Box::new(edit::operations::AddTaskLabel),
            Box::new(edit::operations::RemoveTaskLabel),
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
        let mut all = EventType::of::<record::events::TaskEvent<'_>>();
        all.extend(EventType::of::<record::events::TaskCommentEvent>());
        all.extend(EventType::of::<record::events::TaskFileEvent>());
        all
    }
}
