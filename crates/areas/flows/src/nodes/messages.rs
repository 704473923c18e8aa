//! Nodes that send messages to the contact of the run.

use super::calls::{Request, done, simulated, text_of};
use super::{NodeCall, NodeFailure, Work};
use flow_graphs::config::{self, FlowChoice, FlowClosedWindow};
use model::ContactId;
use serde_json::{Map, Value, json};

/// Sends a message to the contact.
pub(super) async fn send_message(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::SendMessage = call.config()?;
    let contact = call.contact()?;
    let mut body = json!({ "channel_id": config.channel_id, "file_ids": config.file_ids });
    say(&mut body, config.text.as_deref(), &config.buttons);
    let closed = Closed {
        policy: config.if_window_closed,
        template: config.template.as_ref(),
        text: config.text.as_deref().unwrap_or_default(),
    };
    send(call, contact, body, &closed).await
}

/// Sends a message template of the network.
pub(super) async fn send_template(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::SendTemplate = call.config()?;
    let contact = call.contact()?;
    template(call, contact, &config, None).await
}

/// What happens when the window for free messages is closed.
pub(super) struct Closed<'a> {
    pub(super) policy: FlowClosedWindow,
    pub(super) template: Option<&'a config::SendTemplate>,
    /// What should have been said.
    pub(super) text: &'a str,
}

/// Puts a text into the body of a message, with its buttons.
pub(super) fn say(body: &mut Value, text: Option<&str>, buttons: &[FlowChoice]) {
    let Some(body) = body.as_object_mut() else { return };
    if buttons.is_empty() {
        body.insert("text".to_owned(), text.into());
    } else {
        let buttons: Vec<Value> =
            buttons.iter().map(|button| json!({ "id": button.id, "title": button.title })).collect();
        let interactive = json!({ "body": text.unwrap_or_default(), "buttons": buttons });
        body.insert("interactive".to_owned(), interactive);
    }
}

/// Sends a message whose body is that of the operation.
pub(super) async fn send(
    call: &NodeCall,
    contact: ContactId,
    body: Value,
    closed: &Closed<'_>,
) -> Result<Work, NodeFailure> {
    if call.is_test() {
        return Ok(simulated(
            json!({ "operation": "sendContactMessage", "contact_id": contact, "body": body }),
        ));
    }
    let request = Request::with_body(body).at("contactId", contact).part("message");
    match call.call("sendContactMessage", request).await {
        Ok(sent) => Ok(done(sent_message(&sent, Some(true)))),
        Err(failure) if failure.code == "window_closed" => match (closed.policy, closed.template) {
            (FlowClosedWindow::Fail, _) => Err(failure),
            (FlowClosedWindow::Template, Some(config)) => template(call, contact, config, Some(false)).await,
            (FlowClosedWindow::Template, None) => Err(NodeFailure::new(
                "validation_error",
                "The setting `template` is required, because the window is closed.",
            )),
            (FlowClosedWindow::Task, _) => task(call, contact, closed.text).await,
        },
        Err(failure) => Err(failure),
    }
}

async fn template(
    call: &NodeCall,
    contact: ContactId,
    config: &config::SendTemplate,
    is_window_open: Option<bool>,
) -> Result<Work, NodeFailure> {
    let buttons: Map<String, Value> =
        config.button_params.iter().map(|(place, value)| (place.clone(), text_of(value).into())).collect();
    let body = json!({
        "channel_id": config.channel_id,
        "name": config.name,
        "language": config.language,
        "namespace": config.namespace,
        "params": numbered(&config.params),
        "header_params": numbered(&config.header_params),
        "button_params": buttons,
        "media": config.file_id,
    });
    if call.is_test() {
        return Ok(simulated(
            json!({ "operation": "sendContactTemplate", "contact_id": contact, "body": body }),
        ));
    }
    let request = Request::with_body(body).at("contactId", contact).part("template");
    let sent = call.call("sendContactTemplate", request).await?;
    Ok(done(sent_message(&sent, is_window_open)))
}

/// Values by their numbers, from 1.
fn numbered(values: &[Value]) -> Map<String, Value> {
    (1..).zip(values).map(|(number, value): (usize, _)| (number.to_string(), text_of(value).into())).collect()
}

/// The output of a node that has sent a message.
fn sent_message(sent: &Value, is_window_open: Option<bool>) -> Value {
    let mut output: Map<String, Value> = ["message_id", "conversation_id", "channel_id"]
        .map(|name| (name.to_owned(), sent.get(name).cloned().unwrap_or_default()))
        .into_iter()
        .collect();
    if let Some(is_open) = is_window_open {
        output.insert("window_open".to_owned(), is_open.into());
    }
    Value::Object(output)
}

/// A task for a person instead of a message.
async fn task(call: &NodeCall, contact: ContactId, text: &str) -> Result<Work, NodeFailure> {
    let (people, workspace) = (call.engine.0.people.clone(), call.run.workspace_id);
    let card = call.engine.db().read(move |read| people.find(read, workspace, &contact.into())).await?;
    let name = card.text("$name").or_else(|| card.text("$phone")).unwrap_or("the contact");
    let name: String = name.chars().take(200).collect();
    let why = "A flow could not send this message, because more than 24 hours have passed since the contact's last one:";
    let body = json!({
        "title": format!("Write to {name}"),
        "description": format!("{why}\n\n{text}"),
        "contact_id": contact,
    });
    let task = call.call("createTask", Request::with_body(body).part("task")).await?;
    Ok(done(json!({ "message_id": null, "window_open": false, "task_id": task.get("id") })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_are_numbered_texts() {
        let numbered = numbered(&[json!("Ana"), json!(12.5), json!(null)]);
        assert_eq!(Value::Object(numbered), json!({ "1": "Ana", "2": "12.5", "3": "" }));
    }

    #[test]
    fn buttons_make_a_text_interactive() {
        let mut body = json!({});
        say(&mut body, Some("Hello"), &[]);
        assert_eq!(body, json!({ "text": "Hello" }));
        let mut body = json!({});
        let yes = FlowChoice { id: "yes".to_owned(), title: "Yes".to_owned() };
        say(&mut body, Some("Really?"), &[yes]);
        let buttons = json!([{ "id": "yes", "title": "Yes" }]);
        assert_eq!(body, json!({ "interactive": { "body": "Really?", "buttons": buttons } }));
    }
}
