//! Actions of customers.

use super::callbacks::about;
use super::users::{Action, ChatLine, Choice, ChoiceKind, digits, user_id};
use super::{Part, World};
use crate::control_error::ControlError;
use crate::ogg;
use bytes::Bytes;
use ring::digest;
use serde_json::{Map, Value, json};

/// An image of one pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0,
    0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63,
    0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x56, 0xc7, 0x2f, 0x0d, 0, 0, 0, 0, b'I', b'E', b'N',
    b'D', 0xae, 0x42, 0x60, 0x82,
];

/// A message of a customer, to be sent as a callback.
struct Written {
    kind: &'static str,
    part: Option<Value>,
    /// The id of the message that this is a reply to.
    reply_to: Option<String>,
    /// The text in the conversation; empty to show nothing.
    shown: String,
}

impl Written {
    fn new(kind: &'static str, part: Value, shown: impl Into<String>) -> Self {
        Self { kind, part: Some(part), reply_to: None, shown: shown.into() }
    }
}

impl World {
    /// Performs an action of a customer. Returns the id of the resulting message, if there is one.
    pub(crate) fn act(
        &mut self,
        user_id: &str,
        number_id: &str,
        action: &Action,
    ) -> Result<Option<String>, ControlError> {
        if !self.numbers.contains_key(number_id) {
            return Err(ControlError::missing("number", number_id));
        }
        if !self.people.contains_key(user_id) {
            return Err(ControlError::missing("user", user_id));
        }
        match action {
            Action::Read => self.read_all(user_id),
            Action::OptOut => self.prefer(user_id, number_id, true),
            Action::OptIn => self.prefer(user_id, number_id, false),
            Action::Block => self.with_user(user_id, |user| user.blocks_business = true),
            Action::Unblock => self.with_user(user_id, |user| user.blocks_business = false),
            Action::Leave => self.with_user(user_id, |user| user.on_network = false),
            Action::ChangeNumber { phone } => self.change_number(user_id, number_id, phone)?,
            written => {
                let written = self.written(user_id, written)?;
                return Ok(Some(self.write(user_id, number_id, written)));
            }
        }
        Ok(None)
    }

    fn with_user(&mut self, user_id: &str, change: impl FnOnce(&mut super::User)) {
        if let Some(person) = self.people.get_mut(user_id) {
            change(&mut person.user);
        }
    }

    fn written(&mut self, user_id: &str, action: &Action) -> Result<Written, ControlError> {
        let nothing = |what: &str| ControlError::invalid(format!("There is no {what}."));
        let (last_text, last_message, last_of_business) = match self.people.get(user_id) {
            Some(person) => {
                (person.last_text.clone(), person.last_message.clone(), person.last_of_business.clone())
            }
            None => (None, None, None),
        };
        Ok(match action {
            Action::Text { body, reply_to } => {
                if body.is_empty() {
                    return Err(ControlError::invalid("The text is empty."));
                }
                let text = Written::new("text", json!({ "body": body }), body);
                Written { reply_to: reply_to.clone(), ..text }
            }
            Action::Press { button } => pressed(self.choice(user_id, button.as_deref())?),
            Action::VoiceNote { .. } | Action::Image { .. } | Action::Document { .. } | Action::Location => {
                self.enclosed(action)
            }
            Action::React { emoji } => {
                let mut part = json!({ "message_id": last_of_business.ok_or_else(|| nothing("message"))? });
                if let Some(emoji) = emoji {
                    insert(&mut part, "emoji", json!(emoji));
                }
                Written::new("reaction", part, emoji.as_deref().unwrap_or_default())
            }
            Action::Edit { body } => {
                let original = last_text.ok_or_else(|| nothing("text to change"))?;
                let text = json!({ "context": { "id": original }, "type": "text", "text": { "body": body } });
                Written::new(
                    "edit",
                    json!({ "original_message_id": original, "message": text }),
                    format!("✎ {body}"),
                )
            }
            Action::Revoke => {
                let original = last_message.ok_or_else(|| nothing("message to delete"))?;
                Written::new("revoke", json!({ "original_message_id": original }), "🗑")
            }
            _ => {
                Written { kind: "unsupported", part: None, reply_to: None, shown: "[unsupported]".to_owned() }
            }
        })
    }

