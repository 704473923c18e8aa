//! Settings of the verification of senders: the kinds, their fields, and which field belongs to which kind.
//!
//! What a kind checks stands in `scheme`.

use super::request::is_header_name;
use super::signature::{Part, public_key, signed_parts, standard_key};
use model::{Error, Result, text_enum};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

text_enum! {
    /// How senders are verified.
    #[schema(as = InboundVerificationType)]
    pub enum Kind {
        /// Not at all: everyone who knows the URL can post.
        None = "none",
        /// `Authorization: Bearer <secret>`.
        Bearer = "bearer",
        /// A header contains the secret.
        HeaderSecret = "header_secret",
        /// HTTP basic authentication.
        Basic = "basic",
        /// A header contains an HMAC.
        Hmac = "hmac",
        /// A header contains an Ed25519 signature.
        Ed25519 = "ed25519",
        /// Standard Webhooks, the scheme that Svix also uses.
        StandardWebhooks = "standard_webhooks",
        /// Stripe.
        Stripe = "stripe",
        /// GitHub.
        Github = "github",
        /// GitLab.
        Gitlab = "gitlab",
        /// Shopify.
        Shopify = "shopify",
        /// Slack.
        Slack = "slack",
        /// Meta: pages, ads and messengers.
        Meta = "meta",
        /// Zendesk.
        Zendesk = "zendesk",
        /// Calendly.
        Calendly = "calendly",
        /// Typeform.
        Typeform = "typeform",
        /// Twilio.
        Twilio = "twilio",
        /// Discord.
        Discord = "discord",
        /// Zoom.
        Zoom = "zoom",
        /// Dropbox.
        Dropbox = "dropbox",
        /// Microsoft Graph change notifications.
        MicrosoftGraph = "microsoft_graph",
    }
}

text_enum! {
    /// The hash function of an HMAC.
    #[schema(as = InboundHmacAlgorithm)]
    pub enum Algorithm {
        /// SHA-1. Only for senders that support nothing else.
        Sha1 = "sha1",
        /// SHA-256.
        Sha256 = "sha256",
        /// SHA-512.
        Sha512 = "sha512",
    }
}

text_enum! {
    /// The encoding of a signature.
    #[schema(as = InboundSignatureEncoding)]
    pub enum Encoding {
        /// Hexadecimal, in either case.
        Hex = "hex",
        /// Base64, in either alphabet.
        Base64 = "base64",
    }
}

/// How senders are verified. Secrets are never returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = InboundVerification)]
#[schema(example = json!({ "type": "shopify", "secrets": 1 }))]
pub struct Verification {
    /// The type.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The header with the secret or signature, if it differs from the default of the type.
    pub header: Option<String>,
    /// For `basic`: the username.
    pub username: Option<String>,
    /// For `ed25519` and `discord`: the sender's public key in hexadecimal or base64.
    pub public_key: Option<String>,
    /// For `hmac`: the hash function.
    pub algorithm: Option<Algorithm>,
    /// For `hmac` and `ed25519`: the encoding of the signature.
    pub encoding: Option<Encoding>,
    /// For `hmac`: the text before the signature, such as `sha256=`.
    pub prefix: Option<String>,
    /// For `hmac` and `ed25519`: the signed content, with `{body}`, `{timestamp}` and `{url}`.
    pub signed: Option<String>,
    /// For `hmac` and `ed25519`: the header with the time of sending.
    pub timestamp_header: Option<String>,
    /// How much a signed time may differ from the present, in seconds. `null` if no time is signed.
    pub tolerance_seconds: Option<i64>,
    /// The number of stored secrets: two while the sender rotates its secret.
    pub secrets: usize,
}

