//! Dynamic registration (RFC 7591) without a row: the `client_id` is the metadata with a signature, and the secret is a
//! signature of the `client_id`.
//!
//! Web assistants register again with each connection, and anybody can register. Stateless, this costs nothing, and there
//! is nothing to limit or to delete. A public client that registers twice with the same metadata gets the same
//! `client_id`. A confidential one gets another each time, because otherwise anybody could register its metadata and
//! receive its secret.

use super::client::{Client, ClientSource};
use super::metadata::{AuthMethod, KeySource, Metadata, MetadataError, RawMetadata, Strictness};
use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Random;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// The beginning of a sealed `client_id`.
const PREFIX: &str = "reg_";
/// The maximum length of a sealed `client_id`. It is a parameter of URLs.
const LONGEST: usize = 2000;
/// The places of the signatures.
const ID: &str = "oauth client id";
const SECRET: &str = "oauth client secret";

/// The content of a `client_id`. The names are short, because it is a parameter of URLs.
#[derive(Serialize, Deserialize)]
struct Content {
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(rename = "r")]
    redirect_uris: Vec<String>,
    #[serde(rename = "m")]
    method: String,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    keys: Option<String>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    keys_url: Option<String>,
    /// Makes the `client_id` of a confidential client unique.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
}

/// A new registration.
#[derive(Debug)]
pub struct Registration {
    /// The client.
    pub client: Client,
    /// Its secret, if its method has one.
    pub secret: Option<String>,
}

/// Registers a client.
pub(super) fn register(seal: &Seal, random: &dyn Random, json: &[u8]) -> Result<Registration, MetadataError> {
    let metadata =
        RawMetadata::parse(json)?.check(Strictness::Registration, AuthMethod::ClientSecretBasic)?;
    let id = seal_id(seal, random, &metadata);
    if id.len() > LONGEST {
        let rule = "the metadata is too large: register fewer or shorter redirect addresses, or `jwks_uri` for `jwks`";
        return Err(MetadataError::Other(rule.to_owned()));
    }
    let secret = metadata.method.has_secret().then(|| secret_of(seal, &id));
    Ok(Registration { client: client(id, metadata), secret })
}

fn seal_id(seal: &Seal, random: &dyn Random, metadata: &Metadata) -> String {
    let nonce = metadata.method.has_secret().then(|| {
        let mut bytes = [0; 12];
        random.fill(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    });
    let (keys, keys_url) = match metadata.keys.clone() {
        None => (None, None),
        Some(KeySource::Inline(set)) => (Some(set), None),
        Some(KeySource::Url(url)) => (None, Some(url)),
    };
    let content = Content {
        name: metadata.name.clone(),
        redirect_uris: metadata.redirect_uris.clone(),
        method: metadata.method.as_str().to_owned(),
        keys,
        keys_url,
        nonce,
    };
    // Texts and lists of texts always serialize.
    let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&content).unwrap_or_default());
    let signature = URL_SAFE_NO_PAD.encode(seal.sign(ID, &text));
    format!("{PREFIX}{text}.{signature}")
}

/// Returns the client of a sealed `client_id`. Returns `None` if this installation has not made it.
pub(super) fn open(seal: &Seal, id: &str) -> Option<Client> {
    let (text, signature) = id.strip_prefix(PREFIX)?.split_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    if id.len() > LONGEST || !seal.is_signed(ID, text, &signature) {
        return None;
    }
    let content: Content = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let keys = content.keys.map(KeySource::Inline).or(content.keys_url.map(KeySource::Url));
    let metadata = Metadata {
        name: content.name,
        redirect_uris: content.redirect_uris,
        method: AuthMethod::parse(&content.method)?,
        keys,
    };
    Some(client(id.to_owned(), metadata))
}

fn client(id: String, metadata: Metadata) -> Client {
    let key = key_of(&metadata);
    Client::new(id, key, "An app without a name", ClientSource::Sealed, metadata)
}

/// Returns the same key for all registrations of an app: of its name and its redirect addresses, in any order and
/// with any ports on loopback.
fn key_of(metadata: &Metadata) -> String {
    let mut addresses: Vec<String> =
        metadata.redirect_uris.iter().map(|address| super::redirect::without_port(address)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let name = metadata.name.as_deref().unwrap_or_default();
    // Neither names nor addresses contain line breaks.
    let text = format!("{name}\n{}", addresses.join("\n"));
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes())))
}

