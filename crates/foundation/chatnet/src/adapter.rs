//! The trait of a chat network.

use crate::{
    MediaKind, OutboundMessage, Quality, SendOutcome, TemplateCategory, TemplateStatus, TemplateUpdate,
    Update,
};
use bytes::Bytes;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// The maximum size of a sticker.
const MOST_STICKER_BYTES: u64 = 500 * 1024;

/// A boxed future returned by an adapter.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A chat network. One value serves all channels of the network; each call names the account.
pub trait ChannelAdapter: Send + Sync {
    /// Returns the network's limits.
    fn capabilities(&self) -> &Capabilities;

    /// Verifies that a callback comes from the network: the signature must be that of the raw body under one of the
    /// secrets. Two secrets are valid during a rotation. Runs in constant time.
    fn verify_webhook(&self, secrets: &[&str], signature: Option<&str>, raw: &[u8]) -> bool;

    /// Parses a callback into updates. Each part is parsed separately: a part that is not understood becomes
    /// [`Update::Unknown`] and does not affect the others. Parts for numbers other than the account's are skipped.
    fn parse_webhook(&self, account: &Account, raw: &[u8]) -> Vec<Update>;

    /// Sends a message. Its status callbacks repeat `reference` if the network supports that.
    fn send<'a>(
        &'a self,
        account: &'a Account,
        message: &'a OutboundMessage,
        reference: &'a str,
    ) -> BoxFuture<'a, SendOutcome>;

    /// Uploads a file and returns the id by which messages refer to it.
    fn upload_media<'a>(
        &'a self,
        account: &'a Account,
        file_name: &'a str,
        mime_type: &'a str,
        content: Bytes,
    ) -> BoxFuture<'a, Result<String, NetworkError>>;

    /// Downloads a file that a contact sent. Fails with `is_gone` if the network has deleted it.
    fn fetch_media<'a>(
        &'a self,
        account: &'a Account,
        media_id: &'a str,
        most_bytes: usize,
    ) -> BoxFuture<'a, Result<Media, NetworkError>>;

    /// Marks a message of a contact as read. With `typing`, also shows the contact a typing indicator.
    fn mark_read<'a>(
        &'a self,
        account: &'a Account,
        provider_message_id: &'a str,
        typing: bool,
    ) -> BoxFuture<'a, Result<(), NetworkError>>;

    /// Returns all templates of the account.
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

    /// Deletes a template in one language. Succeeds if the template does not exist.
    fn delete_template<'a>(
        &'a self,
        account: &'a Account,
        name: &'a str,
        provider_id: &'a str,
    ) -> BoxFuture<'a, Result<(), NetworkError>>;

    /// Returns the state of the number. Succeeds only if the credentials work.
    fn health<'a>(&'a self, account: &'a Account) -> BoxFuture<'a, Result<NumberHealth, NetworkError>>;
}

/// The access to one number of a network.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The base URL of the network's API, without a trailing slash, such as `https://graph.facebook.com/v23.0`.
    pub base_url: String,
    /// The network's id of the sending number.
    pub number_id: String,
    /// The network's id of the business, which owns templates.
    pub business_id: String,
    /// The bearer token of requests.
    pub access_token: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("number_id", &self.number_id).finish_non_exhaustive()
    }
}

/// The limits of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Messages per second of one number.
    pub messages_per_second: u32,
    /// Average interval between two messages to the same recipient.
    pub pair_interval: Duration,
    /// How long after a contact's last message free-form messages are allowed.
    pub window: Duration,
    /// The maximum length of a text, in characters.
    pub max_text_chars: usize,
    /// The maximum size of an image, in bytes.
    pub max_image_bytes: u64,
    /// The maximum size of an audio or video file, in bytes.
    pub max_av_bytes: u64,
    /// The maximum size of a document, in bytes.
    pub max_document_bytes: u64,
    /// How long the network keeps an uploaded file.
    pub uploads_kept: Duration,
    /// Whether status callbacks repeat the reference of a send.
    pub echoes_reference: bool,
}

impl Capabilities {
    /// Checks that the network accepts a file with this MIME type and size as `kind`.
    ///
    /// # Errors
    /// The problem with the file, as the rest of a sentence that begins with its name.
    pub fn check_file(&self, kind: MediaKind, mime_type: &str, bytes: u64) -> Result<(), String> {
        let of_type = |prefix: &str| mime_type.starts_with(prefix);
        let (fits, most) = match kind {
            MediaKind::Image => (of_type("image/jpeg") || of_type("image/png"), self.max_image_bytes),
            MediaKind::Sticker => (of_type("image/webp"), self.max_image_bytes.min(MOST_STICKER_BYTES)),
            MediaKind::Audio => (of_type("audio/"), self.max_av_bytes),
            MediaKind::Video => (of_type("video/"), self.max_av_bytes),
            // The network measures an upload by its type, because it does not know yet what it will be sent as.
            MediaKind::Document if of_type("image/") => (true, self.max_image_bytes),
            MediaKind::Document if of_type("audio/") || of_type("video/") => (true, self.max_av_bytes),
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
    /// Returns the default kind for a file of this MIME type.
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

/// A file downloaded from the network.
#[derive(Debug, Clone)]
pub struct Media {
    /// The MIME type that the network states. It can be wrong.
    pub mime_type: Option<String>,
    /// The content.
    pub content: Bytes,
}

/// The state of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberHealth {
    /// The telephone number in display format.
    pub display_number: Option<String>,
    /// The business's name as contacts see it.
    pub verified_name: Option<String>,
    /// The network's rating of the number.
    pub quality: Quality,
    /// The number of contacts that the business may write to first within 24 hours. `None` if unlimited or unknown.
    pub messaging_limit: Option<i64>,
    /// Messages per second that the network accepts. `None` if unknown.
    pub messages_per_second: Option<u32>,
}

/// A template to submit.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNetworkTemplate {
    /// The name: lower-case letters, digits and underscores.
    pub name: String,
    /// The language, such as `pt_BR`.
    pub language: String,
    /// The category.
    pub category: TemplateCategory,
    /// The components in the network's format: header, body, footer and buttons, with examples.
    pub components: Value,
}

/// The error of a request to the network, except sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkError {
    /// A message for people, in English. Contains no credentials.
    pub message: String,
    /// The network's error number.
    pub provider_code: Option<i64>,
    /// Whether a retry can succeed.
    pub is_retryable: bool,
    /// Whether the requested object does not exist (any more).
    pub is_gone: bool,
    /// Whether the network refuses the credentials.
    pub is_unauthorized: bool,
    /// The wait that the network asks for.
    pub retry_after: Option<Duration>,
}

impl TemplateStatus {
    /// Returns whether a template in this state can be sent.
    #[must_use]
    pub fn is_sendable(self) -> bool {
        self == Self::Approved
    }
}