    /// Returns a message with a file or a location.
    fn enclosed(&mut self, action: &Action) -> Written {
        match action {
            Action::VoiceNote { words } => {
                let note = ogg::voice_note(words, 2);
                let mut part = self.file("audio/ogg; codecs=opus", note.into());
                insert(&mut part, "voice", json!(true));
                Written::new("audio", part, format!("🎤 {words}"))
            }
            Action::Image { caption } => {
                let mut part = self.file("image/png", Bytes::from_static(PIXEL));
                if let Some(caption) = caption {
                    insert(&mut part, "caption", json!(caption));
                }
                Written::new("image", part, format!("[image] {}", caption.as_deref().unwrap_or_default()))
            }
            Action::Document { file_name, content } => {
                let mut part = self.file("text/plain", content.clone().into());
                insert(&mut part, "filename", json!(file_name));
                Written::new("document", part, format!("[document] {file_name}"))
            }
            _ => {
                let part = json!({
                    "address": "Av. Rio Branco, Rio de Janeiro", "latitude": -22.9035, "longitude": -43.1781,
                    "name": "Centro",
                });
                Written::new("location", part, "[location] Centro")
            }
        }
    }

    /// Returns the button or row with this title or id, or the first one.
    fn choice(&self, user_id: &str, button: Option<&str>) -> Result<&Choice, ControlError> {
        let choices = self.people.get(user_id).map(|person| person.choices.as_slice()).unwrap_or_default();
        let is_it =
            |choice: &&Choice| button.is_none_or(|button| choice.title == button || choice.id == button);
        choices.iter().find(is_it).ok_or_else(|| ControlError::invalid("There is no such button to press."))
    }

    /// Stores a file of a customer and returns its description.
    fn file(&mut self, mime_type: &str, content: Bytes) -> Value {
        let id = self.numeric_id().to_string();
        let hash = digest::digest(&digest::SHA256, &content);
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let now = self.now();
        self.files.receive(id.clone(), mime_type, content, now);
        json!({ "mime_type": mime_type, "sha256": hash, "id": id })
    }

    /// Sends a callback with a message of a customer. This opens the 24-hour window.
    fn write(&mut self, user_id: &str, number_id: &str, written: Written) -> String {
        let now = self.now();
        let id = self.message_id();
        let display_number = self.numbers.get(number_id).map(|number| number.display_number.clone());
        let Some(person) = self.people.get_mut(user_id) else { return id };
        person.wrote_at.insert(number_id.to_owned(), now);
        let mut message = Map::new();
        if let Some(phone) = &person.user.phone {
            message.insert("from".to_owned(), json!(phone));
        }
        message.insert("from_user_id".to_owned(), json!(person.user.user_id));
        message.insert("id".to_owned(), json!(id));
        message.insert("timestamp".to_owned(), json!(now.seconds().to_string()));
        message.insert("type".to_owned(), json!(written.kind));
        if let Some(replied) = written.reply_to {
            message.insert("context".to_owned(), json!({ "from": display_number, "id": replied }));
        }
        match written.part {
            Some(part) => {
                message.insert(written.kind.to_owned(), part);
            }
            None => {
                let error = json!([{
                    "code": 131_051, "title": "Message type unknown", "message": "Message type unknown",
                    "error_data": { "details": "Message type is currently not supported." },
                }]);
                message.insert("errors".to_owned(), error);
            }
        }
        if !matches!(written.kind, "reaction" | "edit" | "revoke") {
            person.last_message = Some(id.clone());
        }
        if written.kind == "text" {
            person.last_text = Some(id.clone());
        }
        if !written.shown.is_empty() {
            person.say(ChatLine {
                is_ours: false,
                id: id.clone(),
                kind: written.kind.to_owned(),
                text: written.shown.trim().to_owned(),
                header: None,
                footer: None,
                buttons: Vec::new(),
                at: now,
                status: None,
            });
        }
        let contact = Some(person.user.contact());
        self.emit_now(number_id, Part::Message { contact, message: Value::Object(message) });
        id
    }

