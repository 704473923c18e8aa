//! Who is signed in.

use accounts::{Secret, Session, account, sessions};
use model::{AccountId, Result, SessionId, Timestamp};
use store::Db;

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
    session: Session,
}

impl SignedIn {
    /// Returns whether the last proof is younger than ten minutes.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        self.session.is_recent(now)
    }

    /// Returns the session of a cookie, and notes that it is used.
    pub(crate) async fn find(db: &Db, secret: &str) -> Result<Option<Self>> {
        let Some(secret) = Secret::parse(secret) else { return Ok(None) };
        let found = db.read(move |read| {
            let Some(session) = sessions::by_secret(read, &secret)? else { return Ok(None) };
            let account = account::find(read, &session.account_id)?;
            Ok(Some((session, account)))
        });
        let Some((session, account)) = found.await? else { return Ok(None) };
        if session.is_to_be_touched(db.now()) {
            let id = session.id.clone();
            db.write(move |tx| sessions::touch(tx, &id)).await?;
        }
        Ok(Some(Self {
            id: session.id.clone(),
            account: session.account_id.clone(),
            email: account.email,
            name: account.name,
            authenticated_at: session.authenticated_at,
            session,
        }))
    }
}
