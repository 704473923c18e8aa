//! A client, wherever it comes from.

use super::metadata::{AuthMethod, KeySource, Metadata};
use super::redirect;
use model::{AppId, Timestamp, WorkspaceId};
use ring::digest::{SHA256, digest};

/// An OAuth client.
#[derive(Debug, Clone)]
pub struct Client {
    /// The `client_id`.
    pub id: String,
    /// What stays the same when the app registers again. Grants of one member to one app have the same key.
    pub key: String,
    /// The name that the client gives itself, or its host.
    pub name: String,
    /// Where its metadata comes from.
    pub source: ClientSource,
    /// The registered redirect addresses.
    pub redirect_uris: Vec<String>,
    /// How it authenticates.
    pub method: AuthMethod,
    /// Its public keys, for [`AuthMethod::PrivateKeyJwt`].
    pub keys: Option<KeySource>,
}

/// Where the metadata of a client comes from.
#[derive(Debug, Clone)]
pub enum ClientSource {
    /// An app that a workspace has registered.
    Registered {
        /// The app.
        app: AppId,
        /// The workspace.
        workspace: WorkspaceId,
        /// Its secrets.
        secrets: AppSecrets,
    },
    /// A client id metadata document, which was fetched from this host.
    Document {
        /// The host, with the port if there is one.
        host: String,
    },
    /// The `client_id` itself: a dynamic registration.
    Sealed,
}

/// The digests of the secrets of an app. After a rotation the old one is valid for a while.
#[derive(Debug, Clone, Default)]
pub struct AppSecrets {
    /// The digest of the secret.
    pub current: Option<Vec<u8>>,
    /// The digest of the secret before the rotation, and when it ends.
    pub previous: Option<(Vec<u8>, Timestamp)>,
}

impl Client {
    /// Returns whether a request may name this redirect address.
    pub fn accepts_redirect(&self, requested: &str) -> bool {
        self.redirect_uris.iter().any(|registered| redirect::matches(registered, requested))
    }

    /// Creates a client of checked metadata.
    pub(super) fn new(
        id: String,
        key: String,
        fallback_name: &str,
        source: ClientSource,
        metadata: Metadata,
    ) -> Self {
        let Metadata { name, redirect_uris, method, keys } = metadata;
        let name = name.unwrap_or_else(|| fallback_name.to_owned());
        Self { id, key, name, source, redirect_uris, method, keys }
    }
}

impl AppSecrets {
    /// Returns whether a secret is one of them.
    pub(super) fn contain(&self, secret: &str, now: Timestamp) -> bool {
        let hash = hash_secret(secret);
        let previous = self.previous.as_ref().filter(|(_, until)| *until > now).map(|(hash, _)| hash);
        // Digests of high-entropy secrets reveal nothing by the time of their comparison, but equal time costs nothing.
        self.current.iter().chain(previous).fold(false, |found, known| found | is_equal(known, &hash))
    }
}

/// Returns the digest under which the secret of an app is stored. It has 256 random bits, so it needs no slow hash.
pub(super) fn hash_secret(secret: &str) -> Vec<u8> {
    digest(&SHA256, secret.as_bytes()).as_ref().to_vec()
}

/// Compares in a time that depends only on the lengths.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
}