    fn read_all(&mut self, user_id: &str) {
        let Some(person) = self.people.get_mut(user_id) else { return };
        for id in std::mem::take(&mut person.unread) {
            self.plan_read(user_id, &id);
        }
    }

    /// Sets the customer's marketing preference and sends the callback.
    fn prefer(&mut self, user_id: &str, number_id: &str, refuses: bool) {
        self.with_user(user_id, |user| user.refuses_marketing = refuses);
        let now = self.now().seconds();
        let (Some(person), Some(number)) = (self.people.get(user_id), self.numbers.get(number_id)) else {
            return;
        };
        let (detail, value) = if refuses {
            ("User requested to stop marketing messages", "stop")
        } else {
            ("User requested to resume marketing messages", "resume")
        };
        let mut preference = json!({
            "user_id": user_id, "detail": detail, "category": "marketing_messages", "value": value, "timestamp": now,
        });
        if let Some(phone) = &person.user.phone {
            insert(&mut preference, "wa_id", json!(phone));
        }
        let mut change = about(number);
        change.insert("contacts".to_owned(), json!([person.user.contact()]));
        change.insert("user_preferences".to_owned(), json!([preference]));
        let value = Value::Object(change);
        self.emit_now(number_id, Part::Change { field: "user_preferences", value, at: None });
    }

    /// Changes the number of a customer, which also changes the user id.
    fn change_number(&mut self, old_id: &str, number_id: &str, phone: &str) -> Result<(), ControlError> {
        let phone = digits(phone).ok_or_else(|| ControlError::invalid("The phone is not a number."))?;
        let new_id = user_id(self.settings.seed, &phone);
        if self.by_phone.contains_key(&phone) || self.people.contains_key(&new_id) {
            return Err(ControlError::invalid("Another customer has this number."));
        }
        let Some(mut person) = self.people.remove(old_id) else { return Ok(()) };
        let old_phone = person.user.phone.replace(phone.clone());
        new_id.clone_into(&mut person.user.user_id);
        if let Some(old) = &old_phone {
            self.by_phone.remove(old);
        }
        self.by_phone.insert(phone.clone(), new_id.clone());
        let name = person.user.name.clone().unwrap_or_default();
        self.people.insert(new_id.clone(), person);
        let mut message = json!({
            "id": self.message_id(),
            "timestamp": self.now().seconds().to_string(),
            "type": "system",
            "system": {
                "body": format!("User {name} changed from {} to {phone}", old_phone.as_deref().unwrap_or_default()),
                "wa_id": phone,
                "user_id": new_id,
                "previous_user_id": old_id,
                "type": "user_changed_number",
            },
        });
        if let Some(old) = old_phone {
            insert(&mut message, "from", json!(old));
        }
        self.emit_now(number_id, Part::Message { contact: None, message });
        Ok(())
    }
}

/// Returns the message for a pressed button or a chosen row.
fn pressed(choice: &Choice) -> Written {
    let (id, title) = (&choice.id, &choice.title);
    let (kind, part) = match choice.kind {
        ChoiceKind::Template => ("button", json!({ "payload": id, "text": title })),
        ChoiceKind::Button => {
            ("interactive", json!({ "type": "button_reply", "button_reply": { "id": id, "title": title } }))
        }
        ChoiceKind::Row => {
            let mut reply = json!({ "id": id, "title": title });
            if let Some(description) = &choice.description {
                insert(&mut reply, "description", json!(description));
            }
            ("interactive", json!({ "type": "list_reply", "list_reply": reply }))
        }
    };
    Written { reply_to: Some(choice.message.clone()), ..Written::new(kind, part, title) }
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(key.to_owned(), value);
    }
}
