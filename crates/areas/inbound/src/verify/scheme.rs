//! Verification of senders: what each kind checks, compiled once from its settings and secrets.
//!
//! A refusal says to the log what was wrong; the sender hears only that the request could not be verified.

use super::request::Incoming;
use super::signature::{
    Key, Part, Secret, from_base64, from_hex, public_key, signed_parts, standard_key, to_hex,
};
use super::verification::{Algorithm, Encoding, Kind, Secrets, Verification};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Error, Result, Timestamp, text_enum};
use ring::hmac;

text_enum! {
    /// Why a request is refused, as the log says it.
    pub(crate) enum Refusal {
        MissingHeader = "missing_header",
        Malformed = "malformed_signature",
        WrongSecret = "wrong_secret",
        WrongSignature = "wrong_signature",
        MissingTimestamp = "missing_timestamp",
        StaleTimestamp = "stale_timestamp",
        AddressNotAllowed = "address_not_allowed",
    }
}

type Checked = std::result::Result<(), Refusal>;

/// A check, ready to run.
pub(crate) enum Scheme {
    /// Anybody.
    Open,
    /// A header has the value, after a word such as `Bearer`.
    Secret { header: String, word: Option<&'static str>, secrets: Vec<Secret> },
    /// A header has a signature.
    Signature(Signature),
    /// Twilio signs the address and the sorted form.
    Twilio(Vec<hmac::Key>),
    /// Every notification in the body repeats a secret.
    ClientState(Vec<Secret>),
}

/// How the header's value is read.
enum Format {
    /// The signature, after a prefix.
    Whole(String),
    /// `t=TIME,v1=SIGNATURE`, possibly several signatures.
    Pairs,
    /// `v1,SIGNATURE` (HMAC) and `v1a,SIGNATURE` (ed25519), separated by spaces.
    Versions,
}

/// A signature over parts of the request.
pub(crate) struct Signature {
    header: Vec<String>,
    format: Format,
    encoding: Encoding,
    signed: Vec<Part>,
    timestamp_header: Vec<String>,
    /// Seconds; `None` where no time is signed.
    tolerance: Option<i64>,
    keys: Vec<Key>,
}

impl Scheme {
    /// Compiles a verification.
    ///
    /// # Errors
    /// When what is stored does not fit, which the operations prevent.
    pub(crate) fn compile(from: &Verification, sealed: &Secrets) -> Result<Self> {
        let secrets = || sealed.secrets.iter().map(|secret| Secret::new(secret.as_bytes())).collect();
        let in_header =
            |header: &str, word| Self::Secret { header: header.to_owned(), word, secrets: secrets() };
        let header = from.header.as_deref();
        Ok(match from.kind {
            Kind::None => Self::Open,
            Kind::Bearer => in_header("authorization", Some("bearer")),
            Kind::HeaderSecret => in_header(header.unwrap_or_default(), None),
            Kind::Gitlab => in_header("x-gitlab-token", None),
            Kind::Basic => basic(from, sealed),
            Kind::MicrosoftGraph => Self::ClientState(secrets()),
            Kind::Twilio => Self::Twilio(hmac_keys(sealed, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY).collect()),
            Kind::Hmac | Kind::Ed25519 => Self::Signature(general(from, sealed)?),
            Kind::StandardWebhooks => Self::Signature(standard(from, sealed)?),
            Kind::Stripe => Self::Signature(pairs(from, sealed, header.unwrap_or("stripe-signature"))),
            Kind::Calendly => Self::Signature(pairs(from, sealed, "calendly-webhook-signature")),
            Kind::Github | Kind::Meta => {
                Self::Signature(of_body(sealed, "x-hub-signature-256", "sha256=", Encoding::Hex))
            }
            Kind::Shopify => Self::Signature(of_body(sealed, "x-shopify-hmac-sha256", "", Encoding::Base64)),
            Kind::Typeform => {
                Self::Signature(of_body(sealed, "typeform-signature", "sha256=", Encoding::Base64))
            }
            Kind::Dropbox => Self::Signature(of_body(sealed, "x-dropbox-signature", "", Encoding::Hex)),
            Kind::Slack => Self::Signature(timed(from, sealed, &SLACK)?),
            Kind::Zoom => Self::Signature(timed(from, sealed, &ZOOM)?),
            Kind::Zendesk => Self::Signature(timed(from, sealed, &ZENDESK)?),
            Kind::Discord => {
                Self::Signature(Signature { keys: ed25519_key(from)?, ..timed(from, sealed, &DISCORD)? })
            }
        })
    }

