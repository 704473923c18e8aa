//! Calls that take long: their operations answer with a stream of events, which ends with the result.
//!
//! Dropping the stream ends the waiting. The work goes on, and its id is known from the first event.

use crate::tools::{Running, ToolResult};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use model::Error;
use operation::Chunks;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::timeout;

/// Work in progress, as tasks and polling clients follow it: the type of object, the operation that reads it, and that
/// operation's parameter.
const FOLLOWED: [(&str, &str, &str); 1] = [("run", "getRun", "run_id")];

/// Work that goes on after the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Work {
    /// The type of object, such as `run`.
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    /// The object as it was last seen.
    pub(crate) object: Value,
}

impl Work {
    fn of(object: &Value) -> Option<Self> {
        let kind = object.get("object")?.as_str()?;
        let (kind, ..) = FOLLOWED.into_iter().find(|(known, ..)| *known == kind)?;
        let id = object.get("id")?.as_str()?.to_owned();
        Some(Self { kind, id, object: object.clone() })
    }

    /// Returns the operation that reads the work, and its parameter.
    pub(crate) fn reader(kind: &str) -> Option<(&'static str, &'static str)> {
        FOLLOWED
            .into_iter()
            .find(|(known, ..)| *known == kind)
            .map(|(_, operation, parameter)| (operation, parameter))
    }

    /// Returns whether a status says that work goes on.
    pub(crate) fn goes_on(status: &str) -> bool {
        matches!(status, "queued" | "in_progress")
    }

    /// The result for a client that has waited long enough: the object so far, and how to go on.
    fn unfinished(&self) -> ToolResult {
        let Self { kind, id, object } = self;
        let (operation, parameter) = Self::reader(kind).unwrap_or_default();
        let text = format!(
            "The {kind} {id} is still in progress. Read it in a while: svc_read \
             {{\"operation\":\"{operation}\",\"arguments\":{{\"{parameter}\":\"{id}\"}}}}\n{object}"
        );
        ToolResult { text, structured: Some(object.to_string()), ..ToolResult::default() }
    }
}

/// An event of the operation.
#[derive(Debug, Clone, PartialEq)]
enum Event {
    /// Keeps the connection alive.
    Comment,
    Named {
        name: String,
        data: Value,
    },
}

/// The events of a call.
pub(crate) struct Call {
    chunks: Chunks,
    unread: Vec<u8>,
    read: VecDeque<Event>,
    finish: Option<Box<dyn FnOnce(Value) -> ToolResult + Send>>,
    /// The last body of the API in an event. The last event has the result.
    last: Option<Value>,
}

impl Call {
    pub(crate) fn new(running: Running) -> Self {
        let Running { events, finish } = running;
        Self { chunks: events, unread: Vec::new(), read: VecDeque::new(), finish: Some(finish), last: None }
    }

    /// Waits for the result, or for the id of the work if `patience` ends before.
    pub(crate) async fn wait(mut self, patience: Duration) -> ToolResult {
        let ended = timeout(patience, async { while self.next().await.is_some() {} }).await.is_ok();
        match self.work() {
            Some(work) if !ended => work.unfinished(),
            _ => self.result(),
        }
    }

    /// Waits until the work has an id.
    ///
    /// # Errors
    /// With the result, if the call ends before.
    pub(crate) async fn begun(mut self) -> Result<Work, ToolResult> {
        loop {
            if let Some(work) = self
                .work()
                .filter(|work| work.object.get("status").and_then(Value::as_str).is_some_and(Work::goes_on))
            {
                return Ok(work);
            }
            if self.next().await.is_none() {
                return Err(self.result());
            }
        }
    }

    /// Returns progress notifications and the response as server-sent events.
    pub(crate) fn progress(
        self,
        token: Value,
        respond: impl FnOnce(ToolResult) -> String + Send + 'static,
    ) -> Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>> {
        let state = Some((self, token, respond, 0_u64));
        Box::pin(stream::unfold(state, |state| async move {
            let (mut call, token, respond, count) = state?;
            match call.next().await {
                Some(Event::Comment) => {
                    Some((Ok(Bytes::from_static(b": keep-alive\n\n")), Some((call, token, respond, count))))
                }
                Some(Event::Named { name, .. }) => {
                    let count = count + 1;
                    let text = json!({
                        "jsonrpc": "2.0",
                        "method": "notifications/progress",
                        "params": { "progressToken": token, "progress": count, "message": name },
                    });
                    Some((Ok(printed(&text.to_string())), Some((call, token, respond, count))))
                }
                None => Some((Ok(printed(&respond(call.result()))), None)),
            }
        }))
    }

