//! Nodes that write tasks and reminders.

use super::calls::{Request, done, text_of};
use super::{NodeCall, NodeFailure, Work};
use flow_graphs::config;
use serde_json::{Map, Value};

/// Creates a task, or changes one.
pub(super) async fn task(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::Task = call.config()?;
    let task = match config.task_id {
        Some(id) if !id.is_null() => {
            let request = Request::with_body(Value::Object(config.fields)).at("taskId", text_of(&id));
            call.call("updateTask", request).await?
        }
        _ => call.call("createTask", Request::with_body(about_contact(call, config.fields))).await?,
    };
    Ok(done(task))
}

/// Creates a reminder.
pub(super) async fn reminder(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::Reminder = call.config()?;
    let request = Request::with_body(about_contact(call, config.fields));
    Ok(done(call.call("createReminder", request).await?))
}

/// Fields of something that is about the contact of the run, unless they say otherwise.
fn about_contact(call: &NodeCall, mut fields: Map<String, Value>) -> Value {
    if let Some(contact) = call.run.contact_id {
        fields.entry("contact_id").or_insert_with(|| contact.0.into());
    }
    Value::Object(fields)
}
