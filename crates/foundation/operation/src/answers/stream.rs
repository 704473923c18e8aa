//! Answers that are streams of events. The operation yields events, which are formatted here as server-sent events.
//! An idle stream sends keep-alive comments. A stream ends when its API key may no longer be used.

use crate::log::{LogRow, RequestLog};
use crate::raw_route::Chunks;
use crate::transport::Limits;
use crate::transport::error_reply;
use accounts::SessionTokens;
use auth::{Directory, SecretHash};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use model::{Code, Error, KeyId, RequestId, Result, Scope, SessionId, WorkspaceId};
use oauth::AccessTokens;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use telemetry::Span;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep};

/// Something that happened.
#[derive(Debug)]
pub struct StreamEvent {
    name: String,
    data: Result<String>,
    energy: i64,
}

impl StreamEvent {
    /// Creates an event with a name such as `run.created` and with JSON data.
    pub fn new(name: impl Into<String>, data: impl Into<String>) -> Self {
        Self { name: name.into(), data: Ok(data.into()), energy: 0 }
    }

    /// Creates an event that reports a failure. Its data is the body of an error response.
    pub fn failed(name: impl Into<String>, error: Error) -> Self {
        Self { name: name.into(), data: Err(error), energy: 0 }
    }

    /// Sets the Energy spent so far, for the request log.
    #[must_use]
    pub fn spent(mut self, energy: i64) -> Self {
        self.energy = energy;
        self
    }
}

/// A stream of events. It is polled only as fast as the client reads, and dropped when the client disconnects.
pub type EventStream = Pin<Box<dyn Stream<Item = StreamEvent> + Send>>;

/// The comment that an idle stream sends, so that no proxy closes the connection.
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";
/// The name of the last event of a stream that ends because its key may no longer be used.
const BROKEN_OFF: &str = "error";

/// The state of a stream while it is sent.
pub(crate) struct Sending {
    events: EventStream,
    request: RequestId,
    key: Option<KeyWatch>,
    row: LastingRow,
    keep_alive: Duration,
    check: Interval,
    number: u64,
    is_over: bool,
}

impl Sending {
    pub(crate) fn new(
        events: EventStream,
        request: RequestId,
        key: Option<KeyWatch>,
        row: LastingRow,
        limits: &Limits,
    ) -> Self {
        let mut check = interval_at(Instant::now() + limits.key_check, limits.key_check);
        // After a suspension of the machine, one check is enough.
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let keep_alive = limits.keep_alive;
        Self { events, request, key, row, keep_alive, check, number: 0, is_over: false }
    }

    /// Returns the text to send, in chunks.
    pub(crate) fn chunks(self) -> Chunks {
        Box::pin(stream::unfold(self, |mut sending| async move {
            let chunk = sending.next().await?;
            Some((Ok(chunk), sending))
        }))
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut silence = pin!(sleep(self.keep_alive));
        loop {
            tokio::select! {
                biased;
                _ = self.check.tick() => {
                    if let Some(key) = &self.key && let Err(error) = key.check().await {
                        self.is_over = true;
                        return Some(self.print(StreamEvent::failed(BROKEN_OFF, error)));
                    }
                }
                event = self.events.next() => return event.map(|event| self.print(event)),
                () = &mut silence => return Some(Bytes::from_static(KEEP_ALIVE)),
            }
        }
    }

    fn print(&mut self, event: StreamEvent) -> Bytes {
        self.number += 1;
        self.row.note(&event);
        let data = match event.data {
            Ok(data) => data,
            Err(error) => {
                if let Some(cause) = error.cause() {
                    tracing::error!(request_id = %self.request, ?cause, "a stream failed");
                }
                error_reply(&error, &self.request).1
            }
        };
        Bytes::from(printed(self.number, &event.name, &data))
    }
}