    fn work(&self) -> Option<Work> {
        Work::of(self.last.as_ref()?.get("data")?)
    }

    fn result(&mut self) -> ToolResult {
        let lost = || json!({ "success": false, "error": Error::internal("a stream ended early").body() });
        match self.finish.take() {
            Some(finish) => finish(self.last.take().unwrap_or_else(lost)),
            None => ToolResult::default(),
        }
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.read.pop_front() {
                if let Event::Named { data, .. } = &event
                    && data.get("success").is_some()
                {
                    self.last = Some(data.clone());
                }
                return Some(event);
            }
            let chunk = self.chunks.next().await?.ok()?;
            self.unread.extend_from_slice(&chunk);
            while let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.unread.drain(..end + 2).collect();
                self.read.push_back(parsed(&String::from_utf8_lossy(&event)));
            }
        }
    }
}

/// Reads one server-sent event of the pipeline.
fn parsed(text: &str) -> Event {
    let (mut name, mut data) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some(value) = line.strip_prefix("event: ") {
            value.clone_into(&mut name);
        } else if let Some(value) = line.strip_prefix("data: ") {
            data.push(value);
        }
    }
    if name.is_empty() && data.is_empty() {
        return Event::Comment;
    }
    Event::Named { name, data: serde_json::from_str(&data.join("\n")).unwrap_or_default() }
}

fn printed(message: &str) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(parts: &'static [&'static str], is_endless: bool) -> Call {
        let chunks = stream::iter(parts.iter().map(|part| Ok(Bytes::from_static(part.as_bytes()))));
        let events: Chunks =
            if is_endless { Box::pin(chunks.chain(stream::pending())) } else { Box::pin(chunks) };
        let finish = Box::new(|body: Value| ToolResult {
            text: body["data"]["status"].to_string(),
            ..ToolResult::default()
        });
        Call::new(Running { events, finish })
    }

    const CREATED: &str = "id: 1\nevent: run.created\ndata: {\"success\":true,\"data\":{\"object\":\"run\",\"id\":\"run_1\",\
                           \"status\":\"queued\"}}\n\n";
    const STEP: &str = "id: 2\nevent: step.started\nda";
    const STEP_END: &str = "ta: {\"index\":1}\n\n: keep-alive\n\n";
    const DONE: &str = "id: 3\nevent: run.completed\ndata: {\"success\":true,\ndata: \"data\":{\"object\":\"run\",\"id\":\"run_1\",\
                        \"status\":\"completed\"}}\n\n";

    #[tokio::test(start_paused = true)]
    async fn the_last_event_is_the_result() {
        let result = call(&[CREATED, STEP, STEP_END, DONE], false).wait(Duration::from_secs(55)).await;
        assert_eq!(result.text, "\"completed\"");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_waited_long_enough_gets_the_id() {
        let began = tokio::time::Instant::now();
        let result = call(&[CREATED, STEP, STEP_END], true).wait(Duration::from_secs(55)).await;
        assert_eq!(began.elapsed(), Duration::from_secs(55));
        assert!(
            result.text.contains("{\"operation\":\"getRun\",\"arguments\":{\"run_id\":\"run_1\"}}"),
            "{}",
            result.text
        );
        assert!(!result.is_error);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_begins_with_the_id() {
        assert_eq!(call(&[CREATED], true).begun().await.unwrap().id, "run_1");
        assert_eq!(call(&[DONE], false).begun().await.unwrap_err().text, "\"completed\"");
    }

    #[tokio::test]
    async fn progress_comes_before_the_response() {
        let sent = call(&[CREATED, STEP, STEP_END, DONE], false).progress(json!("t"), |result| result.text);
        let sent: Vec<_> =
            sent.map(|chunk| String::from_utf8(chunk.unwrap().to_vec()).unwrap()).collect().await;
        assert_eq!(sent.len(), 5);
        assert!(
            sent[1].contains("\"message\":\"step.started\"") && sent[1].contains("\"progress\":2"),
            "{}",
            sent[1]
        );
        assert_eq!(sent[2], ": keep-alive\n\n");
        assert_eq!(sent[4], "event: message\ndata: \"completed\"\n\n");
    }
}
