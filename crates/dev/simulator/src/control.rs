//! Control of the simulator by tests and people.

use crate::control_error::ControlError;
use crate::world::callbacks::about;
use crate::world::{
    ChatLine, NewUser, Number, Part, Person, Refused, Template, User, Work, World, digits, not_found, user_id,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A template to create without a submission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTemplate {
    /// The name: lower-case letters, digits and underscores.
    pub name: String,
    /// The language, such as `pt_BR`.
    pub language: String,
    /// The category: `MARKETING`, `UTILITY` or `AUTHENTICATION`.
    pub category: String,
    /// The components, in the network's format.
    pub components: Value,
}

/// The result of a template's review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Review {
    /// Approves the template.
    Approve,
    /// Rejects the template.
    Reject {
        /// The network's code of the reason, such as `INVALID_FORMAT`.
        reason: String,
    },
    /// Pauses the template.
    Pause,
    /// Disables the template permanently.
    Disable,
    /// Changes the category.
    Recategorise {
        /// The new category: `MARKETING`, `UTILITY` or `AUTHENTICATION`.
        category: String,
    },
    /// Changes the quality rating.
    Rate {
        /// The new rating: `GREEN`, `YELLOW`, `RED` or `UNKNOWN`.
        quality: String,
    },
}

impl World {
    pub(crate) fn add_user(&mut self, new: NewUser) -> Result<User, ControlError> {
        let phone = match new.phone.as_deref() {
            Some(phone) => {
                Some(digits(phone).ok_or_else(|| ControlError::invalid("The phone is not a number."))?)
            }
            None => None,
        };
        let key = phone.clone().or_else(|| new.username.clone()).or_else(|| new.name.clone());
        let key =
            key.ok_or_else(|| ControlError::invalid("A customer needs a phone, a username or a name."))?;
        let user_id = user_id(self.settings.seed, &key);
        if self.people.contains_key(&user_id) {
            return Err(ControlError::invalid("There is such a customer already."));
        }
        let user = User {
            user_id: user_id.clone(),
            phone: phone.clone(),
            name: new.name,
            username: new.username,
            on_network: true,
            blocks_business: false,
            refuses_marketing: false,
            behaviour: new.behaviour,
        };
        if let Some(phone) = phone {
            self.by_phone.insert(phone, user_id.clone());
        }
        self.people.insert(user_id, Person::new(user.clone()));
        Ok(user)
    }

    /// Returns the user id of a customer, given by user id or telephone number.
    pub(crate) fn key_of(&self, user: &str) -> Result<String, ControlError> {
        if self.people.contains_key(user) {
            return Ok(user.to_owned());
        }
        let by_phone = digits(user).and_then(|phone| self.by_phone.get(&phone).cloned());
        by_phone.ok_or_else(|| ControlError::missing("user", user))
    }

    /// Returns the conversation of a customer, with the status of each message.
    pub(crate) fn chat(&self, user_id: &str) -> Vec<ChatLine> {
        let Some(person) = self.people.get(user_id) else { return Vec::new() };
        let rank =
            |status: &str| ["failed", "sent", "delivered", "read"].iter().position(|word| *word == status);
        let far = |line: &ChatLine| {
            let sent = self.transcript.get(&line.id)?;
            let furthest = sent.statuses.iter().max_by_key(|status| rank(&status.status));
            Some(furthest.map_or_else(|| "accepted".to_owned(), |status| status.status.clone()))
        };
        person.chat.iter().map(|line| ChatLine { status: far(line), ..line.clone() }).collect()
    }

    pub(crate) fn number_mut(&mut self, id: &str) -> Result<&mut Number, ControlError> {
        self.numbers.get_mut(id).ok_or_else(|| ControlError::missing("number", id))
    }

    /// Adds an approved template.
    pub(crate) fn add_template(&mut self, new: &NewTemplate) -> Result<String, ControlError> {
        let id = self.numeric_id();
        let template = self.templates.submitted(&json!(new), id)?;
        self.templates.insert(Template { status: "APPROVED".to_owned(), ..template });
        Ok(id.to_string())
    }

    /// Accepts a submission. Schedules its approval if the settings ask for it.
    pub(crate) fn submit(&mut self, body: &Value) -> Result<Template, Refused> {
        let id = self.numeric_id();
        let template = self.templates.submitted(body, id)?;
        self.templates.insert(template.clone());
        if let Some(wait) = self.settings.approve_after {
            let due = self.now().plus(chrono::Duration::from_std(wait).unwrap_or_default());
            self.queue.push(due, Work::Approve { template: id });
        }
        Ok(template)
    }

    pub(crate) fn approve(&mut self, id: u64) {
        let Some(template) = self.templates.by_id.get(&id).filter(|template| template.status == "PENDING")
        else {
            return;
        };
        let (name, language) = (template.name.clone(), template.language.clone());
        // This cannot fail, because the template exists.
        let _ = self.review(&name, &language, &Review::Approve);
    }

