//! Acceptance of the business's messages.

use super::rules::{self, checked_kind, list, required};
use super::templates::not_found;
use super::users::{ChatLine, Choice, ChoiceKind, digits, user_id};
use super::{Refused, Sent, Work, World};
use model::Timestamp;
use serde_json::{Value, json};
use tokio::sync::oneshot;

const WINDOW_SECONDS: i64 = 24 * 3600;

/// The result of an accepted send.
pub(crate) struct Accepted {
    pub(crate) answer: Value,
    /// Notified when the callback with the first status has been answered.
    pub(crate) first_status: Option<oneshot::Receiver<()>>,
}

/// The recipient of a message.
pub(super) struct Recipient {
    input: String,
    pub(super) user_id: String,
    pub(super) phone: Option<String>,
}

impl Recipient {
    pub(super) fn known(user_id: &str, phone: Option<String>) -> Self {
        Self { input: String::new(), user_id: user_id.to_owned(), phone }
    }
}

impl World {
    /// Accepts or refuses a message. With `is_early` the caller waits for the first status.
    pub(crate) fn accept(
        &mut self,
        number_id: &str,
        body: &Value,
        is_early: bool,
    ) -> Result<Accepted, Refused> {
        let now = self.now();
        let kind = checked_kind(body)?;
        let part = body.get(kind).unwrap_or(&Value::Null);
        let recipient = self.recipient(body)?;
        self.check_media(kind, part, now)?;
        if self.settings.rates
            && let Some(number) = self.numbers.get_mut(number_id)
        {
            number.rates.take(&recipient.user_id, now)?;
        }
        let problem = self.check_recipient(number_id, kind, part, &recipient, now).err();
        if let Some(problem) = &problem
            && !(self.faults.late_refusals && matches!(problem.code, 131_026 | 131_047))
        {
            return Err(problem.clone());
        }
        let id = self.message_id();
        let reference = body.get("biz_opaque_callback_data").and_then(Value::as_str).map(str::to_owned);
        let first_status =
            self.plan_statuses(number_id, &id, &recipient, reference.as_deref(), problem, is_early);
        let mut contact = json!({ "input": recipient.input, "user_id": recipient.user_id });
        if let (Some(phone), Value::Object(contact)) = (&recipient.phone, &mut contact) {
            contact.insert("wa_id".to_owned(), json!(phone));
        }
        let answer = json!({
            "messaging_product": "whatsapp",
            "contacts": [contact],
            "messages": [{ "id": id, "message_status": "accepted" }],
        });
        let sent = Sent {
            sequence: 0,
            provider_id: id,
            number_id: number_id.to_owned(),
            to: recipient.input,
            user_id: recipient.user_id,
            reference,
            kind: kind.to_owned(),
            content: part.clone(),
            reply_to: body.pointer("/context/message_id").and_then(Value::as_str).map(str::to_owned),
            at: now,
            statuses: Vec::new(),
        };
        self.show(&sent);
        self.transcript.push(sent);
        Ok(Accepted { answer, first_status })
    }

    fn recipient(&self, body: &Value) -> Result<Recipient, Refused> {
        let text = |key| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(to) = text("to") {
            let phone =
                digits(to).ok_or_else(|| Refused::new(131_009, "The parameter to is not a phone number."))?;
            let known = self.by_phone.get(&phone).cloned();
            let user_id = known.unwrap_or_else(|| user_id(self.settings.seed, &phone));
            return Ok(Recipient { input: to.to_owned(), user_id, phone: Some(phone) });
        }
        let id = text("recipient").ok_or_else(|| required("to"))?;
        let person = self.people.get(id).ok_or_else(|| undeliverable("The user id is not known."))?;
        Ok(Recipient { input: id.to_owned(), user_id: id.to_owned(), phone: person.user.phone.clone() })
    }

