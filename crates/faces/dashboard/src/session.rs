//! Who is signed in.

use crate::web::Web;
use model::{AccountId, Result, SessionId, Timestamp};

/// For how long a proof of who somebody is counts as recent, in seconds.
const RECENT_SECONDS: i64 = 600;

/// An open session with its account.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// The id of the session.
    pub id: SessionId,
    /// The account.
    pub account: AccountId,
    /// The e-mail address.
    pub email: String,
    /// The name.
    pub name: String,
    /// When the account last proved who it is.
    pub authenticated_at: Timestamp,
}

impl SignedIn {
    /// Returns whether the last proof is younger than ten minutes.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        now < self.authenticated_at.plus_seconds(RECENT_SECONDS)
    }

    /// Returns the session of a cookie.
    pub(crate) async fn find(_web: &Web, _secret: &str) -> Result<Option<Self>> {
        Ok(None)
    }
}