    /// Whether the request comes from whom it should.
    pub(crate) fn check(&self, request: &Incoming<'_>) -> Checked {
        match self {
            Self::Open => Ok(()),
            Self::Secret { header, word, secrets } => {
                let sent = request.header(header).ok_or(Refusal::MissingHeader)?;
                let sent = match word {
                    Some(word) => after_word(sent, word).ok_or(Refusal::Malformed)?,
                    None => sent,
                };
                one_is(secrets, sent)
            }
            Self::Signature(signature) => signature.check(request),
            Self::Twilio(keys) => twilio(keys, request),
            Self::ClientState(secrets) => client_state(secrets, request.body),
        }
    }
}

/// A sender that signs its time, which it sends in a header of its own.
struct Timed {
    header: &'static str,
    prefix: &'static str,
    encoding: Encoding,
    signed: &'static str,
    timestamp_header: &'static str,
}

const SLACK: Timed = Timed {
    header: "x-slack-signature",
    prefix: "v0=",
    encoding: Encoding::Hex,
    signed: "v0:{timestamp}:{body}",
    timestamp_header: "x-slack-request-timestamp",
};
const ZOOM: Timed = Timed { header: "x-zm-signature", timestamp_header: "x-zm-request-timestamp", ..SLACK };
const ZENDESK: Timed = Timed {
    header: "x-zendesk-webhook-signature",
    prefix: "",
    encoding: Encoding::Base64,
    signed: "{timestamp}{body}",
    timestamp_header: "x-zendesk-webhook-signature-timestamp",
};
const DISCORD: Timed = Timed {
    header: "x-signature-ed25519",
    prefix: "",
    encoding: Encoding::Hex,
    signed: "{timestamp}{body}",
    timestamp_header: "x-signature-timestamp",
};

fn hmac_keys(sealed: &Secrets, algorithm: hmac::Algorithm) -> impl Iterator<Item = hmac::Key> {
    sealed.secrets.iter().map(move |secret| hmac::Key::new(algorithm, secret.as_bytes()))
}

/// A signature of the body alone, as most senders make it.
fn of_body(sealed: &Secrets, header: &str, prefix: &str, encoding: Encoding) -> Signature {
    Signature {
        header: vec![header.to_owned()],
        format: Format::Whole(prefix.to_owned()),
        encoding,
        signed: vec![Part::Body],
        timestamp_header: Vec::new(),
        tolerance: None,
        keys: hmac_keys(sealed, hmac::HMAC_SHA256).map(Key::Hmac).collect(),
    }
}

fn timed(from: &Verification, sealed: &Secrets, sender: &Timed) -> Result<Signature> {
    Ok(Signature {
        signed: signed_parts(sender.signed).map_err(Error::internal)?,
        timestamp_header: vec![sender.timestamp_header.to_owned()],
        tolerance: from.tolerance_seconds,
        ..of_body(sealed, sender.header, sender.prefix, sender.encoding)
    })
}

/// Stripe's way: time and signatures in one header.
fn pairs(from: &Verification, sealed: &Secrets, header: &str) -> Signature {
    Signature {
        format: Format::Pairs,
        signed: vec![Part::Timestamp, Part::Text(".".to_owned()), Part::Body],
        tolerance: from.tolerance_seconds,
        ..of_body(sealed, header, "", Encoding::Hex)
    }
}

fn one_is(secrets: &[Secret], sent: &[u8]) -> Checked {
    // All are compared, so that the time does not depend on which one it was.
    let found = secrets.iter().fold(false, |found, secret| secret.is(sent) | found);
    if found { Ok(()) } else { Err(Refusal::WrongSecret) }
}

/// What follows `word` and spaces; the word in any case.
fn after_word<'a>(value: &'a [u8], word: &str) -> Option<&'a [u8]> {
    let (head, rest) = value.split_at_checked(word.len())?;
    let rest = rest.strip_prefix(b" ")?;
    head.eq_ignore_ascii_case(word.as_bytes()).then(|| rest.trim_ascii())
}