    fn check_media(&self, kind: &str, part: &Value, now: Timestamp) -> Result<(), Refused> {
        if !matches!(kind, "image" | "audio" | "video" | "document" | "sticker") {
            return Ok(());
        }
        let Some(id) = part.get("id").and_then(Value::as_str) else { return Ok(()) };
        let file = self.files.get(id, now).ok_or_else(|| {
            Refused::new(131_009, format!("The media id {id} does not exist or has expired."))
        })?;
        let family = file.mime_type.split('/').next().unwrap_or_default();
        let fits = match kind {
            "document" => true,
            "sticker" => file.mime_type == "image/webp",
            kind => family == kind,
        };
        if !fits || file.content.len() > rules::most_bytes(&file.mime_type) {
            return Err(Refused::new(131_053, format!("A file of type {} is no {kind}.", file.mime_type)));
        }
        Ok(())
    }

    /// Checks whether the recipient may receive this message now.
    fn check_recipient(
        &mut self,
        number_id: &str,
        kind: &str,
        part: &Value,
        recipient: &Recipient,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let person = self.people.get(&recipient.user_id);
        if person.is_some_and(|person| !person.user.on_network) {
            return Err(undeliverable("The recipient is not on the network."));
        }
        let wrote_at = person.and_then(|person| person.wrote_at.get(number_id));
        let is_open = wrote_at.is_some_and(|at| now < at.plus_seconds(WINDOW_SECONDS));
        if kind != "template" {
            if is_open {
                return Ok(());
            }
            let details = "Message failed to send because more than 24 hours have passed since the customer last replied.";
            return Err(Refused::new(131_047, details));
        }
        let text = |pointer| part.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (name, language) = (text("/name"), text("/language/code"));
        let template = self.templates.find(name, language).ok_or_else(|| not_found(name, language))?;
        template.check(part)?;
        if template.category == "MARKETING" && person.is_some_and(|person| person.user.refuses_marketing) {
            return Err(Refused::new(
                131_050,
                "The recipient stopped marketing messages from this business.",
            ));
        }
        if let (false, Some(most)) = (is_open, self.settings.daily_recipients)
            && let Some(number) = self.numbers.get_mut(number_id)
        {
            number.daily.take(&recipient.user_id, most, now)?;
        }
        Ok(())
    }

    /// Adds a message to the recipient's conversation, and schedules the next step of the recipient's script.
    fn show(&mut self, sent: &Sent) {
        let (text, choices) = self.seen_as(sent);
        let (header, footer) = (self.text_around(sent, "header"), self.text_around(sent, "footer"));
        let Some(person) = self.people.get_mut(&sent.user_id) else { return };
        person.last_of_business = Some(sent.provider_id.clone());
        let buttons = choices.iter().map(|choice| choice.title.clone()).collect();
        if !choices.is_empty() {
            person.choices = choices;
        }
        person.say(ChatLine {
            is_ours: true,
            id: sent.provider_id.clone(),
            kind: sent.kind.clone(),
            text,
            header,
            footer,
            buttons,
            at: sent.at,
            status: None,
        });
        if person.user.blocks_business || sent.kind == "reaction" {
            return;
        }
        if person.user.behaviour.read_after_ms.is_none() {
            person.unread.push_back(sent.provider_id.clone());
        }
        if let Some(step) = person.next_step() {
            let wait = chrono::Duration::milliseconds(i64::try_from(step.after_ms).unwrap_or(i64::MAX));
            let work = Work::Act {
                user_id: sent.user_id.clone(),
                number_id: sent.number_id.clone(),
                action: step.action,
            };
            self.queue.push(sent.at.plus(wait), work);
        }
    }

    /// Returns the `header` or `footer` of a template or an interactive message.
    fn text_around(&self, sent: &Sent, part: &str) -> Option<String> {
        let text = |pointer: &str| sent.content.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let shown = match sent.kind.as_str() {
            "interactive" => text(&format!("/{part}/text")).to_owned(),
            "template" => {
                let template = self.templates.find(text("/name"), text("/language/code"))?;
                filled(template.text(part), part, &sent.content)
            }
            _ => return None,
        };
        Some(shown).filter(|text| !text.is_empty())
    }