/// How to verify senders.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewInboundVerification)]
pub struct NewVerification {
    /// The type. The presets need only their secret.
    #[serde(rename = "type")]
    kind: Kind,
    /// The secret as the sender shows it; two while the sender rotates it. Secrets are stored encrypted and never
    /// returned. If a change keeps the type and does not send them, the stored secrets are kept.
    #[serde(default)]
    #[schema(min_items = 1, max_items = 2)]
    secrets: Option<Vec<String>>,
    /// For `header_secret`, `hmac` and `ed25519`: the header, required. For `stripe`: another header than
    /// `Stripe-Signature`, for senders with the same scheme.
    #[serde(default)]
    header: Option<String>,
    /// For `basic`: the username, required.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    username: Option<String>,
    /// For `ed25519` and `discord`: the sender's public key of 32 bytes in hexadecimal or base64, required.
    #[serde(default)]
    #[schema(max_length = 200)]
    public_key: Option<String>,
    /// For `hmac`: the hash function; `sha256` if not given.
    #[serde(default)]
    algorithm: Option<Algorithm>,
    /// For `hmac` and `ed25519`: the encoding of the signature; `hex` if not given.
    #[serde(default)]
    encoding: Option<Encoding>,
    /// For `hmac`: the text before the signature in the header.
    #[serde(default)]
    #[schema(max_length = 40)]
    prefix: Option<String>,
    /// For `hmac` and `ed25519`: the signed content, made of `{body}`, `{timestamp}` and `{url}`; `{body}` if not
    /// given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    signed: Option<String>,
    /// For `hmac` and `ed25519`: the header with the time of sending, required if `{timestamp}` is signed.
    #[serde(default)]
    timestamp_header: Option<String>,
    /// How much a signed time may differ from the present, in seconds; 300 if not given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 86_400)]
    tolerance_seconds: Option<i64>,
    /// For `meta`: the verify token of the handshake. Stored encrypted and never returned.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 500)]
    verify_token: Option<String>,
}

/// What is sealed of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Secrets {
    pub(crate) secrets: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verify_token: Option<String>,
}

/// The fields of a verification beside its type, and whether a kind has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    No,
    Maybe,
    Must,
}

/// A kind's fields.
struct Fields {
    secrets: Has,
    header: Has,
    username: Has,
    public_key: Has,
    /// Algorithm and prefix.
    hmac: Has,
    /// Encoding, what is signed, and the header with the time.
    signature: Has,
    tolerance: Has,
    verify_token: Has,
}

const NOTHING: Fields = Fields {
    secrets: Has::No,
    header: Has::No,
    username: Has::No,
    public_key: Has::No,
    hmac: Has::No,
    signature: Has::No,
    tolerance: Has::No,
    verify_token: Has::No,
};
const SECRET: Fields = Fields { secrets: Has::Must, ..NOTHING };
const TIMED: Fields = Fields { tolerance: Has::Maybe, ..SECRET };

impl Kind {
    fn fields(self) -> Fields {
        match self {
            Self::None => NOTHING,
            Self::HeaderSecret => Fields { header: Has::Must, ..SECRET },
            Self::Basic => Fields { username: Has::Must, ..SECRET },
            Self::Hmac => Fields { header: Has::Must, hmac: Has::Maybe, signature: Has::Maybe, ..TIMED },
            Self::Ed25519 => Fields {
                header: Has::Must,
                public_key: Has::Must,
                signature: Has::Maybe,
                tolerance: Has::Maybe,
                ..NOTHING
            },
            Self::Discord => Fields { public_key: Has::Must, tolerance: Has::Maybe, ..NOTHING },
            Self::Stripe => Fields { header: Has::Maybe, ..TIMED },
            Self::Meta => Fields { verify_token: Has::Maybe, ..SECRET },
            Self::StandardWebhooks | Self::Slack | Self::Zendesk | Self::Calendly | Self::Zoom => TIMED,
            Self::Bearer
            | Self::Github
            | Self::Gitlab
            | Self::Shopify
            | Self::Typeform
            | Self::Twilio
            | Self::Dropbox
            | Self::MicrosoftGraph => SECRET,
        }
    }
}

impl Default for Verification {
    fn default() -> Self {
        Self {
            kind: Kind::None,
            header: None,
            username: None,
            public_key: None,
            algorithm: None,
            encoding: None,
            prefix: None,
            signed: None,
            timestamp_header: None,
            tolerance_seconds: None,
            secrets: 0,
        }
    }
}

