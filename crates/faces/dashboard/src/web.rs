//! What all pages share.

use crate::cookies::Cookie;
use crate::session::SignedIn;
use crate::site::Site;
use accounts::{SessionTokens, SignIn};
use auth::{Directory, Seal};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Result;
use oauth::AccessTokens;
use operation::{RawAnswer, RawRequest};
use std::sync::Arc;
use store::Db;

/// The services behind the pages.
pub struct WebParts {
    /// The database.
    pub db: Db,
    /// Signs form tokens and the marks of browsers.
    pub seal: Arc<Seal>,
    /// The address of the service.
    pub site: Site,
    /// Caches keys and workspaces.
    pub directory: Arc<Directory>,
    /// Issues the tokens that pages use the API with.
    pub session_tokens: Arc<SessionTokens>,
    /// Caches the tokens of apps.
    pub access_tokens: Arc<AccessTokens>,
    /// Checks passwords.
    pub sign_in: Arc<SignIn>,
}

/// The services behind the pages, shared.
#[derive(Clone)]
pub struct Web(Arc<WebParts>);

impl Web {
    /// Creates them.
    pub fn new(parts: WebParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Returns the database.
    pub fn db(&self) -> &Db {
        &self.0.db
    }

    /// Returns what signs form tokens.
    pub fn seal(&self) -> &Seal {
        &self.0.seal
    }

    /// Returns the address of the service.
    pub fn site(&self) -> &Site {
        &self.0.site
    }

    /// Returns what checks passwords.
    pub fn sign_in(&self) -> &SignIn {
        &self.0.sign_in
    }

    /// Returns what issues tokens of sessions.
    pub(crate) fn session_tokens(&self) -> &SessionTokens {
        &self.0.session_tokens
    }

    /// Clears the caches of this process after somebody has lost access, so that the next request sees it. Other
    /// replicas see it within ten seconds.
    pub(crate) fn forget(&self) {
        self.0.directory.forget();
        self.0.session_tokens.forget();
        self.0.access_tokens.forget();
    }

    /// Returns who is signed in, as the cookie of a request proves it. Returns `None` for a cookie that opens no session.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn signed_in(&self, request: &RawRequest) -> Result<Option<SignedIn>> {
        match Cookie::Session.read(self.site(), request) {
            Some(secret) => SignedIn::find(self.db(), &secret).await,
            None => Ok(None),
        }
    }

    /// Returns this many random bytes as text.
    pub(crate) fn random_text<const BYTES: usize>(&self) -> String {
        let mut bytes = [0; BYTES];
        self.db().random().fill(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

/// Adds the headers of all pages: in no frame, cache or index, and no referrer, because addresses contain codes. There is no
/// `Cross-Origin-Opener-Policy`: apps open the consent page in a window to which they have to stay connected.
pub fn guarded(answer: RawAnswer) -> RawAnswer {
    answer
        .header("x-content-type-options", "nosniff")
        .header("x-frame-options", "DENY")
        .header("referrer-policy", "no-referrer")
        .header("cache-control", "no-store")
        .header("x-robots-tag", "noindex")
}
