//! Statuses of messages.

use super::accept::Recipient;
use super::{Emission, Part, Refused, Work, World};
use model::Timestamp;
use serde_json::{Value, json};
use tokio::sync::oneshot;

impl World {
    /// Schedules the statuses of an accepted message. `problem` makes it fail.
    pub(super) fn plan_statuses(
        &mut self,
        number_id: &str,
        id: &str,
        recipient: &Recipient,
        reference: Option<&str>,
        problem: Option<Refused>,
        is_early: bool,
    ) -> Option<oneshot::Receiver<()>> {
        let now = self.now();
        let about = About { number_id, id, recipient, reference };
        if let Some(problem) = problem {
            self.plan(now, &about, "failed", Some(&problem), None);
            return None;
        }
        let (seen, first_status) = is_early.then(oneshot::channel).unzip();
        self.plan(now, &about, "sent", None, seen);
        let user = self.people.get(&recipient.user_id).map(|person| &person.user);
        let is_blocked = user.is_some_and(|user| user.blocks_business);
        let read_after = user.and_then(|user| user.behaviour.read_after_ms);
        let (faults, dice) = (&self.faults, &mut self.dice);
        let failure =
            dice.hits(faults.fail_after_sent).then(|| Refused::new(faults.failure_code, "A fault."));
        let is_late = failure.is_some() && dice.hits(faults.deliver_after_failed);
        let skips_delivered = dice.hits(faults.skip_delivered);
        let wait = chrono::Duration::from_std(self.settings.deliver_after).unwrap_or_default();
        let arrives = now.plus(wait);
        if let Some(failure) = &failure {
            self.plan(arrives, &about, "failed", Some(failure), None);
        }
        if is_blocked || failure.is_some() && !is_late {
            return first_status;
        }
        if !skips_delivered {
            self.plan(arrives, &about, "delivered", None, None);
        }
        if let Some(wait) = read_after {
            let wait = chrono::Duration::milliseconds(i64::try_from(wait).unwrap_or(i64::MAX));
            self.plan(arrives.plus(wait), &about, "read", None, None);
        }
        first_status
    }

    /// Schedules the status `read` of a message.
    pub(super) fn plan_read(&mut self, user_id: &str, id: &str) {
        let now = self.now();
        let Some(sent) = self.transcript.get(id) else { return };
        // A message is delivered before it is read.
        if sent.statuses.iter().any(|status| status.status == "read") {
            return;
        }
        let (number_id, reference) = (sent.number_id.clone(), sent.reference.clone());
        let phone = self.people.get(user_id).and_then(|person| person.user.phone.clone());
        let recipient = Recipient::known(user_id, phone);
        let about =
            About { number_id: &number_id, id, recipient: &recipient, reference: reference.as_deref() };
        self.plan(now, &about, "read", None, None);
    }

    fn plan(
        &mut self,
        due: Timestamp,
        about: &About<'_>,
        word: &'static str,
        problem: Option<&Refused>,
        seen: Option<oneshot::Sender<()>>,
    ) {
        let contact = (word != "failed").then(|| match self.people.get(&about.recipient.user_id) {
            Some(person) => person.user.contact(),
            None => json!({
                "profile": { "name": about.recipient.phone },
                "wa_id": about.recipient.phone,
                "user_id": about.recipient.user_id,
            }),
        });
        let emission = Emission {
            number_id: about.number_id.to_owned(),
            part: Part::Status { contact, status: status(about, word, due, problem) },
            note: Some((about.id.to_owned(), word)),
            is_drawn: false,
            seen,
        };
        self.queue.push(due, Work::Emit(emission));
    }
}

/// The message of a status.
struct About<'a> {
    number_id: &'a str,
    id: &'a str,
    recipient: &'a Recipient,
    reference: Option<&'a str>,
}

fn status(about: &About<'_>, word: &str, at: Timestamp, problem: Option<&Refused>) -> Value {
    let mut status = json!({
        "id": about.id,
        "status": word,
        "timestamp": at.seconds().to_string(),
        "recipient_user_id": about.recipient.user_id,
    });
    let Value::Object(fields) = &mut status else { return status };
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    if let Some(phone) = &about.recipient.phone {
        put("recipient_id", json!(phone));
    }
    if let Some(reference) = about.reference {
        put("biz_opaque_callback_data", json!(reference));
    }
    if let Some(problem) = problem {
        put("errors", problem.in_status());
        return status;
    }
    let conversation = json!({ "id": "72a4d6b1c9f04e0f", "origin": { "type": "service" } });
    match word {
        "sent" => {
            let mut conversation = conversation;
            if let Value::Object(fields) = &mut conversation {
                let expires = at.plus_seconds(24 * 3600).seconds().to_string();
                fields.insert("expiration_timestamp".to_owned(), json!(expires));
            }
            put("conversation", conversation);
        }
        "delivered" => {
            put("conversation", conversation);
        }
        _ => return status,
    }
    put(
        "pricing",
        json!({
            "billable": false, "pricing_model": "PMP", "type": "free_customer_service", "category": "service",
        }),
    );
    status
}
