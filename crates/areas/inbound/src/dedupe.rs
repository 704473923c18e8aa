//! Deduplication of received requests.

use crate::verify::request::Incoming;
use crate::verify::source::Source;
use crate::verify::verification::Kind;
use fields::equality;
use model::{Error, Result, text_enum};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// How duplicate requests are detected.
    #[schema(as = InboundDedupeBy)]
    pub enum By {
        /// They are not: every request counts.
        None = "none",
        /// By the value of a header, such as a delivery id.
        Header = "header",
        /// By the value at a path of the body.
        JsonPath = "json_path",
        /// By the body, which must be identical.
        Body = "body",
    }
}

/// How duplicate requests are detected. A request without the header or value is not a duplicate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundDedupe)]
#[schema(example = json!({ "by": "header", "header": "x-shopify-webhook-id", "window_seconds": 86400 }))]
pub struct Dedupe {
    /// How duplicate requests are detected.
    pub by: By,
    /// For `header`: its name.
    #[serde(default)]
    pub header: Option<String>,
    /// For `json_path`: the path, such as `$.event.id`.
    #[serde(default)]
    pub path: Option<String>,
    /// How long a request is remembered, in seconds.
    #[serde(default = "a_day")]
    #[schema(minimum = 60, maximum = 604_800, default = 86_400)]
    pub window_seconds: i64,
}

fn a_day() -> i64 {
    86_400
}

impl Dedupe {
    /// What a sender of this kind is known to repeat with a redelivery.
    pub(super) fn preset(kind: Kind) -> Self {
        let by_header = |name: &str| (By::Header, Some(name.to_owned()), None);
        let by_path = |path: &str| (By::JsonPath, None, Some(path.to_owned()));
        let (by, header, path) = match kind {
            Kind::StandardWebhooks => by_header("webhook-id"),
            Kind::Github => by_header("x-github-delivery"),
            Kind::Gitlab => by_header("idempotency-key"),
            Kind::Shopify => by_header("x-shopify-webhook-id"),
            Kind::Zendesk => by_header("x-zendesk-webhook-invocation-id"),
            Kind::Twilio => by_header("i-twilio-idempotency-token"),
            Kind::Stripe => by_path("$.id"),
            Kind::Slack | Kind::Typeform => by_path("$.event_id"),
            Kind::Meta | Kind::Calendly | Kind::Zoom => (By::Body, None, None),
            Kind::None
            | Kind::Bearer
            | Kind::HeaderSecret
            | Kind::Basic
            | Kind::Hmac
            | Kind::Ed25519
            | Kind::Discord
            | Kind::Dropbox
            | Kind::MicrosoftGraph => (By::None, None, None),
        };
        Self { by, header, path, window_seconds: a_day() }
    }

    /// Compiles the rule.
    ///
    /// # Errors
    /// `validation_error` with the field under `dedupe`.
    pub(super) fn compile(&self) -> Result<Rule> {
        for (name, wanted, given) in [
            ("header", self.by == By::Header, self.header.is_some()),
            ("path", self.by == By::JsonPath, self.path.is_some()),
        ] {
            if wanted != given {
                let rule = if wanted { "is required for this rule" } else { "is not allowed for this rule" };
                return Err(Error::invalid(format!("dedupe.{name}"), rule));
            }
        }
        let source = |name: &str, text: String| {
            Source::parse(&text).map_err(|rule| Error::invalid(format!("dedupe.{name}"), rule))
        };
        let key = match (self.by, &self.header, &self.path) {
            (By::Header, Some(header), _) => {
                let mut sources = vec![source("header", format!("header:{header}"))?];
                if header.eq_ignore_ascii_case("webhook-id") {
                    // Svix sends the id of Standard Webhooks under a name of its own.
                    sources.push(Source::Header("svix-id".to_owned()));
                }
                KeyOf::First(sources)
            }
            (By::JsonPath, _, Some(path)) => match source("path", path.clone())? {
                source @ Source::Body(_) => KeyOf::First(vec![source]),
                _ => return Err(Error::invalid("dedupe.path", "must start with `$`")),
            },
            (By::Body, _, _) => KeyOf::Body,
            _ => KeyOf::Nothing,
        };
        Ok(Rule { key, window_seconds: self.window_seconds })
    }
}

/// A compiled rule.
pub(super) struct Rule {
    key: KeyOf,
    pub(super) window_seconds: i64,
}

enum KeyOf {
    Nothing,
    /// The first of these that is there.
    First(Vec<Source>),
    Body,
}

impl Rule {
    /// What is remembered of a request; `None` where it counts as new in any case.
    pub(super) fn digest(&self, request: &Incoming<'_>, body: &Value) -> Option<Vec<u8>> {
        let mut digest = Context::new(&SHA256);
        match &self.key {
            KeyOf::Nothing => return None,
            // The words keep a value from being taken for a body after the rule was changed.
            KeyOf::Body => {
                digest.update(b"body:");
                digest.update(request.body);
            }
            KeyOf::First(sources) => {
                let value = sources.iter().find_map(|source| source.find(request, body))?;
                let mut value = match value.into_owned() {
                    Value::Null => return None,
                    Value::String(text) if text.is_empty() => return None,
                    value => value,
                };
                // A sender may print one number as `1` and as `1.0`.
                equality::normalize(&mut value);
                digest.update(b"value:");
                digest.update(value.to_string().as_bytes());
            }
        }
        Some(digest.finish().as_ref().to_vec())
    }
}