/// Formats a server-sent event as the HTML standard defines it.
fn printed(number: u64, name: &str, data: &str) -> String {
    let mut text = format!("id: {number}\nevent: {name}\n");
    // Stored JSON may have line breaks between its values. Each line is a `data` field, and clients join the lines.
    for line in data.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

/// The API key that a stream was opened with, and the workspace and scope that it is used for.
pub(crate) struct KeyWatch {
    pub(crate) db: Db,
    pub(crate) directory: Arc<Directory>,
    /// The session of the member who opened it.
    pub(crate) session: Option<(Arc<SessionTokens>, SessionId)>,
    /// The access token of the app that opened it.
    pub(crate) access_token: Option<(Arc<AccessTokens>, SecretHash)>,
    pub(crate) key: KeyId,
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) scope: Option<Scope>,
}

impl KeyWatch {
    /// Checks that the key may still be used for the operation. A database failure is logged and does not end the
    /// stream.
    async fn check(&self) -> Result<()> {
        match self.look().await {
            Err(error) if error.code().status() >= 500 => {
                tracing::warn!(?error, "the key of a stream could not be looked at");
                Ok(())
            }
            looked => looked,
        }
    }

    async fn look(&self) -> Result<()> {
        let key = self.key.clone();
        let stored = self.db.read(move |read| auth::keys::by_id(read, &key)).await;
        let stored = stored.map_err(|error| match error.code() {
            Code::NotFound => Error::new(Code::InvalidApiKey, "The API key is not valid."),
            _ => error,
        })?;
        stored.check_usable(self.db.now())?;
        if let (Some((tokens, session)), Some(workspace)) = (&self.session, self.workspace)
            && !tokens.is_open(session, workspace, self.db.now()).await?
        {
            return Err(Error::new(Code::InvalidApiKey, "The session has ended."));
        }
        if let Some((tokens, token)) = &self.access_token
            && !tokens.is_valid(*token, self.db.now()).await?
        {
            return Err(Error::new(Code::InvalidApiKey, "The access token has ended."));
        }
        if let Some(id) = self.workspace {
            let workspace = self.directory.workspace(id).await?;
            let workspace =
                workspace.filter(|workspace| stored.key.operates(workspace)).ok_or_else(|| {
                    Error::new(
                        Code::WorkspaceNotFound,
                        "The workspace does not exist, or the key has no access to it.",
                    )
                })?;
            if let Some(reason) = &workspace.blocked_reason {
                return Err(Error::new(Code::WorkspaceBlocked, reason.clone()));
            }
        }
        self.scope.map_or(Ok(()), |scope| stored.key.expect_scope(scope))
    }
}

/// The request-log row of a stream. It is written when the stream is dropped, no matter which side ends it.
pub(crate) struct LastingRow {
    log: RequestLog,
    row: Option<LogRow>,
    /// The tracing span of the request. It ends with the stream.
    span: Option<Span>,
}

impl LastingRow {
    pub(crate) fn new(log: RequestLog, row: LogRow, span: Option<Span>) -> Self {
        Self { log, row: Some(row), span }
    }

    fn note(&mut self, event: &StreamEvent) {
        if let Some(row) = &mut self.row {
            row.energy = row.energy.max(event.energy);
            row.code = event.data.as_ref().err().map(|error| error.code().as_str());
        }
        if let Some(span) = &mut self.span
            && let Err(error) = &event.data
            && error.code().status() >= 500
        {
            span.fail(error.code().as_str());
        }
    }
}

impl Drop for LastingRow {
    fn drop(&mut self) {
        if let Some(row) = self.row.take() {
            self.log.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::printed;

    #[test]
    fn no_line_of_data_is_lost() {
        assert_eq!(
            printed(7, "run.created", "{\"a\":\"b\\n\"}"),
            "id: 7\nevent: run.created\ndata: {\"a\":\"b\\n\"}\n\n"
        );
        assert_eq!(
            printed(8, "x", "{\n\"a\": 1\r}"),
            "id: 8\nevent: x\ndata: {\ndata: \"a\": 1\ndata: }\n\n"
        );
    }
}
