//! Customers, and what they do.

use super::faults::mix;
use model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};

/// Lines of a conversation that are kept for its page.
const LONGEST_CHAT: usize = 300;

/// A customer to make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// The number in digits, with or without `+`. Without it the customer is known by a user id alone.
    #[serde(default)]
    pub phone: Option<String>,
    /// As the customer calls itself.
    #[serde(default)]
    pub name: Option<String>,
    /// Without `@`.
    #[serde(default)]
    pub username: Option<String>,
    /// What it does by itself.
    #[serde(default)]
    pub behaviour: Behaviour,
}

/// A customer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct User {
    /// The network's id of the customer for this business.
    pub user_id: String,
    /// The number in digits.
    pub phone: Option<String>,
    /// As the customer calls itself.
    pub name: Option<String>,
    /// Without `@`.
    pub username: Option<String>,
    /// Whether messages reach it at all.
    pub on_network: bool,
    /// Whether it blocked the business: messages stay `sent`.
    pub blocks_business: bool,
    /// Whether it refuses marketing by the network's own switch.
    pub refuses_marketing: bool,
    /// What it does by itself.
    pub behaviour: Behaviour,
}

/// What a customer does by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// Reads each message so long after it was delivered. Without it, messages stay `delivered` until they are read on the
    /// page or by [`Action::Read`].
    pub read_after_ms: Option<u64>,
    /// What it does after each message of the business, one after the other.
    pub script: Vec<Scripted>,
    /// Begins again with the script at its end.
    pub repeats: bool,
}

/// A step of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scripted {
    /// So long after the message, by the simulator's clock.
    #[serde(default)]
    pub after_ms: u64,
    /// What it does.
    #[serde(flatten)]
    pub action: Action,
}

/// Something that a customer does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Action {
    /// Writes.
    Text {
        /// What.
        body: String,
        /// The id of the message to which it replies.
        #[serde(default)]
        reply_to: Option<String>,
    },
    /// Presses a button or chooses a row of the last message that has some.
    Press {
        /// Its title or id; the first one if not given.
        #[serde(default)]
        button: Option<String>,
    },
    /// Speaks.
    VoiceNote {
        /// What a transcription will find.
        words: String,
    },
    /// Sends a picture of one pixel.
    Image {
        /// The text below it.
        #[serde(default)]
        caption: Option<String>,
    },
    /// Sends a small text file.
    Document {
        /// Its name.
        file_name: String,
        /// What it contains.
        content: String,
    },
    /// Sends a place in the middle of Rio de Janeiro.
    Location,
    /// Reacts to the last message of the business, or takes the reaction back.
    React {
        /// The emoji; without it the reaction is taken back.
        #[serde(default)]
        emoji: Option<String>,
    },
    /// Changes its last text.
    Edit {
        /// The new text.
        body: String,
    },
    /// Deletes its last message.
    Revoke,
    /// Sends something that the network's API cannot show.
    Unsupported,
    /// Reads everything that was delivered.
    Read,
    /// Refuses marketing by the network's own switch.
    OptOut,
    /// Wants marketing again.
    OptIn,
    /// Blocks the business.
    Block,
    /// No longer blocks the business.
    Unblock,
    /// Leaves the network: messages fail.
    Leave,
    /// Moves to another number, which changes its user id too.
    ChangeNumber {
        /// In digits, with or without `+`.
        phone: String,
    },
}

/// A line of a conversation, as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChatLine {
    /// Whether the business wrote it.
    pub is_ours: bool,
    /// The id of the message.
    pub id: String,
    /// The network's word for its type.
    pub kind: String,
    /// What it says.
    pub text: String,
    /// The text above, of templates and interactive messages.
    pub header: Option<String>,
    /// The text below, of templates and interactive messages.
    pub footer: Option<String>,
    /// Titles of buttons or rows.
    pub buttons: Vec<String>,
    /// When, in RFC 3339.
    pub at: Timestamp,
    /// How far a message of the business came.
    pub status: Option<String>,
}

/// A customer with what the network knows of it.
pub(crate) struct Person {
    pub(crate) user: User,
    /// When it wrote last, by number of the business.
    pub(crate) wrote_at: HashMap<String, Timestamp>,
    pub(crate) chat: VecDeque<ChatLine>,
    /// The next step of its script.
    pub(crate) step: usize,
    /// Buttons and rows of the last message that has some.
    pub(crate) choices: Vec<Choice>,
    pub(crate) last_text: Option<String>,
    pub(crate) last_message: Option<String>,
    pub(crate) last_of_business: Option<String>,
    /// Delivered and not read, oldest first.
    pub(crate) unread: VecDeque<String>,
}

/// A button, or a row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) kind: ChoiceKind,
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChoiceKind {
    Button,
    Row,
    Template,
}

impl Person {
    pub(crate) fn new(user: User) -> Self {
        Self {
            user,
            wrote_at: HashMap::new(),
            chat: VecDeque::new(),
            step: 0,
            choices: Vec::new(),
            last_text: None,
            last_message: None,
            last_of_business: None,
            unread: VecDeque::new(),
        }
    }

    pub(crate) fn say(&mut self, line: ChatLine) {
        if self.chat.len() >= LONGEST_CHAT {
            self.chat.pop_front();
        }
        self.chat.push_back(line);
    }

    /// The next step of its script, after a message of the business.
    pub(crate) fn next_step(&mut self) -> Option<Scripted> {
        let script = &self.user.behaviour.script;
        let at = if self.user.behaviour.repeats && !script.is_empty() {
            self.step % script.len()
        } else {
            self.step
        };
        let step = script.get(at).cloned()?;
        self.step += 1;
        Some(step)
    }
}

impl User {
    /// As `contacts` of a callback have it.
    pub(crate) fn contact(&self) -> Value {
        let mut profile = serde_json::Map::new();
        if let Some(name) = &self.name {
            profile.insert("name".to_owned(), json!(name));
        }
        if let Some(username) = &self.username {
            profile.insert("username".to_owned(), json!(username));
        }
        let mut contact = json!({ "profile": profile });
        if let Value::Object(contact) = &mut contact {
            if let Some(phone) = &self.phone {
                contact.insert("wa_id".to_owned(), json!(phone));
            }
            contact.insert("user_id".to_owned(), json!(self.user_id));
        }
        contact
    }
}

/// The digits of a number.
pub(crate) fn digits(phone: &str) -> Option<String> {
    let digits = phone.trim().trim_start_matches('+');
    let is_number = (5..=20).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.to_owned())
}

/// The user id of a number, always the same under one seed.
pub(crate) fn user_id(seed: u64, of: &str) -> String {
    let hash = of.bytes().fold(mix(seed ^ 0x5eed), |hash, byte| mix(hash ^ u64::from(byte)));
    format!("US.{hash:020}")
}