/// Basic credentials are compared as they are sent: one base64 text a user and password.
fn basic(from: &Verification, sealed: &Secrets) -> Scheme {
    let user = from.username.as_deref().unwrap_or_default();
    let sent = |password: &String| Secret::new(STANDARD.encode(format!("{user}:{password}")).as_bytes());
    Scheme::Secret {
        header: "authorization".to_owned(),
        word: Some("basic"),
        secrets: sealed.secrets.iter().map(sent).collect(),
    }
}

fn general(from: &Verification, sealed: &Secrets) -> Result<Signature> {
    let algorithm = match from.algorithm {
        Some(Algorithm::Sha1) => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        Some(Algorithm::Sha512) => hmac::HMAC_SHA512,
        Some(Algorithm::Sha256) | None => hmac::HMAC_SHA256,
    };
    let keys = if from.kind == Kind::Ed25519 {
        ed25519_key(from)?
    } else {
        let key = |secret: &String| Key::Hmac(hmac::Key::new(algorithm, secret.as_bytes()));
        sealed.secrets.iter().map(key).collect()
    };
    Ok(Signature {
        header: from.header.iter().cloned().collect(),
        format: Format::Whole(from.prefix.clone().unwrap_or_default()),
        encoding: from.encoding.unwrap_or(Encoding::Hex),
        signed: signed_parts(from.signed.as_deref().unwrap_or("{body}")).map_err(Error::internal)?,
        timestamp_header: from.timestamp_header.iter().cloned().collect(),
        tolerance: from.tolerance_seconds,
        keys,
    })
}

fn ed25519_key(from: &Verification) -> Result<Vec<Key>> {
    let key = from.public_key.as_deref().and_then(public_key);
    Ok(vec![Key::Ed25519(key.ok_or_else(|| Error::internal("a stored public key is broken"))?)])
}

fn standard(from: &Verification, sealed: &Secrets) -> Result<Signature> {
    let key = |secret: &String| standard_key(secret).ok_or_else(|| Error::internal("a stored key is broken"));
    let dot = || Part::Text(".".to_owned());
    Ok(Signature {
        header: ["webhook-signature", "svix-signature"].map(str::to_owned).to_vec(),
        format: Format::Versions,
        encoding: Encoding::Base64,
        signed: vec![Part::Id, dot(), Part::Timestamp, dot(), Part::Body],
        timestamp_header: ["webhook-timestamp", "svix-timestamp"].map(str::to_owned).to_vec(),
        tolerance: from.tolerance_seconds,
        keys: sealed.secrets.iter().map(key).collect::<Result<_>>()?,
    })
}

impl Signature {
    fn check(&self, request: &Incoming<'_>) -> Checked {
        let value = first(request, &self.header).ok_or(Refusal::MissingHeader)?;
        let value = std::str::from_utf8(value).map_err(|_| Refusal::Malformed)?;
        let (in_header, signatures) = self.read(value);
        let timestamp = match self.timestamp_header.as_slice() {
            [] => in_header,
            names => first(request, names).and_then(|time| std::str::from_utf8(time).ok()),
        };
        if let Some(tolerance) = self.tolerance {
            let sent = timestamp.ok_or(Refusal::MissingTimestamp)?;
            let sent = moment(sent).ok_or(Refusal::Malformed)?;
            if request.now.millis().abs_diff(sent.millis()) > tolerance.unsigned_abs() * 1000 {
                return Err(Refusal::StaleTimestamp);
            }
        }
        if signatures.is_empty() {
            return Err(Refusal::Malformed);
        }
        let message = self.message(request, timestamp.unwrap_or_default());
        let verified =
            self.keys.iter().any(|key| signatures.iter().any(|signature| key.verifies(&message, signature)));
        if verified { Ok(()) } else { Err(Refusal::WrongSignature) }
    }