impl NewVerification {
    /// What is stored in the open and what is sealed. `stored` is what was there before.
    pub(crate) fn settle(self, stored: Option<(&Verification, &Secrets)>) -> Result<(Verification, Secrets)> {
        let stored = stored.filter(|(before, _)| before.kind == self.kind).map(|(_, secrets)| secrets);
        let secrets = Secrets {
            secrets: self
                .secrets
                .clone()
                .or_else(|| stored.map(|stored| stored.secrets.clone()))
                .unwrap_or_default(),
            verify_token: self
                .verify_token
                .clone()
                .or_else(|| stored.and_then(|stored| stored.verify_token.clone())),
        };
        self.check_presence(&secrets)?;
        self.check_values(&secrets)?;
        let is_signature = self.kind.fields().signature != Has::No;
        let is_timed = match self.kind {
            Kind::Hmac | Kind::Ed25519 => self.timestamp_header.is_some(),
            kind => kind.fields().tolerance != Has::No,
        };
        let verification = Verification {
            kind: self.kind,
            header: self.header,
            username: self.username,
            public_key: self.public_key,
            algorithm: (self.kind == Kind::Hmac).then(|| self.algorithm.unwrap_or(Algorithm::Sha256)),
            encoding: is_signature.then(|| self.encoding.unwrap_or(Encoding::Hex)),
            prefix: self.prefix.filter(|prefix| !prefix.is_empty()),
            signed: is_signature.then(|| self.signed.unwrap_or_else(|| "{body}".to_owned())),
            timestamp_header: self.timestamp_header,
            tolerance_seconds: is_timed.then(|| self.tolerance_seconds.unwrap_or(300)),
            secrets: secrets.secrets.len(),
        };
        Ok((verification, secrets))
    }

    /// Each field stands where its kind has it, and nowhere else.
    fn check_presence(&self, secrets: &Secrets) -> Result<()> {
        let fields = self.kind.fields();
        for (name, has, given) in [
            ("secrets", fields.secrets, !secrets.secrets.is_empty()),
            ("header", fields.header, self.header.is_some()),
            ("username", fields.username, self.username.is_some()),
            ("public_key", fields.public_key, self.public_key.is_some()),
            ("algorithm", fields.hmac, self.algorithm.is_some()),
            ("prefix", fields.hmac, self.prefix.is_some()),
            ("encoding", fields.signature, self.encoding.is_some()),
            ("signed", fields.signature, self.signed.is_some()),
            ("timestamp_header", fields.signature, self.timestamp_header.is_some()),
            ("tolerance_seconds", fields.tolerance, self.tolerance_seconds.is_some()),
            ("verify_token", fields.verify_token, secrets.verify_token.is_some()),
        ] {
            let rule = match (has, given) {
                (Has::No, true) => "is not allowed for this type",
                (Has::Must, false) => "is required for this type",
                _ => continue,
            };
            return Err(Error::invalid(format!("verification.{name}"), rule));
        }
        Ok(())
    }

    fn check_values(&self, secrets: &Secrets) -> Result<()> {
        for (place, secret) in secrets.secrets.iter().enumerate() {
            let param = || format!("verification.secrets[{place}]");
            if !(1..=500).contains(&secret.len()) {
                return Err(Error::invalid(param(), "must have 1 to 500 bytes"));
            }
            if self.kind == Kind::StandardWebhooks && standard_key(secret).is_none() {
                return Err(Error::invalid(param(), "must be `whsec_` or `whpk_` and base64"));
            }
        }
        for (name, header) in [("header", &self.header), ("timestamp_header", &self.timestamp_header)] {
            if header.as_ref().is_some_and(|header| !is_header_name(header)) {
                return Err(Error::invalid(format!("verification.{name}"), "is not the name of a header"));
            }
        }
        let key = self.public_key.as_deref();
        if key.is_some_and(|key| public_key(key).is_none()) {
            return Err(Error::invalid(
                "verification.public_key",
                "must be 32 bytes in hexadecimal or base64",
            ));
        }
        if let Some(signed) = &self.signed {
            let parts = signed_parts(signed).map_err(|rule| Error::invalid("verification.signed", rule))?;
            if parts.contains(&Part::Timestamp) && self.timestamp_header.is_none() {
                let rule = "is required if `{timestamp}` is signed";
                return Err(Error::invalid("verification.timestamp_header", rule));
            }
        }
        let signs_time = self.signed.as_ref().is_some_and(|signed| signed.contains("{timestamp}"));
        if self.timestamp_header.is_some() && !signs_time {
            return Err(Error::invalid(
                "verification.signed",
                "must contain `{timestamp}`, because `timestamp_header` is set",
            ));
        }
        if matches!(self.kind, Kind::Hmac | Kind::Ed25519) && self.tolerance_seconds.is_some() && !signs_time
        {
            return Err(Error::invalid(
                "verification.tolerance_seconds",
                "requires `{timestamp}` in `signed`",
            ));
        }
        Ok(())
    }
}
