//! Customers and their actions.

use super::faults::mix;
use model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};

/// The maximum number of lines kept of a conversation.
const LONGEST_CHAT: usize = 300;

/// A customer to add.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// The number in digits, with or without `+`. Without a number the customer has only a user id.
    #[serde(default)]
    pub phone: Option<String>,
    /// The name that the customer chose.
    #[serde(default)]
    pub name: Option<String>,
    /// The user name, without `@`.
    #[serde(default)]
    pub username: Option<String>,
    /// The automatic behaviour.
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
    /// The name that the customer chose.
    pub name: Option<String>,
    /// The user name, without `@`.
    pub username: Option<String>,
    /// Whether the customer can be reached.
    pub on_network: bool,
    /// Whether the customer blocked the business. Messages then stay `sent`.
    pub blocks_business: bool,
    /// Whether the customer opted out of marketing messages by the network's setting.
    pub refuses_marketing: bool,
    /// The automatic behaviour.
    pub behaviour: Behaviour,
}

/// The automatic behaviour of a customer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// The delay between the delivery of a message and its read status. Without it, messages stay `delivered` until
    /// they are read on the page or by [`Action::Read`].
    pub read_after_ms: Option<u64>,
    /// The actions after each message of the business, one per message.
    pub script: Vec<Scripted>,
    /// Whether the script restarts after its end.
    pub repeats: bool,
}

/// A step of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scripted {
    /// The delay after the message, by the simulator's clock.
    #[serde(default)]
    pub after_ms: u64,
    /// The action.
    #[serde(flatten)]
    pub action: Action,
}

/// An action of a customer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Action {
    /// Sends a text.
    Text {
        /// The text.
        body: String,
        /// The id of the message that this is a reply to.
        #[serde(default)]
        reply_to: Option<String>,
    },
    /// Presses a button or chooses a row of the last message with buttons or rows.
    Press {
        /// The title or id. The first one if not given.
        #[serde(default)]
        button: Option<String>,
    },
    /// Sends a voice note.
    VoiceNote {
        /// The words that a transcription returns.
        words: String,
    },
    /// Sends an image of one pixel.
    Image {
        /// The caption.
        #[serde(default)]
        caption: Option<String>,
    },
    /// Sends a small text file.
    Document {
        /// The file name.
        file_name: String,
        /// The content.
        content: String,
    },
    /// Sends a location in the centre of Rio de Janeiro.
    Location,
    /// Reacts to the last message of the business, or removes the reaction.
    React {
        /// The emoji. Without it the reaction is removed.
        #[serde(default)]
        emoji: Option<String>,
    },
    /// Edits the customer's last text.
    Edit {
        /// The new text.
        body: String,
    },
    /// Deletes the customer's last message.
    Revoke,
    /// Sends a message of a type that the network's API does not support.
    Unsupported,
    /// Reads all delivered messages.
    Read,
    /// Opts out of marketing messages by the network's setting.
    OptOut,
    /// Opts in to marketing messages.
    OptIn,
    /// Blocks the business.
    Block,
    /// Unblocks the business.
    Unblock,
    /// Leaves the network, so that messages fail.
    Leave,
    /// Changes the number, which also changes the user id.
    ChangeNumber {
        /// The new number in digits, with or without `+`.
        phone: String,
    },
}

/// A line of a conversation on the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChatLine {
    /// Whether the business sent it.
    pub is_ours: bool,
    /// The id of the message.
    pub id: String,
    /// The network's name of its type.
    pub kind: String,
    /// The text.
    pub text: String,
    /// The header of a template or an interactive message.
    pub header: Option<String>,
    /// The footer of a template or an interactive message.
    pub footer: Option<String>,
    /// The titles of buttons or rows.
    pub buttons: Vec<String>,
    /// The time, in RFC 3339.
    pub at: Timestamp,
    /// The status of a message of the business.
    pub status: Option<String>,
}

/// A customer with the network's state.
pub(crate) struct Person {
    pub(crate) user: User,
    /// When the customer last wrote, by number of the business.
    pub(crate) wrote_at: HashMap<String, Timestamp>,
    pub(crate) chat: VecDeque<ChatLine>,
    /// The next step of the script.
    pub(crate) step: usize,
    /// The buttons or rows of the last message with some.
    pub(crate) choices: Vec<Choice>,
    pub(crate) last_text: Option<String>,
    pub(crate) last_message: Option<String>,
    pub(crate) last_of_business: Option<String>,
    /// The delivered messages that are not read, oldest first.
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

    /// Returns the next step of the script, after a message of the business.
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
    /// Returns the customer in the format of a callback's `contacts`.
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

/// Returns the digits of a number.
pub(crate) fn digits(phone: &str) -> Option<String> {
    let digits = phone.trim().trim_start_matches('+');
    let is_number = (5..=20).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.to_owned())
}

/// Returns the user id of a number. It is always the same for a seed.
pub(crate) fn user_id(seed: u64, of: &str) -> String {
    let hash = of.bytes().fold(mix(seed ^ 0x5eed), |hash, byte| mix(hash ^ u64::from(byte)));
    format!("US.{hash:020}")
}
