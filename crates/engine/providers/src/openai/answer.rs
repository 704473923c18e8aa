//! Answers of a server, which come at once or as a stream of events.

use super::calls::{self, Calls};
use super::completion::{self, Counts, Heard};
use super::events::EventReader;
use super::{Fault, LARGEST_ANSWER, unreadable};
use crate::json::{self, Node};
use crate::thoughts::{Said, Thoughts};
use crate::{Prompt, Sink};
use egress::{HeaderMap, Streaming};

/// Reads an answer to its end, and says its text as it comes.
///
/// The first byte of a body tells JSON from events: some servers send pieces as `text/plain`, or although nobody asked
/// for them, and others cannot send pieces at all.
pub(super) async fn read(mut response: Streaming, prompt: &Prompt) -> Result<Heard, Fault> {
    let says_events = is_event_stream(&response.headers);
    let first = response.chunk().await?.unwrap_or_default();
    if is_events(&first, says_events) {
        return read_events(response, &first, prompt).await;
    }
    let mut response = response.at_most(LARGEST_ANSWER.saturating_sub(first.len()));
    let mut body = first.to_vec();
    while let Some(bytes) = response.chunk().await? {
        body.extend_from_slice(&bytes);
    }
    completion::read(&body)
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// Returns whether a body with this beginning is a stream of events. `says_events`: its content type says so.
fn is_events(first: &[u8], says_events: bool) -> bool {
    let first = first.strip_prefix("\u{feff}".as_bytes()).unwrap_or(first).trim_ascii_start();
    let has_field =
        [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| first.starts_with(field));
    has_field || says_events && first.first() != Some(&b'{')
}

async fn read_events(mut response: Streaming, first: &[u8], prompt: &Prompt) -> Result<Heard, Fault> {
    let mut events = EventReader::default();
    let mut answer = Answer::of(prompt);
    let mut next = Some(first.to_vec());
    while let Some(bytes) = next {
        for event in events.push(&bytes).map_err(|_| too_large())? {
            if event.trim_ascii() == b"[DONE]" {
                return answer.end();
            }
            answer.take(&event)?;
        }
        next = response.chunk().await?.map(|bytes| bytes.to_vec());
    }
    if answer.heard.finish_reason.is_none() {
        return Err(Fault::Passing(None, "the answer broke off".to_owned()));
    }
    answer.end()
}

fn too_large() -> Fault {
    Fault::Final(unreadable("it is too large"))
}

/// What was said so far.
struct Answer<'a> {
    sink: Option<&'a dyn Sink>,
    /// A first event was received.
    has_begun: bool,
    /// The index of the choice that is heard.
    choice: Option<i64>,
    heard: Heard,
    thoughts: Thoughts,
    calls: Calls,
    bytes: usize,
}

impl<'a> Answer<'a> {
    fn of(prompt: &'a Prompt) -> Self {
        Self {
            sink: prompt.sink.as_deref(),
            has_begun: false,
            choice: None,
            heard: Heard::default(),
            thoughts: Thoughts::default(),
            calls: Calls::of(prompt.tools.iter().map(|tool| tool.name.clone())),
            bytes: 0,
        }
    }

    fn take(&mut self, event: &[u8]) -> Result<(), Fault> {
        let event = json::tidy(&String::from_utf8_lossy(event));
        // Signs of life of some servers.
        if !event.starts_with('{') {
            return Ok(());
        }
        let chunk = Node::root(&event).map_err(|error| Fault::Final(unreadable(error)))?;
        if let Some(fault) = completion::failure(chunk) {
            return Err(fault);
        }
        // Where a server sends it more than once, the last one is the total.
        let counts = Counts::of(chunk.get("usage"));
        if counts != Counts::default() {
            self.heard.counts = counts;
        }
        let choices = chunk.get("choices").items();
        let index = |choice: &Node<'_>| choice.get("index").count().unwrap_or_default();
        let first = choices.iter().map(index).min();
        let ours = self.choice.or(first);
        let Some(choice) = choices.iter().find(|choice| Some(index(choice)) == ours) else { return Ok(()) };
        self.choice = ours;
        if let Some(fault) = completion::failure(*choice) {
            return Err(fault);
        }
        let delta = choice.get("delta");
        if delta.is_object() {
            self.hear(delta)?;
        } else if !self.has_begun {
            // A server that cannot send pieces may send the whole as one.
            self.hear(choice.get("message"))?;
        }
        let reason = choice.get("finish_reason").text().filter(|reason| !reason.is_empty());
        self.has_begun |= reason.is_some();
        self.heard.finish_reason = reason.or(self.heard.finish_reason.take());
        Ok(())
    }

    fn hear(&mut self, delta: Node<'_>) -> Result<(), Fault> {
        self.has_begun |= delta.is_object();
        let text = completion::text(delta.get("content"));
        let refusal = completion::text(delta.get("refusal"));
        self.bytes += text.len() + refusal.len();
        for piece in calls::pieces(delta) {
            self.bytes += self.calls.add(piece);
        }
        if self.bytes > LARGEST_ANSWER {
            return Err(too_large());
        }
        self.heard.refusal.push_str(&refusal);
        if !text.is_empty() {
            self.heard.text.push_str(&text);
            self.say();
        }
        Ok(())
    }

    fn say(&mut self) {
        let said = self.thoughts.hear(&self.heard.text);
        let Some(sink) = self.sink else { return };
        match said {
            Said::Nothing => {}
            Said::More(text) => sink.say(text),
            Said::Anew(text) => {
                sink.begin_anew();
                sink.say(text);
            }
        }
    }

    fn end(self) -> Result<Heard, Fault> {
        if !self.has_begun {
            return Err(Fault::Final(unreadable("it has no choices")));
        }
        Ok(Heard { calls: self.calls.end(), ..self.heard })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_from_json() {
        for (first, says_events, expected) in [
            (&b"data: {"[..], false, true),
            (b"\xef\xbb\xbf\n: hello", false, true),
            (b"event: x", true, true),
            (b"{\"choices\"", true, false),
            (b"{\"choices\"", false, false),
            (b"", true, true),
            (b"", false, false),
            (b"<html>", false, false),
        ] {
            assert_eq!(is_events(first, says_events), expected, "{first:?}");
        }
    }
}
