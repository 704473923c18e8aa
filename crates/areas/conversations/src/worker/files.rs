//! Reading the files that contacts send, while the network keeps them, and writing down what is said in voice notes.

use super::Worker;
use crate::messages::{AttachmentStatus, MessageRow, TranscriptStatus, terms};
use crate::schema::{conversations, held_message_events as held, message_attachments as table, messages};
use ::files::{FileRow, NewFile};
use bytes::Bytes;
use channels::work::Work;
use chatnet::{Account, MediaKind};
use diesel::prelude::*;
use futures::StreamExt;
use model::{
    Actor, ActorType, AttachmentId, ContactId, Error, FileId, JsonText, MessageId, Result, Timestamp,
    WorkspaceId,
};
use std::convert::Infallible;
use store::{OneRow as _, Tx};

/// When a file is tried again, in seconds after each failure; it is given up after the last.
const WAITS: [i64; 8] = [1, 5, 30, 120, 600, 3_600, 21_600, 43_200];
/// The most that are read at once.
const AT_ONCE: usize = 8;
/// The largest file.
const MAX_BYTES: usize = 100 << 20;

/// A file to read or to transcribe.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = table)]
struct Due {
    id: AttachmentId,
    message_id: MessageId,
    contact_id: ContactId,
    media_type: MediaKind,
    file_id: Option<FileId>,
    provider_media_id: Option<String>,
    mime_type: Option<String>,
    name: Option<String>,
    transcript_status: TranscriptStatus,
    attempts: i64,
}

/// What an attempt brought.
struct Read {
    file: Option<FileId>,
    transcript: Option<String>,
    /// Why something is still missing, and whether another attempt may help.
    failure: Option<(String, bool)>,
}

impl Worker {
    /// Reads the next files. Says whether there were any.
    pub(super) async fn files(&self) -> Result<bool> {
        let channel = self.channel.id;
        let due: Vec<Due> = self
            .parts
            .db
            .read(move |read| {
                let now = read.now();
                // What is heard is waited for, so it comes first.
                Ok(table::table
                    .inner_join(messages::table.on(messages::id.eq(table::message_id)))
                    .filter(messages::channel_id.eq(channel))
                    .filter(table::next_attempt_at.le(now))
                    .order((table::is_voice.desc(), table::next_attempt_at, table::id))
                    .limit(i64::try_from(AT_ONCE).unwrap_or(i64::MAX))
                    .select(Due::as_select())
                    .load(read.connection())?)
            })
            .await?;
        if due.is_empty() {
            return Ok(false);
        }
        let account = self.channel.account(&self.parts.seal)?;
        let reading = futures::stream::iter(due).map(|due| async {
            let read = self.read(&account, &due).await;
            (due, read)
        });
        let mut reading = reading.buffer_unordered(AT_ONCE);
        while let Some((due, read)) = reading.next().await {
            let workspace = self.channel.workspace_id;
            self.parts.db.write(move |tx| note(tx, workspace, &due, &read)).await?;
            self.signals.notify(Work::Events);
        }
        Ok(true)
    }

    async fn read(&self, account: &Account, due: &Due) -> Read {
        let (file, content) = match self.content(account, due).await {
            Ok(found) => found,
            Err(failure) => return Read { file: None, transcript: None, failure: Some(failure) },
        };
        let (Some(transcriber), TranscriptStatus::Pending) = (&self.parts.transcriber, due.transcript_status)
        else {
            return Read { file: Some(file.id), transcript: None, failure: None };
        };
        let mime_type = due.mime_type.clone().unwrap_or_else(|| file.mime_type.clone());
        match transcriber.transcribe(content, mime_type).await {
            Ok(words) => Read { file: Some(file.id), transcript: Some(words), failure: None },
            Err(error) => {
                let failure = Some((error.to_string(), true));
                Read { file: Some(file.id), transcript: None, failure }
            }
        }
    }

