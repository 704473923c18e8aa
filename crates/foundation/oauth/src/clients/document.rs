//! Client id metadata documents: the `client_id` is the URL at which the metadata of the client is.
//!
//! The host of the URL is the only thing about a client that is verified, so the document is taken only from exactly
//! there: without redirects, and with the same URL as its `client_id`, byte for byte.

use super::client::{Client, ClientSource};
use super::metadata::{AuthMethod, MetadataError, RawMetadata, Strictness};
use super::remote::{Remote, RemoteError, fetch};
use egress::Connector;
use model::Timestamp;
use std::sync::Arc;
use url::Url;

/// The maximum length of a `client_id` that is a URL.
const LONGEST: usize = 1000;
/// The maximum size of a document.
const LARGEST: usize = 5 * 1024;

/// The documents that were fetched.
pub(super) struct Documents {
    connector: Connector,
    fetched: Remote<Client>,
}

impl Documents {
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, fetched: Remote::new() }
    }

    /// Returns the client of a URL, from the cache or from its host.
    pub(super) async fn client(&self, id: &str, now: Timestamp) -> Result<Arc<Client>, RemoteError> {
        check_url(id).map_err(RemoteError::Url)?;
        let fetched = async {
            let fetched = fetch(&self.connector, id, LARGEST).await?;
            Ok((read(id, &fetched.body)?, fetched.seconds))
        };
        self.fetched.get(id, now, fetched).await
    }
}

/// Reads a document.
fn read(id: &str, body: &[u8]) -> Result<Client, RemoteError> {
    let refused = |error: MetadataError| RemoteError::Content(format!("the document: {}", error.rule()));
    let raw = RawMetadata::parse(body).map_err(refused)?;
    if raw.client_id.as_deref() != Some(id) {
        let text = "the document's `client_id` is not its own URL, byte for byte";
        return Err(RemoteError::Content(text.to_owned()));
    }
    let has_secret = raw.client_secret.is_some();
    let metadata = raw.check(Strictness::Document, AuthMethod::None).map_err(refused)?;
    if has_secret || metadata.method.has_secret() {
        let text = "the document names a secret, but everybody can read it: use none or private_key_jwt";
        return Err(RemoteError::Content(text.to_owned()));
    }
    let host = host_of(id);
    let source = ClientSource::Document { host: host.clone() };
    Ok(Client::new(id.to_owned(), id.to_owned(), &host, source, metadata))
}

/// Returns whether a `client_id` has the form of a URL.
pub(super) fn is_url(client_id: &str) -> bool {
    client_id.starts_with("https://") || client_id.starts_with("http://")
}

/// Checks that a URL is spelled in the only way in which it can be a `client_id`. The connector checks its scheme and its
/// address.
fn check_url(id: &str) -> Result<(), &'static str> {
    if id.len() > LONGEST {
        return Err("it is longer than 1000 characters");
    }
    let url = Url::parse(id).map_err(|_| "it is not a URL")?;
    // Refuses default ports, dot segments, letter case in hosts and whatever else a parser changes.
    if url.as_str() != id {
        return Err("it is not written in the usual way");
    }
    if url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Err("it has a fragment or user info");
    }
    if url.path().len() < 2 {
        return Err("it has no path");
    }
    Ok(())
}

/// Returns the host and port of a checked URL.
fn host_of(id: &str) -> String {
    let authority = id.split_once("://").map_or(id, |(_, rest)| rest);
    authority.split(['/', '?']).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ID: &str = "https://app.example.com/oauth/client.json";

    fn read_json(document: &Value) -> Result<Client, RemoteError> {
        read(ID, document.to_string().as_bytes())
    }

    #[test]
    fn a_document_is_that_of_its_own_url() {
        let address = json!(["http://localhost/cb"]);
        let named = json!({ "client_id": ID, "client_name": "App", "redirect_uris": address });
        let client = read_json(&named).unwrap();
        assert_eq!((client.id.as_str(), client.key.as_str(), client.name.as_str()), (ID, ID, "App"));
        assert_eq!(client.method, AuthMethod::None);
        assert!(matches!(&client.source, ClientSource::Document { host } if host == "app.example.com"));
        let unnamed = read_json(&json!({ "client_id": ID, "redirect_uris": address })).unwrap();
        assert_eq!(unnamed.name, "app.example.com");
    }

    #[test]
    fn other_documents_are_refused() {
        let address = json!(["https://app.example.com/cb"]);
        let with = |name: &str, value: &str| {
            let mut document = json!({ "client_id": ID, "redirect_uris": address });
            document[name] = value.into();
            document
        };
        for (document, words) in [
            (json!([1]), "JSON object"),
            (json!({ "redirect_uris": address }), "byte for byte"),
            (with("client_id", &format!("{ID}/")), "byte for byte"),
            (with("client_id", &ID.to_uppercase()), "byte for byte"),
            (json!({ "client_id": ID }), "redirect_uris"),
            (json!({ "client_id": ID, "redirect_uris": ["http://evil.example/cb"] }), "redirect_uris"),
            (with("client_secret", "s"), "secret"),
            (with("token_endpoint_auth_method", "client_secret_post"), "secret"),
        ] {
            let error = read_json(&document).unwrap_err();
            let is_named = matches!(&error, RemoteError::Content(rule) if rule.contains(words));
            assert!(is_named, "{document}: {error:?}");
        }
    }

    #[test]
    fn a_client_id_is_spelled_in_one_way() {
        for id in [ID, "https://app.example.com/c", "https://app.example.com:8443/c?v=1"] {
            assert_eq!(check_url(id), Ok(()), "{id}");
        }
        for id in [
            "https://app.example.com",
            "https://app.example.com/",
            "https://APP.example.com/c",
            "https://app.example.com:443/c",
            "https://app.example.com/a/../c",
            "https://app.example.com/c#x",
            "https://user@app.example.com/c",
            "https://user:x@app.example.com/c",
            "https://app.example.com\\c",
            "https://app.example.com/c d",
            "https://bücher.example/c",
        ] {
            assert!(check_url(id).is_err(), "{id}");
        }
    }
}
