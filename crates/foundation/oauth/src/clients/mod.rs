//! Clients: where they come from, and how they prove who they are.
//!
//! A `client_id` is one of three: the id of an app that a workspace has registered ([`apps`]), the URL of a metadata
//! document ([`document`]), or the sealed metadata of a dynamic registration ([`sealed`]). Only the first has a row.

pub mod apps;
mod assertion;
mod client;
mod credentials;
mod document;
mod error;
mod metadata;
pub mod redirect;
mod remote;
mod sealed;

pub use client::{AppSecrets, Client, ClientSource};
pub use credentials::{Credentials, CredentialsError, Proof};
pub use error::ClientError;
pub use metadata::{AuthMethod, KeySource, Metadata, MetadataError};
pub use remote::RemoteError;
pub use sealed::Registration;

use crate::schema::oauth_grants;
use assertion::{Assertions, purge};
use auth::Seal;
use diesel::prelude::*;
use document::Documents;
use egress::Connector;
use model::{AppId, KeyId, Result};
use std::sync::Arc;
use store::Db;

/// Finds, registers and authenticates clients.
pub struct Clients {
    db: Db,
    seal: Arc<Seal>,
    documents: Documents,
    assertions: Assertions,
    /// Whether clients may register dynamically.
    registration: bool,
}

impl Clients {
    /// Creates the directory of clients. `audiences` are the URLs that assertions may name as their audience: the issuer
    /// and the token endpoint.
    pub fn new(
        db: Db,
        seal: Arc<Seal>,
        connector: Connector,
        audiences: Vec<String>,
        registration: bool,
    ) -> Self {
        let documents = Documents::new(connector.clone());
        let assertions = Assertions::new(db.clone(), connector, audiences);
        Self { db, seal, documents, assertions, registration }
    }

    /// Returns whether clients may register dynamically.
    pub fn has_registration(&self) -> bool {
        self.registration
    }

    /// Returns whether finding this client may send a request to a server that the `client_id` names.
    pub fn is_remote(client_id: &str) -> bool {
        document::is_url(client_id)
    }

    /// Returns the client with this `client_id`.
    ///
    /// # Errors
    /// [`ClientError::Unknown`], [`ClientError::Document`].
    pub async fn find(&self, client_id: &str) -> std::result::Result<Arc<Client>, ClientError> {
        if Self::is_remote(client_id) {
            let client = self.documents.client(client_id, self.db.now()).await;
            return client.map_err(ClientError::Document);
        }
        let found = match AppId::parse(client_id) {
            Some(id) => self.db.read(move |read| apps::client(read, &id)).await?,
            None => sealed::open(&self.seal, client_id),
        };
        found.map(Arc::new).ok_or(ClientError::Unknown)
    }

    /// Registers a client by its metadata in JSON.
    ///
    /// # Errors
    /// [`MetadataError`].
    pub fn register(&self, json: &[u8]) -> std::result::Result<Registration, MetadataError> {
        sealed::register(&self.seal, &*self.db.random(), json)
    }

    /// Returns the client that sent these credentials. A client without a secret only has to name itself.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn authenticate(
        &self,
        credentials: &Credentials,
    ) -> std::result::Result<Arc<Client>, ClientError> {
        let refused = |reason| Err(ClientError::Unauthenticated(reason));
        let id = match (&credentials.client_id, &credentials.proof) {
            (Some(id), _) => id.clone(),
            (None, Proof::Assertion(jwt)) => match assertion::issuer(jwt) {
                Some(id) => id,
                None => return refused("`client_assertion` is not a JWT with `iss`"),
            },
            (None, _) => return refused("`client_id` is missing"),
        };
        // Otherwise everybody could make the service fetch any URL here. To get a grant takes a member who is signed in.
        if Self::is_remote(&id) && !self.has_grant(&id).await? {
            return Err(ClientError::Unknown);
        }
        let client = self.find(&id).await?;
        match (client.method, &credentials.proof) {
            (AuthMethod::None, Proof::None) => Ok(client),
            (AuthMethod::PrivateKeyJwt, Proof::Assertion(jwt)) => {
                self.assertions.check(&client, jwt).await?;
                Ok(client)
            }
            // Libraries choose one of the two on their own, and both prove the same.
            (
                AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost,
                Proof::Basic(secret) | Proof::Post(secret),
            ) => match self.is_secret(&client, secret) {
                true => Ok(client),
                false => refused("the secret is wrong"),
            },
            // Libraries send an empty secret for clients without one.
            (AuthMethod::None, Proof::Basic(secret) | Proof::Post(secret)) if secret.is_empty() => Ok(client),
            _ => refused("the client has registered another method to authenticate"),
        }
    }

    /// Returns whether a secret is that of a client.
    fn is_secret(&self, client: &Client, secret: &str) -> bool {
        match &client.source {
            ClientSource::Registered { secrets, .. } => secrets.contain(secret, self.db.now()),
            ClientSource::Sealed => sealed::is_secret(&self.seal, &client.id, secret),
            ClientSource::Document { .. } => false,
        }
    }

    async fn has_grant(&self, client_id: &str) -> Result<bool> {
        let of_client = client_id.to_owned();
        let count = self.db.read(move |read| {
            let grants = oauth_grants::table.filter(oauth_grants::client_key.eq(of_client)).limit(1);
            Ok(grants.select(oauth_grants::key_id).first::<KeyId>(read.connection()).optional()?)
        });
        Ok(count.await?.is_some())
    }

    /// Deletes the ids of assertions that have expired. Returns how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn purge_assertions(&self) -> Result<usize> {
        self.db.write(purge).await
    }
}
