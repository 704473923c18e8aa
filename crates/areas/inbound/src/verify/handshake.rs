//! Handshakes: questions by which a sender finds out whether a URL is ours before it sends anything.

use super::answer;
use super::request::Incoming;
use super::scheme::Refusal;
use super::signature::{Secret, to_hex};
use super::verification::{Kind, Secrets};
use operation::RawAnswer;
use ring::hmac;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The longest challenge that is repeated to its sender, in bytes.
const LONGEST: usize = 4096;

/// How a kind of sender asks.
pub(crate) enum Handshake {
    None,
    Slack,
    Meta(Option<Secret>),
    MicrosoftGraph,
    Zoom(Option<hmac::Key>),
    Dropbox,
    Discord,
}

impl Handshake {
    pub(crate) fn of(kind: Kind, secrets: &Secrets) -> Self {
        match kind {
            Kind::Slack => Self::Slack,
            Kind::Meta => {
                Self::Meta(secrets.verify_token.as_ref().map(|token| Secret::new(token.as_bytes())))
            }
            Kind::MicrosoftGraph => Self::MicrosoftGraph,
            Kind::Zoom => {
                let key = |secret: &String| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
                Self::Zoom(secrets.secrets.first().map(key))
            }
            Kind::Dropbox => Self::Dropbox,
            Kind::Discord => Self::Discord,
            _ => Self::None,
        }
    }

    /// Whether `GET` is a question.
    pub(crate) fn has_get(&self) -> bool {
        matches!(self, Self::Meta(_) | Self::Dropbox)
    }

    /// Answers a question that is not signed; `None` where the request is none.
    pub(crate) fn unsigned(&self, request: &Incoming<'_>) -> Option<Result<RawAnswer, Refusal>> {
        match (self, request.method) {
            (Self::Meta(token), "GET") => Some(meta(token.as_ref(), request)),
            (Self::Dropbox, "GET") => {
                Some(request.query_value("challenge").map_or(Err(Refusal::Malformed), repeat))
            }
            (Self::MicrosoftGraph, "POST") => request.query_value("validationToken").map(repeat),
            _ => None,
        }
    }

    /// Answers a question in a body that was verified; `None` where the request is none.
    pub(crate) fn signed(&self, body: &Value) -> Option<RawAnswer> {
        let text = |pointer: &str| {
            let text = body.pointer(pointer).and_then(Value::as_str);
            text.filter(|text| text.len() <= LONGEST)
        };
        match self {
            Self::Slack if text("/type") == Some("url_verification") => {
                Some(answer::json(200, &json!({ "challenge": text("/challenge")? })))
            }
            Self::Zoom(Some(key)) if text("/event") == Some("endpoint.url_validation") => {
                let plain = text("/payload/plainToken")?;
                let tag = hmac::sign(key, plain.as_bytes());
                let encrypted = to_hex(tag.as_ref());
                Some(answer::json(200, &json!({ "plainToken": plain, "encryptedToken": encrypted })))
            }
            // Webhook events ask with 0 and want no content; interactions ask with 1 and want it repeated.
            Self::Discord => match (body.get("type")?.as_i64()?, body.get("event")) {
                (0, None) => Some(RawAnswer::status(204)),
                (1, None) => Some(answer::json(200, &json!({ "type": 1 }))),
                _ => None,
            },
            _ => None,
        }
    }
}

fn meta(token: Option<&Secret>, request: &Incoming<'_>) -> Result<RawAnswer, Refusal> {
    let value = |name: &str| request.query_value(name).ok_or(Refusal::Malformed);
    if value("hub.mode")? != "subscribe" {
        return Err(Refusal::Malformed);
    }
    let sent = value("hub.verify_token")?;
    if token.is_some_and(|token| token.is(sent.as_bytes())) {
        repeat(value("hub.challenge")?)
    } else {
        Err(Refusal::WrongSecret)
    }
}

/// Says what was said, as plain text and as nothing else.
fn repeat(challenge: Cow<'_, str>) -> Result<RawAnswer, Refusal> {
    if challenge.is_empty() || challenge.len() > LONGEST {
        return Err(Refusal::Malformed);
    }
    Ok(answer::text(200, challenge.into_owned()))
}