    /// Returns the text that the recipient sees, and the buttons or rows.
    fn seen_as(&self, sent: &Sent) -> (String, Vec<Choice>) {
        let text = |pointer: &str| sent.content.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        match sent.kind.as_str() {
            "text" => (text("/body").to_owned(), Vec::new()),
            "reaction" => (text("/emoji").to_owned(), Vec::new()),
            "interactive" => (text("/body/text").to_owned(), offered(sent)),
            "template" => match self.templates.find(text("/name"), text("/language/code")) {
                Some(template) => {
                    let buttons = template.buttons().iter().enumerate();
                    let choices = buttons.filter_map(|(index, button)| quick_reply(sent, index, button));
                    (filled(template.text("body"), "body", &sent.content), choices.collect())
                }
                None => (text("/name").to_owned(), Vec::new()),
            },
            kind => {
                let shown = [text("/filename"), text("/caption")].map(str::trim);
                let shown: Vec<&str> = shown.into_iter().filter(|text| !text.is_empty()).collect();
                (format!("[{kind}] {}", shown.join(" · ")).trim().to_owned(), Vec::new())
            }
        }
    }
}

pub(super) fn undeliverable(details: &str) -> Refused {
    Refused::new(131_026, details)
}

/// Returns the buttons or rows of an interactive message.
fn offered(sent: &Sent) -> Vec<Choice> {
    let choice = |value: &Value, kind| {
        let text = |key| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let (id, title) = (text("id")?, text("title")?);
        Some(Choice { id, title, description: text("description"), kind, message: sent.provider_id.clone() })
    };
    let buttons = list(&sent.content, "/action/buttons").iter().filter_map(|button| button.get("reply"));
    let rows = list(&sent.content, "/action/sections").iter().flat_map(|section| list(section, "/rows"));
    buttons
        .filter_map(|button| choice(button, ChoiceKind::Button))
        .chain(rows.filter_map(|row| choice(row, ChoiceKind::Row)))
        .collect()
}

/// Returns a template's button that sends a reply.
fn quick_reply(sent: &Sent, index: usize, button: &Value) -> Option<Choice> {
    if button.get("type").and_then(Value::as_str) != Some("QUICK_REPLY") {
        return None;
    }
    let title = button.get("text").and_then(Value::as_str)?.to_owned();
    let is_it = |part: &&Value| match part.get("index") {
        Some(Value::String(text)) => text.parse() == Ok(index),
        Some(other) => other.as_u64() == Some(index as u64),
        None => false,
    };
    let payload = list(&sent.content, "/components")
        .iter()
        .find(is_it)
        .and_then(|part| part.pointer("/parameters/0/payload")?.as_str());
    let id = payload.unwrap_or(&title).to_owned();
    Some(Choice {
        id,
        title,
        description: None,
        kind: ChoiceKind::Template,
        message: sent.provider_id.clone(),
    })
}

/// Returns the text of a template's component, filled with its values.
fn filled(text: &str, kind: &str, sent: &Value) -> String {
    let parts = list(sent, "/components");
    let is_it = |part: &&Value| part.get("type").and_then(Value::as_str) == Some(kind);
    let values = parts.iter().find(is_it).map(|part| list(part, "/parameters")).unwrap_or_default();
    values.iter().enumerate().fold(text.to_owned(), |text, (index, value)| {
        let name = value.get("parameter_name").and_then(Value::as_str);
        let name = name.map_or_else(|| (index + 1).to_string(), str::to_owned);
        let value = value.get("text").and_then(Value::as_str).unwrap_or_default();
        text.replace(&format!("{{{{{name}}}}}"), value)
    })
}