    /// The file, which is stored if it is not yet, and its bytes.
    async fn content(&self, account: &Account, due: &Due) -> Result<(FileRow, Bytes), (String, bool)> {
        let failed = |error: Error| (error.to_string(), true);
        if let Some(id) = due.file_id {
            let workspace = self.channel.workspace_id;
            let found = self.parts.db.read(move |read| ::files::live(read, workspace, id)).await;
            let file = found.map_err(|error| (error.to_string(), false))?;
            let content = self.content_of(&file).await.map_err(failed)?;
            return Ok((file, content));
        }
        let media_id = due.provider_media_id.as_deref().unwrap_or_default();
        let fetched = self.parts.network.0.fetch_media(account, media_id, MAX_BYTES).await;
        let media = fetched.map_err(|error| (error.message, error.is_retryable && !error.is_gone))?;
        let actor = Actor { kind: ActorType::Contact, id: due.contact_id.to_string(), run_id: None };
        let new = NewFile {
            name: due.name.clone().unwrap_or_else(|| format!("{}-{}", due.media_type.as_str(), due.id)),
            most_bytes: MAX_BYTES as u64,
            workspace: self.channel.workspace_id,
            uploaded_by: JsonText::of(&actor),
        };
        let content = media.content;
        let bytes = futures::stream::iter([Ok::<_, Infallible>(content.clone())]);
        let bytes = bytes.map(|chunk| chunk.map_err(Error::internal));
        let stored = self.parts.files.store(&self.parts.db, new, bytes).await;
        Ok((stored.map_err(failed)?, content))
    }
}

/// Writes down what was read, and when the rest is tried again.
fn note(tx: &mut Tx, workspace: WorkspaceId, due: &Due, read: &Read) -> Result<()> {
    let now = tx.now();
    let attempts = due.attempts + 1;
    let place = usize::try_from(due.attempts).unwrap_or(usize::MAX);
    let wait = WAITS.get(place).copied();
    let is_over = match &read.failure {
        None => true,
        Some((_, may_help)) => !may_help || wait.is_none(),
    };
    let file = read.file.or(due.file_id);
    let status = match (file, is_over) {
        (Some(_), _) => AttachmentStatus::Ready,
        (None, true) => AttachmentStatus::Failed,
        (None, false) => AttachmentStatus::Pending,
    };
    let transcript_status = match (due.transcript_status, &read.transcript) {
        (_, Some(_)) => TranscriptStatus::Ready,
        (TranscriptStatus::Pending, None) if is_over => TranscriptStatus::Failed,
        (unchanged, None) => unchanged,
    };
    let next: Option<Timestamp> = wait.filter(|_| !is_over).map(|seconds| now.plus_seconds(seconds));
    let noted = diesel::update(table::table.find(due.id))
        .set((
            table::status.eq(status),
            table::file_id.eq(file),
            table::transcript.eq(&read.transcript),
            table::transcript_status.eq(transcript_status),
            table::attempts.eq(attempts),
            table::next_attempt_at.eq(next),
            table::last_error.eq(read.failure.as_ref().map(|(reason, _)| reason)),
        ))
        .execute(tx.connection())?;
    if noted == 0 {
        // The contact has taken the message back meanwhile.
        return match read.file.filter(|_| due.file_id.is_none()) {
            Some(file) => ::files::trash(tx, workspace, file).map(drop),
            None => Ok(()),
        };
    }
    if let Some(transcript) = &read.transcript {
        let row: MessageRow = messages::table
            .find(due.message_id)
            .select(MessageRow::as_select())
            .get_result(tx.connection())?;
        terms::reindex(tx, &row, Some(transcript))?;
    }
    if is_over {
        release(tx, due.message_id)?;
    }
    Ok(())
}

/// Lets what waited for a file go on: the event of its message, and the agent's answer.
fn release(tx: &mut Tx, message: MessageId) -> Result<()> {
    let now = tx.now();
    diesel::update(held::table.find(message).filter(held::due_at.gt(now)))
        .set(held::due_at.eq(now))
        .execute(tx.connection())?;
    let conversation: model::ConversationId = messages::table
        .find(message)
        .select(messages::conversation_id)
        .get_result(tx.connection())
        .or_not_found("message")?;
    let waiting: i64 = table::table
        .inner_join(messages::table.on(messages::id.eq(table::message_id)))
        .filter(messages::conversation_id.eq(conversation))
        .filter(
            table::status
                .eq(AttachmentStatus::Pending)
                .or(table::transcript_status.eq(TranscriptStatus::Pending)),
        )
        .count()
        .get_result(tx.connection())?;
    if waiting == 0 {
        diesel::update(conversations::table.find(conversation).filter(conversations::reply_due_at.gt(now)))
            .set(conversations::reply_due_at.eq(now))
            .execute(tx.connection())?;
    }
    Ok(())
}
