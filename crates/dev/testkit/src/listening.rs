//! A reader of server-sent events.

use egress::Streaming;
use serde_json::Value;
use std::collections::BTreeMap;

/// A server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The id.
    pub id: u64,
    /// The name.
    pub name: String,
    /// The data.
    pub data: Value,
}

/// A stream of events. Dropping it closes the connection.
pub struct Listening {
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    body: Streaming,
    text: String,
}

impl Listening {
    pub(crate) fn new(headers: BTreeMap<String, String>, body: Streaming) -> Self {
        assert_eq!(
            (body.status, headers["content-type"].as_str()),
            (200, "text/event-stream; charset=utf-8")
        );
        Self { headers, body, text: String::new() }
    }

    /// Returns the next event, or `None` at the end.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            let block = self.block().await?;
            if !block.starts_with(':') {
                return Some(heard(&block));
            }
        }
    }

    /// Returns the next block, which must be a comment.
    pub async fn comment(&mut self) -> String {
        let block = self.block().await.expect("the stream goes on");
        assert!(block.starts_with(':'), "{block}");
        block
    }

    /// Reads events until one with this name.
    pub async fn until(&mut self, name: &str) -> Heard {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("the stream ends without {name}"));
            if event.name == name {
                return event;
            }
        }
    }

    /// Returns all remaining events.
    pub async fn rest(&mut self) -> Vec<Heard> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let Some(bytes) = self.body.chunk().await.expect("the stream is whole") else {
                assert_eq!(self.text, "", "the stream ends in an event");
                return None;
            };
            self.text.push_str(std::str::from_utf8(&bytes).expect("events are whole pieces"));
        }
    }
}

fn heard(block: &str) -> Heard {
    let field = |name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {block}"))
    };
    assert_eq!(block.lines().count(), 3, "{block}");
    Heard {
        id: field("id: ").parse().unwrap(),
        name: field("event: ").to_owned(),
        data: serde_json::from_str(field("data: ")).unwrap(),
    }
}