fn secret_of(seal: &Seal, id: &str) -> String {
    format!("svc_cs_{}", URL_SAFE_NO_PAD.encode(seal.sign(SECRET, id)))
}

/// Returns whether a secret is that of a sealed `client_id`.
pub(super) fn is_secret(seal: &Seal, id: &str, secret: &str) -> bool {
    let signature = secret.strip_prefix("svc_cs_").and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    signature.is_some_and(|signature| seal.is_signed(SECRET, id, &signature))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SystemRandom;
    use serde_json::{Value, json};

    fn made(seal: &Seal, metadata: &Value) -> Registration {
        register(seal, &SystemRandom::default(), metadata.to_string().as_bytes()).unwrap()
    }

    fn seal() -> Seal {
        Seal::new(&[7; 32]).unwrap()
    }

    #[test]
    fn an_id_opens_to_what_was_registered() {
        let metadata = json!({
            "client_name": "Desk", "redirect_uris": ["http://localhost/cb", "https://a.example/cb"],
            "token_endpoint_auth_method": "none",
        });
        let registered = made(&seal(), &metadata);
        let opened = open(&seal(), &registered.client.id).unwrap();
        assert_eq!((opened.name.as_str(), opened.method), ("Desk", AuthMethod::None));
        assert_eq!(opened.redirect_uris, ["http://localhost/cb", "https://a.example/cb"]);
        assert_eq!(opened.key, registered.client.key);
        assert!(registered.secret.is_none());
        assert_eq!(
            made(&seal(), &metadata).client.id,
            registered.client.id,
            "a public client registers once"
        );
    }

    #[test]
    fn a_confidential_client_has_an_id_and_a_secret_of_its_own() {
        let metadata = json!({ "client_name": "Desk", "redirect_uris": ["https://a.example/cb"] });
        let (one, two) = (made(&seal(), &metadata), made(&seal(), &metadata));
        assert_ne!(one.client.id, two.client.id);
        assert_eq!(one.client.key, two.client.key);
        let (secret, other) = (one.secret.unwrap(), two.secret.unwrap());
        assert!(is_secret(&seal(), &one.client.id, &secret));
        assert!(!is_secret(&seal(), &one.client.id, &other));
        assert!(!is_secret(&seal(), &one.client.id, ""));
        assert!(!is_secret(&seal(), &one.client.id, "svc_cs_"));
        assert!(!is_secret(&Seal::new(&[8; 32]).unwrap(), &one.client.id, &secret));
    }

    #[test]
    fn forged_ids_do_not_open() {
        let metadata =
            json!({ "redirect_uris": ["https://a.example/cb"], "token_endpoint_auth_method": "none" });
        let id = made(&seal(), &metadata).client.id.clone();
        let (text, signature) = id.strip_prefix(PREFIX).unwrap().split_once('.').unwrap();
        let evil = URL_SAFE_NO_PAD.encode(r#"{"r":["https://evil.example/cb"],"m":"none"}"#);
        for forged in [
            String::new(),
            PREFIX.to_owned(),
            format!("{PREFIX}."),
            format!("{PREFIX}{text}"),
            format!("{PREFIX}{text}."),
            format!("{PREFIX}{evil}.{signature}"),
            format!("{PREFIX}{text}.{}", URL_SAFE_NO_PAD.encode([0; 32])),
            format!("{PREFIX}{text}.{}", URL_SAFE_NO_PAD.encode(seal().sign(SECRET, text))),
            format!("{id}x"),
            format!("{id}="),
        ] {
            assert!(open(&seal(), &forged).is_none(), "{forged}");
        }
        assert!(open(&Seal::new(&[8; 32]).unwrap(), &id).is_none(), "of another installation");
    }

    #[test]
    fn metadata_that_no_url_can_carry_is_refused() {
        let addresses: Vec<String> =
            (0..3).map(|n| format!("https://a.example/{n}{}", "x".repeat(900))).collect();
        let metadata = json!({ "redirect_uris": addresses, "token_endpoint_auth_method": "none" });
        let error = register(&seal(), &SystemRandom::default(), metadata.to_string().as_bytes()).unwrap_err();
        assert!(matches!(error, MetadataError::Other(rule) if rule.contains("too large")));
    }
}
