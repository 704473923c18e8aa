//! What may be sent to whom at this moment. The same is checked again when a message leaves the outbox.

use super::result::SendCheck;
use channels::ChannelRow;
use channels::reach;
use channels::templates;
use chatnet::{Recipient, TemplateCategory};
use conversations::messages::Conversation;
use model::{Answering, Code, Error, Result, Timestamp};
use ports::ContactCard;
use serde_json::{Value, json};
use store::Read;

/// What is checked of a send, all of it even where something fails.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(super) all: Vec<SendCheck>,
    first: Option<Error>,
}

impl Checks {
    /// Notes whether something passes.
    pub(super) fn note<T>(&mut self, name: &'static str, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.all.push(SendCheck { name, ok: true, code: None });
                Some(value)
            }
            Err(error) => {
                self.all.push(SendCheck { name, ok: false, code: Some(error.code().as_str()) });
                self.first.get_or_insert(error);
                None
            }
        }
    }

    /// Fails with the first that did not pass. A dry run shows with it what else was checked.
    pub(super) fn passed(self, dry_run: bool) -> Result<Vec<SendCheck>> {
        match self.first {
            None => Ok(self.all),
            Some(error) if dry_run => {
                let mut details = error.body().get("details").cloned().unwrap_or_else(|| json!({}));
                if let Value::Object(details) = &mut details {
                    details.insert("checks".to_owned(), json!(self.all));
                }
                Err(error.with("details", details))
            }
            Some(error) => Err(error),
        }
    }
}

/// Makes sure that a contact can be written to.
pub(super) fn expect_not_blocked(contact: &ContactCard) -> Result<()> {
    match contact.is_blocked {
        true => Err(Error::new(Code::ContactBlocked, "The contact is blocked.")),
        false => Ok(()),
    }
}

/// Makes sure that no person took the conversation over since an agent began to answer it in an epoch of the contact, whom
/// another may have been merged into since. Other contacts are written to whoever answers them.
pub(super) fn expect_not_handed_over(
    contact: &ContactCard,
    begun_as: Result<ContactCard>,
    epoch: i64,
) -> Result<()> {
    let is_other = begun_as.map_or(true, |begun_as| begun_as.id != contact.id);
    if is_other || (contact.autopilot && contact.epoch == epoch) {
        return Ok(());
    }
    Err(Answering::refusal())
}

/// Makes sure that a contact has an address on the network.
pub(super) fn expect_reachable(contact: &ContactCard) -> Result<Recipient> {
    let message = "The contact has neither a telephone number nor an id of the network.";
    reach(contact).ok_or_else(|| Error::new(Code::NoChannel, message))
}

/// Makes sure that a contact takes templates of a category.
pub(super) fn expect_opted_in(contact: &ContactCard, category: TemplateCategory) -> Result<()> {
    if contact.is_opted_out && category == TemplateCategory::Marketing {
        return Err(Error::new(Code::RecipientOptedOut, "The contact wants no marketing messages."));
    }
    Ok(())
}

/// Makes sure that a free message is allowed, and says until when.
///
/// # Errors
/// `window_closed` with the templates that would work now.
pub(super) fn expect_window(
    read: &mut Read,
    channel: &ChannelRow,
    conversation: Option<&Conversation>,
) -> Result<Timestamp> {
    let expires_at = conversation.and_then(Conversation::window_expires_at);
    if let Some(end) = expires_at.filter(|end| read.now() < *end) {
        return Ok(end);
    }
    let templates = templates::approved(read, channel.id)?;
    let shown = |(namespace, name, language): (String, String, String)| json!({ "namespace": namespace, "name": name, "language": language });
    let templates: Vec<Value> = templates.into_iter().map(shown).collect();
    let details = json!({ "expired_at": expires_at, "approved_templates": templates });
    let message = "More than 24 hours have passed since the contact's last message. Send a template.";
    Err(Error::new(Code::WindowClosed, message).with("details", details))
}