    pub(crate) fn review(&mut self, name: &str, language: &str, review: &Review) -> Result<(), ControlError> {
        let template = self.templates.find_mut(name, language).ok_or_else(|| not_found(name, language))?;
        let mut event = |word: &str, reason: &str| {
            word.clone_into(&mut template.status);
            reason.clone_into(&mut template.rejected_reason);
            let mut value =
                json!({ "event": word, "reason": reason, "message_template_category": template.category });
            if let (Value::Object(value), Some((key, info))) = (&mut value, more(word)) {
                value.insert(key.to_owned(), info);
            }
            ("message_template_status_update", value)
        };
        let (field, mut value) = match review {
            Review::Approve => event("APPROVED", "NONE"),
            Review::Reject { reason } => event("REJECTED", reason),
            Review::Pause => event("PAUSED", "NONE"),
            Review::Disable => event("DISABLED", "NONE"),
            Review::Recategorise { category } => {
                let previous = std::mem::replace(&mut template.category, category.to_ascii_uppercase());
                let value = json!({ "previous_category": previous, "new_category": template.category });
                ("template_category_update", value)
            }
            Review::Rate { quality } => {
                let previous = std::mem::replace(&mut template.quality, quality.to_ascii_uppercase());
                let value =
                    json!({ "previous_quality_score": previous, "new_quality_score": template.quality });
                ("message_template_quality_update", value)
            }
        };
        if let Value::Object(value) = &mut value {
            value.insert("message_template_id".to_owned(), json!(template.id));
            value.insert("message_template_name".to_owned(), json!(template.name));
            value.insert("message_template_language".to_owned(), json!(template.language));
        }
        self.tell_all(field, &value);
        Ok(())
    }

    /// Sends a callback with a change of the business to the URL of each number.
    fn tell_all(&mut self, field: &'static str, value: &Value) {
        let at = Some(self.now());
        let mut urls = std::collections::BTreeSet::new();
        let numbers: Vec<String> = self
            .numbers
            .values()
            .filter(|number| urls.insert(number.callback_url.clone()))
            .map(|number| number.id.clone())
            .collect();
        for number in numbers {
            self.emit_now(&number, Part::Change { field, value: value.clone(), at });
        }
    }

    /// Changes the rating of a number, and sends the callback.
    pub(crate) fn rate_number(&mut self, id: &str, quality: &str, tier: &str) -> Result<(), ControlError> {
        let number = self.number_mut(id)?;
        let quality = quality.to_ascii_uppercase();
        let previous = std::mem::replace(&mut number.quality, quality);
        tier.clone_into(&mut number.tier);
        let event = match (previous.as_str(), number.quality.as_str()) {
            (_, "RED") => "FLAGGED",
            ("RED", _) => "UNFLAGGED",
            _ => "UPGRADE",
        };
        let value = json!({
            "display_phone_number": number.display_number,
            "event": event,
            "current_limit": tier,
            "max_daily_conversations_per_business": tier,
        });
        let at = Some(self.now());
        self.emit_now(id, Part::Change { field: "phone_number_quality_update", value, at });
        Ok(())
    }

    /// Sends a message from the business's own device.
    pub(crate) fn echo(&mut self, number_id: &str, user: &str, body: &str) -> Result<String, ControlError> {
        let user_id = self.key_of(user)?;
        let id = self.message_id();
        let now = self.now();
        let number = self.numbers.get(number_id).ok_or_else(|| ControlError::missing("number", number_id))?;
        let phone = self.people.get(&user_id).and_then(|person| person.user.phone.clone());
        let mut echo = json!({
            "from": number.display_number, "to_user_id": user_id, "id": id,
            "timestamp": now.seconds().to_string(), "type": "text", "text": { "body": body },
        });
        if let (Value::Object(echo), Some(phone)) = (&mut echo, phone) {
            echo.insert("to".to_owned(), json!(phone));
        }
        let mut value = about(number);
        value.insert("message_echoes".to_owned(), json!([echo]));
        let value = Value::Object(value);
        if let Some(person) = self.people.get_mut(&user_id) {
            person.say(ChatLine {
                is_ours: true,
                id: id.clone(),
                kind: "text".to_owned(),
                text: body.to_owned(),
                header: None,
                footer: None,
                buttons: Vec::new(),
                at: now,
                status: None,
            });
        }
        self.emit_now(number_id, Part::Change { field: "smb_message_echoes", value, at: None });
        Ok(id)
    }
}

/// Returns the extra field that the network adds to some events.
fn more(event: &str) -> Option<(&'static str, Value)> {
    match event {
        "REJECTED" => Some((
            "rejection_info",
            json!({ "reason": "The review says so.", "recommendation": "Change it." }),
        )),
        "PAUSED" => {
            Some(("other_info", json!({ "title": "FIRST_PAUSE", "description": "Recipients complained." })))
        }
        "DISABLED" => Some(("disable_info", json!({ "disable_date": "1751234563" }))),
        _ => None,
    }
}