    /// The time in the header's value, and its signatures. At most ten are looked at.
    fn read<'a>(&self, value: &'a str) -> (Option<&'a str>, Vec<Vec<u8>>) {
        let decode = |text: &str| decode(text, self.encoding);
        match &self.format {
            Format::Whole(prefix) => {
                let signature = value.trim().strip_prefix(prefix.as_str()).and_then(decode);
                (None, signature.into_iter().collect())
            }
            Format::Pairs => {
                let pairs = || value.split(',').filter_map(|pair| pair.trim().split_once('='));
                let time = pairs().find(|(name, _)| *name == "t").map(|(_, time)| time);
                let signatures = pairs().filter(|(name, _)| *name == "v1");
                (time, signatures.filter_map(|(_, text)| decode(text)).take(10).collect())
            }
            Format::Versions => {
                let versions = value.split(' ').filter_map(|pair| pair.split_once(','));
                let signatures = versions.filter(|(version, _)| matches!(*version, "v1" | "v1a"));
                (None, signatures.filter_map(|(_, text)| decode(text)).take(10).collect())
            }
        }
    }

    fn message(&self, request: &Incoming<'_>, timestamp: &str) -> Vec<u8> {
        let mut message = Vec::with_capacity(request.body.len() + 64);
        for part in &self.signed {
            match part {
                Part::Text(text) => message.extend_from_slice(text.as_bytes()),
                Part::Body => message.extend_from_slice(request.body),
                Part::Timestamp => message.extend_from_slice(timestamp.as_bytes()),
                Part::Url => message.extend_from_slice(request.url.as_bytes()),
                Part::Id => {
                    let id = request.header("webhook-id").or_else(|| request.header("svix-id"));
                    message.extend_from_slice(id.unwrap_or_default());
                }
            }
        }
        message
    }
}

fn first<'a>(request: &Incoming<'a>, names: &[String]) -> Option<&'a [u8]> {
    names.iter().find_map(|name| request.header(name))
}

/// A signed time: seconds or milliseconds since 1970, or RFC 3339.
fn moment(text: &str) -> Option<Timestamp> {
    match text.trim().parse::<i64>() {
        // No sender signs seconds of the year 5138, and none milliseconds of 1973.
        Ok(number @ 0..100_000_000_000) => Some(Timestamp::from_millis(number * 1000)),
        Ok(number @ 0..) => Some(Timestamp::from_millis(number)),
        Ok(_) => None,
        Err(_) => Timestamp::parse(text.trim()),
    }
}

fn decode(text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Hex => from_hex(text),
        Encoding::Base64 => from_base64(text),
    }
}

/// Twilio: the address with the form's fields behind it, by name, without separators. A JSON body is signed through
/// its digest in the address.
fn twilio(keys: &[hmac::Key], request: &Incoming<'_>) -> Checked {
    let sent = request.header("x-twilio-signature").ok_or(Refusal::MissingHeader)?;
    let sent = std::str::from_utf8(sent).ok().and_then(from_base64).ok_or(Refusal::Malformed)?;
    let mut message = request.url.clone().into_bytes();
    if let Some(digest) = request.query_value("bodySHA256") {
        let found = ring::digest::digest(&ring::digest::SHA256, request.body);
        if !to_hex(found.as_ref()).eq_ignore_ascii_case(&digest) {
            return Err(Refusal::WrongSignature);
        }
    } else {
        let mut fields: Vec<_> = url::form_urlencoded::parse(request.body).collect();
        fields.sort_unstable();
        fields.dedup();
        for (name, value) in fields {
            message.extend_from_slice(name.as_bytes());
            message.extend_from_slice(value.as_bytes());
        }
    }
    let verified = keys.iter().any(|key| hmac::verify(key, &message, &sent).is_ok());
    if verified { Ok(()) } else { Err(Refusal::WrongSignature) }
}

/// Microsoft Graph: `value[*].clientState`, all of them.
fn client_state(secrets: &[Secret], body: &[u8]) -> Checked {
    #[derive(serde::Deserialize)]
    struct Batch {
        value: Vec<Notification>,
    }
    #[derive(serde::Deserialize)]
    struct Notification {
        #[serde(rename = "clientState")]
        client_state: Option<String>,
    }
    let batch = input::numbers::lossless(body).map_err(|_| Refusal::Malformed)?;
    let batch: Batch = serde_json::from_value(batch).map_err(|_| Refusal::Malformed)?;
    if batch.value.is_empty() {
        return Err(Refusal::Malformed);
    }
    batch.value.iter().try_for_each(|notification| {
        one_is(secrets, notification.client_state.as_deref().unwrap_or_default().as_bytes())
    })
}
