//! The fields of tasks in the record engine. Workspaces cannot add fields, so the keys are the names in the JSON.

use super::task::{ASSIGNEE_AGENT, ASSIGNEE_USER, ITEM, ITEM_COLLECTION, TaskPriority, TaskStatus};
use fields::{Choice, Field, FieldOptions, FieldType};
use model::OptionId;
use serde_json::{Number, Value};

/// Returns the fields. Their numbers are stored with the values, so they never change.
pub(crate) fn task_fields() -> Vec<Field> {
    let text = |longest| FieldOptions { max_length: Some(longest), ..FieldOptions::default() };
    let plain = FieldOptions::default;
    let one = || FieldOptions { max_items: Some(1), ..FieldOptions::default() };
    let minutes = FieldOptions { min: Some(Number::from(0)), max: Some(Number::from(1_000_000)), ..plain() };
    let own = Field::built_in;
    // Operations set these fields after their own checks; requests cannot set them directly.
    let managed =
        |number, key, label, kind, options| Field { managed: true, ..own(number, key, label, kind, options) };
    let starting = |field, default: Value| Field { default: Some(default), ..field };
    let statuses = choices(TaskStatus::ALL.map(TaskStatus::as_str));
    let priorities = choices(TaskPriority::ALL.map(TaskPriority::as_str));
    vec![
        Field { required: true, ..own(1, "title", "Title", FieldType::Text, text(500)) },
        own(2, "description", "Description", FieldType::LongText, text(50_000)),
        starting(
            managed(3, "status", "Status", FieldType::Select, statuses),
            TaskStatus::Todo.as_str().into(),
        ),
        own(4, "status_label", "Status label", FieldType::Text, text(60)),
        starting(
            own(5, "priority", "Priority", FieldType::Select, priorities),
            TaskPriority::None.as_str().into(),
        ),
        managed(6, ASSIGNEE_USER, "Assigned member", FieldType::User, one()),
        managed(7, ASSIGNEE_AGENT, "Assigned agent", FieldType::Integer, plain()),
        managed(8, "due", "Due", FieldType::Json, plain()),
        managed(9, "due_at", "Due at", FieldType::Datetime, plain()),
        own(10, "start_at", "Start", FieldType::Datetime, plain()),
        own(11, "estimate_minutes", "Estimate in minutes", FieldType::Integer, minutes),
        own(12, "labels", "Labels", FieldType::Tags, plain()),
        managed(13, "checklist", "Checklist", FieldType::Json, plain()),
        managed(14, "parent_id", "Parent", FieldType::Integer, plain()),
        managed(15, "depends_on", "Depends on", FieldType::Json, plain()),
        starting(managed(16, "is_blocked", "Blocked", FieldType::Boolean, plain()), false.into()),
        managed(17, "subtasks_done", "Subtasks done", FieldType::Integer, plain()),
        managed(18, "subtasks_total", "Subtasks", FieldType::Integer, plain()),
        managed(19, "recurrence", "Recurrence", FieldType::Json, plain()),
        own(20, "contact_id", "Contact", FieldType::Contact, one()),
        managed(21, "completed_at", "Completed", FieldType::Datetime, plain()),
        managed(22, "cancelled_at", "Cancelled", FieldType::Datetime, plain()),
        own(23, "project", "Project", FieldType::Text, text(120)),
        managed(24, ITEM_COLLECTION, "Collection of the item", FieldType::Integer, plain()),
        managed(25, ITEM, "Item", FieldType::Integer, plain()),
        managed(26, "reminders", "Reminders", FieldType::Json, plain()),
    ]
}

/// Builds choices from words. Their order is the sort order of tasks.
fn choices<const N: usize>(words: [&str; N]) -> FieldOptions {
    let choice = |(number, word): (i64, &str)| Choice {
        id: OptionId(-number),
        key: word.to_owned(),
        label: word.replace('_', " "),
        color: None,
        archived: false,
    };
    FieldOptions { choices: Some((1..).zip(words).map(choice).collect()), ..FieldOptions::default() }
}
