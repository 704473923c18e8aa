//! Reprocessing: requests that are evaluated once more, stored ones and samples that a caller makes up.

use super::evaluate::{Ending, ending};
use super::hook::Hook;
use super::received::WithBody;
use crate::verify::request::Incoming;
use bytes::Bytes;
use model::{JsonText, ReceivedRequestId, Timestamp};
use serde_json::{Map, Value};
use std::net::{IpAddr, Ipv4Addr};

/// A request that did not just come in.
pub(crate) struct StoredRequest {
    pub(crate) id: ReceivedRequestId,
    headers: Vec<(String, Bytes)>,
    method: String,
    query: String,
    peer: IpAddr,
    body: Vec<u8>,
    received_at: Timestamp,
}

impl StoredRequest {
    /// A stored request, with what was kept of its headers.
    pub(crate) fn stored((row, body): WithBody) -> Self {
        Self {
            headers: pairs(&row.headers),
            peer: row.peer.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            id: row.id,
            method: row.method,
            query: row.query,
            body: body.unwrap_or_default(),
            received_at: row.received_at,
        }
    }

    /// A request that was made up.
    pub(crate) fn made_up(
        id: ReceivedRequestId,
        headers: impl IntoIterator<Item = (String, String)>,
        query: String,
        body: String,
        now: Timestamp,
    ) -> Self {
        let headers =
            headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), Bytes::from(value)));
        Self {
            id,
            headers: headers.collect(),
            method: "POST".to_owned(),
            query,
            peer: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            body: body.into_bytes(),
            received_at: now,
        }
    }

    fn incoming(&self) -> Incoming<'_> {
        Incoming {
            method: &self.method,
            url: String::new(),
            query: &self.query,
            headers: &self.headers,
            peer: self.peer,
            body: &self.body,
            now: self.received_at,
        }
    }

    /// The body as it is read.
    pub(crate) fn body(&self) -> Value {
        self.incoming().read_body().1
    }

    /// How it ends under a webhook's mapping.
    pub(crate) fn ending(&self, hook: &Hook) -> Ending {
        let incoming = self.incoming();
        let (form, body) = incoming.read_body();
        ending(hook, &incoming, &self.id, form, body)
    }
}

fn pairs(headers: &JsonText) -> Vec<(String, Bytes)> {
    let headers: Map<String, Value> = headers.parse().unwrap_or_default();
    let pairs = headers.into_iter().filter_map(|(name, value)| match value {
        Value::String(value) => Some((name, Bytes::from(value))),
        _ => None,
    });
    pairs.collect()
}
