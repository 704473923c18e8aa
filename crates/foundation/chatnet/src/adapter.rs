//! The trait of a chat network.

use crate::{
    MediaKind, OutboundMessage, Quality, SendOutcome, TemplateCategory, TemplateStatus, TemplateUpdate,
    Update,
};
use bytes::Bytes;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// The most bytes of a sticker.
const MOST_STICKER_BYTES: u64 = 500 * 1024;

/// A future that an adapter gives.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A chat network. One value serves all channels of the network; the account says for which one it works.
pub trait ChannelAdapter: Send + Sync {
    /// What the network allows.
    fn capabilities(&self) -> &Capabilities;

    /// Whether a callback is from the network: the signature header is that of the raw body under one of the secrets.
    /// Two secrets are valid during a rotation. Takes the same time wherever it differs.
    fn verify_webhook(&self, secrets: &[&str], signature: Option<&str>, raw: &[u8]) -> bool;

    /// What a callback says. Each part is a unit of its own: what is not understood is [`Update::Unknown`] and hinders no
    /// other part. Parts of other numbers than the account's are left out.
    fn parse_webhook(&self, account: &Account, raw: &[u8]) -> Vec<Update>;

    /// Sends a message. `reference` is echoed in its statuses where the network supports that.
    fn send<'a>(
        &'a self,
        account: &'a Account,
        message: &'a OutboundMessage,
        reference: &'a str,
    ) -> BoxFuture<'a, SendOutcome>;

    /// Uploads a file, which messages then name by the id that is returned.
    fn upload_media<'a>(
        &'a self,
        account: &'a Account,
        file_name: &'a str,
        mime_type: &'a str,
        content: Bytes,
    ) -> BoxFuture<'a, Result<String, NetworkError>>;

    /// Reads a file that a contact sent. Fails with `is_gone` where the network keeps it no longer.
    fn fetch_media<'a>(
        &'a self,
        account: &'a Account,
        media_id: &'a str,
        most_bytes: usize,
    ) -> BoxFuture<'a, Result<Media, NetworkError>>;

    /// Marks a message of a contact as read; with `typing` the contact also sees that an answer is being written.
    fn mark_read<'a>(
        &'a self,
        account: &'a Account,
        provider_message_id: &'a str,
        typing: bool,
    ) -> BoxFuture<'a, Result<(), NetworkError>>;

    /// All templates of the account.
    fn list_templates<'a>(
        &'a self,
        account: &'a Account,
    ) -> BoxFuture<'a, Result<Vec<TemplateUpdate>, NetworkError>>;

    /// Submits a template for review.
    fn create_template<'a>(
        &'a self,
        account: &'a Account,
        template: &'a NewNetworkTemplate,
    ) -> BoxFuture<'a, Result<TemplateUpdate, NetworkError>>;

    /// Deletes a template in one language. It is no error where the network has none.
    fn delete_template<'a>(
        &'a self,
        account: &'a Account,
        name: &'a str,
        provider_id: &'a str,
    ) -> BoxFuture<'a, Result<(), NetworkError>>;

    /// How the number is doing; also proves that the credentials work.
    fn health<'a>(&'a self, account: &'a Account) -> BoxFuture<'a, Result<NumberHealth, NetworkError>>;
}

/// The access to one number of a network.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// Where the network's API is, without a slash at the end, such as `https://graph.facebook.com/v23.0`.
    pub base_url: String,
    /// The network's id of the number that sends.
    pub number_id: String,
    /// The network's id of the business, which owns templates.
    pub business_id: String,
    /// The token that requests carry.
    pub access_token: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("number_id", &self.number_id).finish_non_exhaustive()
    }
}

/// What a network allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Messages per second of one number.
    pub messages_per_second: u32,
    /// Time between two messages to the same recipient, on average.
    pub pair_interval: Duration,
    /// How long free messages may follow a contact's last message.
    pub window: Duration,
    /// The most characters of a text.
    pub max_text_chars: usize,
    /// The most bytes of a picture.
    pub max_image_bytes: u64,
    /// The most bytes of a sound or video.
    pub max_av_bytes: u64,
    /// The most bytes of a document.
    pub max_document_bytes: u64,
    /// How long the network keeps a file that was uploaded.
    pub uploads_kept: Duration,
    /// Whether statuses echo the reference of a send.
    pub echoes_reference: bool,
}

impl Capabilities {
    /// Makes sure that the network takes a file of a MIME type as `kind`.
    ///
    /// # Errors
    /// What is wrong with the file, in words that follow its name.
    pub fn check_file(&self, kind: MediaKind, mime_type: &str, bytes: u64) -> Result<(), String> {
        let of_type = |prefix: &str| mime_type.starts_with(prefix);
        let (fits, most) = match kind {
            MediaKind::Image => (of_type("image/jpeg") || of_type("image/png"), self.max_image_bytes),
            MediaKind::Sticker => (of_type("image/webp"), self.max_image_bytes.min(MOST_STICKER_BYTES)),
            MediaKind::Audio => (of_type("audio/"), self.max_av_bytes),
            MediaKind::Video => (of_type("video/"), self.max_av_bytes),
            MediaKind::Document => (true, self.max_document_bytes),
        };
        if !fits {
            return Err(format!(
                "is a file of the type {mime_type}, which cannot be sent as {}",
                kind.as_str()
            ));
        }
        if bytes > most {
            return Err(format!("is a file of more than {most} bytes"));
        }
        Ok(())
    }
}

impl MediaKind {
    /// As what a file of a MIME type is sent if nothing else is asked for.
    #[must_use]
    pub fn of_type(mime_type: &str) -> Self {
        match mime_type.split_once('/') {
            Some(("image", "jpeg" | "png")) => Self::Image,
            Some(("image", "webp")) => Self::Sticker,
            Some(("audio", _)) => Self::Audio,
            Some(("video", "mp4" | "3gpp")) => Self::Video,
            _ => Self::Document,
        }
    }
}

/// A file from the network.
#[derive(Debug, Clone)]
pub struct Media {
    /// As the network states it, which need not be true.
    pub mime_type: Option<String>,
    /// The file.
    pub content: Bytes,
}

/// How a number is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberHealth {
    /// The telephone number as people write it.
    pub display_number: Option<String>,
    /// The business's name as contacts see it.
    pub verified_name: Option<String>,
    /// How the network rates the number.
    pub quality: Quality,
    /// How many contacts may be written to first within 24 hours. `None`: no limit, or none known.
    pub messaging_limit: Option<i64>,
    /// Messages per second that the network accepts. `None`: not stated.
    pub messages_per_second: Option<u32>,
}

/// A template to submit.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNetworkTemplate {
    /// Lower case letters, digits and underscores.
    pub name: String,
    /// Such as `pt_BR`.
    pub language: String,
    /// What it is for.
    pub category: TemplateCategory,
    /// The network's list of components: header, body, footer, buttons, with examples.
    pub components: Value,
}

/// A request to the network that failed, other than a send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkError {
    /// For people, in English. Contains no credentials.
    pub message: String,
    /// The network's number for the error.
    pub provider_code: Option<i64>,
    /// Whether trying again may help.
    pub is_retryable: bool,
    /// Whether what was asked for does not exist (any longer).
    pub is_gone: bool,
    /// Whether the network no longer accepts the credentials.
    pub is_unauthorized: bool,
    /// How long the network asks to wait.
    pub retry_after: Option<Duration>,
}

impl TemplateStatus {
    /// Whether it can be sent.
    #[must_use]
    pub fn is_sendable(self) -> bool {
        self == Self::Approved
    }
}
