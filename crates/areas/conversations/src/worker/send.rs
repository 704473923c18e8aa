//! One message for the network.

use super::Worker;
use crate::messages::{Detail, MessageRow, MessageType};
use ::files::FileRow;
use bytes::Bytes;
use channels::work::MediaId;
use chatnet::{
    Account, MediaKind, MediaSource, NetworkError, OutboundContent, OutboundMessage, Refusal, RefusalCode,
    SendOutcome, TemplateComponents,
};
use model::{MessageId, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// A message that this worker alone sends.
pub(super) struct Claimed {
    pub(super) id: MessageId,
    pub(super) message: OutboundMessage,
    /// The file that is uploaded first.
    pub(super) file: Option<(MediaKind, FileRow)>,
}

/// For how long at its end an upload is not used, so that it is there when the message is delivered.
const UNUSED: Duration = Duration::from_secs(24 * 3_600);

impl Worker {
    /// Hands a message to the network, its file first.
    pub(super) async fn hand_over(
        &self,
        account: Arc<Account>,
        claimed: Claimed,
    ) -> (MessageId, SendOutcome) {
        let Claimed { id, mut message, file } = claimed;
        let reference = id.to_string();
        let Some((kind, file)) = file else {
            return (id, self.parts.network.0.send(&account, &message, &reference).await);
        };
        let mut is_repeated = false;
        loop {
            let media = match self.media_id(&account, &file).await {
                Ok(media) => media,
                Err(outcome) => return (id, outcome),
            };
            set_media(&mut message.content, kind, &media.id, &file);
            let outcome = self.parts.network.0.send(&account, &message, &reference).await;
            if is_repeated || !media.is_old || !may_lack_media(&outcome) {
                return (id, outcome);
            }
            is_repeated = true;
            self.parts.uploads.forget((self.channel.id, file.id), &media.id);
        }
    }

    /// The network's id of a file, which is uploaded unless the network has it.
    async fn media_id(&self, account: &Account, file: &FileRow) -> Result<MediaId, SendOutcome> {
        let kept = self.parts.network.0.capabilities().uploads_kept.saturating_sub(UNUSED);
        let now = self.parts.db.now();
        let until = now.plus_seconds(i64::try_from(kept.as_secs()).unwrap_or_default());
        self.parts.uploads.media_id((self.channel.id, file.id), now, until, self.upload(account, file)).await
    }

    async fn upload(&self, account: &Account, file: &FileRow) -> Result<String, SendOutcome> {
        let content = self.content_of(file).await.map_err(|error| {
            tracing::error!(file = %file.id, %error, "a file that is to be sent could not be read");
            refused(RefusalCode::MediaInvalid, "The file could not be read.", true)
        })?;
        let uploaded = self.parts.network.0.upload_media(account, &file.name, &file.mime_type, content).await;
        uploaded.map_err(|error| upload_refused(&error))
    }

    pub(super) async fn content_of(&self, file: &FileRow) -> Result<Bytes> {
        let mut reader = self.parts.files.reader(file).await?;
        let mut content = Vec::with_capacity(usize::try_from(file.size).unwrap_or_default());
        reader.read_to_end(&mut content).await.map_err(model::Error::internal)?;
        Ok(content.into())
    }
}

/// Whether a message may have been refused because the network has lost its file.
fn may_lack_media(outcome: &SendOutcome) -> bool {
    let codes = [RefusalCode::MediaInvalid, RefusalCode::InvalidMessage];
    matches!(outcome, SendOutcome::Refused(refusal) if codes.contains(&refusal.code))
}

fn refused(code: RefusalCode, message: &str, is_retryable: bool) -> SendOutcome {
    SendOutcome::Refused(Refusal {
        code,
        provider_code: None,
        message: message.to_owned(),
        is_retryable,
        retry_after: None,
    })
}

fn upload_refused(error: &NetworkError) -> SendOutcome {
    let code = match (error.is_unauthorized, error.is_retryable) {
        (true, _) => RefusalCode::CredentialsInvalid,
        (_, true) => RefusalCode::NetworkError,
        _ => RefusalCode::MediaInvalid,
    };
    SendOutcome::Refused(Refusal {
        code,
        provider_code: error.provider_code,
        message: error.message.clone(),
        is_retryable: error.is_retryable,
        retry_after: error.retry_after,
    })
}

/// Names the uploaded file in what is sent.
fn set_media(content: &mut OutboundContent, kind: MediaKind, media: &str, file: &FileRow) {
    let source = MediaSource::Id(media.to_owned());
    let name = (kind == MediaKind::Document).then(|| file.name.clone());
    match content {
        OutboundContent::Media { source: of, file_name, .. } => {
            *of = source;
            *file_name = name;
        }
        OutboundContent::Template(template) => template.header_media = Some((kind, source, name)),
        _ => {}
    }
}

/// What a message says, for the network. `None` where what is stored cannot be sent.
pub(super) fn content(
    row: &MessageRow,
    detail: &Detail,
    components: Option<&TemplateComponents>,
    provider_id: &impl Fn(&MessageId) -> Option<String>,
) -> Option<OutboundContent> {
    let media = |kind| OutboundContent::Media {
        kind,
        source: MediaSource::Id(String::new()),
        caption: Some(row.content.clone()).filter(|caption| !caption.is_empty()),
        file_name: None,
    };
    Some(match row.message_type {
        MessageType::Text => {
            OutboundContent::Text { body: row.content.clone(), preview_url: detail.preview_url }
        }
        MessageType::Image => media(MediaKind::Image),
        MessageType::Audio => media(MediaKind::Audio),
        MessageType::Video => media(MediaKind::Video),
        MessageType::Document => media(MediaKind::Document),
        MessageType::Sticker => media(MediaKind::Sticker),
        MessageType::Interactive => OutboundContent::Interactive(detail.interactive.clone()?),
        MessageType::Reaction => OutboundContent::Reaction {
            message: provider_id(row.reply_to_id.as_ref()?)?,
            emoji: detail.emoji.clone(),
        },
        MessageType::Template => OutboundContent::Template(components?.message(detail.template.as_ref()?)),
        _ => return None,
    })
}
