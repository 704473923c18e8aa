//! The business's side of the page, where a person reads a conversation, takes over, writes and hands back. The
//! simulator sends these requests to the service with a key that the page never receives.

use super::local::{Done, done, parsed};
use crate::control_error::ControlError;
use crate::settings::Service;
use crate::world::{Shared, User};
use actix_web::web::{self, Bytes, Data, Path, ServiceConfig};
use egress::{Connector, Method, Request, Url};
use serde::Deserialize;
use serde_json::{Value, json};

/// The number of messages shown.
const SHOWN: usize = 50;

/// Adds the routes, which share the guard of `/control`.
pub(super) fn routes(app: &mut ServiceConfig) {
    app.route("/inbox", web::get().to(inbox))
        .route("/users/{user}/inbox", web::get().to(read))
        .route("/users/{user}/inbox", web::post().to(write))
        .route("/users/{user}/autopilot", web::put().to(switch));
}

/// Returns whether the page has a business side.
async fn inbox(shared: Data<Shared>) -> Done {
    done(Ok(json!({ "connected": shared.lock().service.is_some() })))
}

/// A customer, with access to the business's service.
struct Inbox {
    service: Service,
    connector: Data<Connector>,
    user: User,
}

impl Inbox {
    fn of(shared: &Shared, connector: Data<Connector>, user: &str) -> Result<Self, ControlError> {
        let world = shared.lock();
        let missing = || ControlError::invalid("The simulator knows no service of the business.");
        let service = world.service.clone().ok_or_else(missing)?;
        let key = world.key_of(user)?;
        let person = world.people.get(&key).ok_or_else(|| ControlError::missing("user", user))?;
        Ok(Self { service, connector, user: person.user.clone() })
    }

    /// Sends a request to the service. Returns `None` for 404.
    async fn ask(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Option<Value>, ControlError> {
        let unusable = || ControlError::invalid("The URL of the service cannot be used.");
        let mut url = Url::parse(&self.service.base_url).map_err(|_| unusable())?;
        url.path_segments_mut().map_err(|()| unusable())?.pop_if_empty().extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = Request::new(method, url.as_str())
            .header("authorization", format!("Bearer {}", self.service.key));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = self.connector.send(request).await;
        let answer = answer
            .map_err(|error| ControlError::invalid(format!("The service does not answer: {error}.")))?;
        let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        match answer.status {
            200..300 => Ok(Some(body.get_mut("data").map(Value::take).unwrap_or_default())),
            404 => Ok(None),
            status => {
                let message = body.pointer("/error/message").and_then(Value::as_str).map(str::to_owned);
                let message = message.unwrap_or_else(|| format!("The service answered {status}."));
                Err(ControlError::invalid(message))
            }
        }
    }

    /// Returns the contact of the customer, which exists once the customer has written.
    async fn contact(&self) -> Result<Option<Value>, ControlError> {
        if let Some(phone) = &self.user.phone {
            let named = format!("phone:+{phone}");
            let found = self.ask(Method::GET, &["contacts", &named], &[], None).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let filter = json!([{ "field": "$chat_user_id", "value": self.user.user_id }]).to_string();
        let query = [("filters", filter.as_str()), ("limit", "1")];
        let found = self.ask(Method::GET, &["contacts"], &query, None).await?;
        let first = found.and_then(|mut rows| rows.get_mut(0).map(Value::take));
        // A service that does not know the filter ignores it, so check the result.
        let id = |contact: &Value| {
            contact.pointer("/data/$chat_user_id").and_then(Value::as_str).map(str::to_owned)
        };
        Ok(first.filter(|contact| id(contact).as_ref() == Some(&self.user.user_id)))
    }

    /// Returns the contact's id, or an error if there is no contact.
    async fn contact_id(&self) -> Result<String, ControlError> {
        let found = self.contact().await?;
        let id = found.as_ref().and_then(|contact| contact.get("id")).map(Value::to_string);
        id.ok_or_else(|| {
            ControlError::invalid("The business does not know the customer, who has to write first.")
        })
    }
}

async fn read(shared: Data<Shared>, connector: Data<Connector>, user: Path<String>) -> Done {
    let inbox = Inbox::of(&shared, connector, &user)?;
    let Some(contact) = inbox.contact().await? else {
        return done(Ok(json!({ "contact_id": null, "autopilot": null, "data": [] })));
    };
    let id = contact.get("id").map(Value::to_string).unwrap_or_default();
    let messages = inbox.ask(Method::GET, &["contacts", &id, "messages"], &[], None).await?;
    let newest = messages.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<Value> = newest.iter().take(SHOWN).rev().map(line).collect();
    let autopilot = contact.pointer("/autopilot/enabled");
    done(Ok(json!({ "contact_id": contact.get("id"), "autopilot": autopilot, "data": lines })))
}

/// Converts a message for the page.
fn line(message: &Value) -> Value {
    let text =
        |pointer: &str| message.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = text("/type").unwrap_or_default();
    let shown = text("/content").or_else(|| text("/attachments/0/transcript"));
    json!({
        "is_ours": text("/direction") == Some("outbound"),
        "id": message.get("id").map(Value::to_string),
        "kind": kind,
        "sender": text("/sender/type"),
        "text": shown.map_or_else(|| format!("[{kind}]"), str::to_owned),
        "at": message.get("created_at"),
        "status": message.get("status"),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    text: String,
}

async fn write(shared: Data<Shared>, connector: Data<Connector>, user: Path<String>, body: Bytes) -> Done {
    let written: Written = parsed(&body)?;
    let inbox = Inbox::of(&shared, connector, &user)?;
    let id = inbox.contact_id().await?;
    let text = json!({ "text": written.text });
    let sent = inbox.ask(Method::POST, &["contacts", &id, "operator-messages"], &[], Some(&text)).await?;
    done(sent.map(|sent| json!({ "id": sent.get("message_id") })).ok_or_else(gone))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Autopilot {
    enabled: bool,
}

async fn switch(shared: Data<Shared>, connector: Data<Connector>, user: Path<String>, body: Bytes) -> Done {
    let wanted: Autopilot = parsed(&body)?;
    let inbox = Inbox::of(&shared, connector, &user)?;
    let id = inbox.contact_id().await?;
    let enabled = json!({ "enabled": wanted.enabled });
    let switched = inbox.ask(Method::PUT, &["contacts", &id, "autopilot"], &[], Some(&enabled)).await?;
    done(switched.map(|_| enabled).ok_or_else(gone))
}

fn gone() -> ControlError {
    ControlError { is_missing: true, message: "The business no longer has the contact.".to_owned() }
}
