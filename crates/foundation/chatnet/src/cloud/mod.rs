//! The adapter of the network's cloud API. Only this module contains the network's own names.

mod calls;
mod codes;
mod compose;
mod limits;
mod parse;
mod signature;

pub use self::signature::{SIGNATURE_HEADER, sign};

use crate::{
    Account, BoxFuture, Capabilities, ChannelAdapter, Media, NetworkError, NewNetworkTemplate, NumberHealth,
    OutboundMessage, SendOutcome, TemplateUpdate, Update,
};
use bytes::Bytes;
use egress::Connector;
use std::time::Duration;

/// Timeout of a request. The outcome of a send is then unknown.
const PATIENCE: Duration = Duration::from_secs(30);

/// Timeout of an upload or a download.
const FILE_PATIENCE: Duration = Duration::from_mins(5);

/// The adapter of the chat network.
#[derive(Debug, Clone)]
pub struct Chatnet {
    connector: Connector,
    patience: Duration,
    file_patience: Duration,
}

impl Chatnet {
    /// Creates an adapter that uses `connector`, whose policy must allow the account's base URL.
    #[must_use]
    pub fn new(connector: Connector) -> Self {
        Self { connector, patience: PATIENCE, file_patience: FILE_PATIENCE }
    }

    /// Sets the timeout of all requests, including files.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, file_patience: patience, ..self }
    }
}

impl ChannelAdapter for Chatnet {
    fn capabilities(&self) -> &Capabilities {
        &limits::CAPABILITIES
    }

    fn verify_webhook(&self, secrets: &[&str], signature: Option<&str>, raw: &[u8]) -> bool {
        signature::is_signed(secrets, signature, raw)
    }

    fn parse_webhook(&self, account: &Account, raw: &[u8]) -> Vec<Update> {
        parse::parse(account, raw)
    }

    fn send<'a>(
        &'a self,
        account: &'a Account,
        message: &'a OutboundMessage,
        reference: &'a str,
    ) -> BoxFuture<'a, SendOutcome> {
        Box::pin(self.send_message(account, message, reference))
    }

    fn upload_media<'a>(
        &'a self,
        account: &'a Account,
        file_name: &'a str,
        mime_type: &'a str,
        content: Bytes,
    ) -> BoxFuture<'a, Result<String, NetworkError>> {
        Box::pin(self.upload(account, file_name, mime_type, content))
    }

    fn fetch_media<'a>(
        &'a self,
        account: &'a Account,
        media_id: &'a str,
        most_bytes: usize,
    ) -> BoxFuture<'a, Result<Media, NetworkError>> {
        Box::pin(self.fetch(account, media_id, most_bytes))
    }

    fn mark_read<'a>(
        &'a self,
        account: &'a Account,
        provider_message_id: &'a str,
        typing: bool,
    ) -> BoxFuture<'a, Result<(), NetworkError>> {
        Box::pin(self.read_message(account, provider_message_id, typing))
    }

    fn list_templates<'a>(
        &'a self,
        account: &'a Account,
    ) -> BoxFuture<'a, Result<Vec<TemplateUpdate>, NetworkError>> {
        Box::pin(self.all_templates(account))
    }

    fn create_template<'a>(
        &'a self,
        account: &'a Account,
        template: &'a NewNetworkTemplate,
    ) -> BoxFuture<'a, Result<TemplateUpdate, NetworkError>> {
        Box::pin(self.submit_template(account, template))
    }

    fn delete_template<'a>(
        &'a self,
        account: &'a Account,
        name: &'a str,
        provider_id: &'a str,
    ) -> BoxFuture<'a, Result<(), NetworkError>> {
        Box::pin(self.remove_template(account, name, provider_id))
    }

    fn health<'a>(&'a self, account: &'a Account) -> BoxFuture<'a, Result<NumberHealth, NetworkError>> {
        Box::pin(self.number_health(account))
    }
}
