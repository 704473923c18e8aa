//! An installation with accounts, and replicas of it.

use accounts::account::{self, NewAccount};
use accounts::{Account, Actor, Email, PasswordHash, Passwords, Secret, Session, SignIn, SignedIn, sessions};
use auth::workspaces::{self, NewWorkspace};
use auth::{RateWindows, Seal};
use chrono::Duration;
use model::{Result, WorkspaceId};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use store::{Db, Tx};
use testkit::{Kind, TestDb};

pub(crate) const PASSWORD: &str = "correct horse battery";

/// An address; each number is another one.
pub(crate) fn address(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number))
}

pub(crate) fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

pub(crate) struct Bed {
    pub(crate) data: TestDb,
    pub(crate) sign_in: Arc<SignIn>,
}

impl Bed {
    pub(crate) fn new(kind: Kind) -> Self {
        let data = TestDb::new(kind);
        let sign_in = service(data.db.clone());
        Self { data, sign_in }
    }

    /// Returns the service of another process on the same database.
    pub(crate) fn replica(&self) -> Arc<SignIn> {
        service(self.data.reopen())
    }

    pub(crate) fn db(&self) -> &Db {
        &self.data.db
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.data.clock.advance(Duration::seconds(seconds));
    }

    pub(crate) async fn hash(&self, password: &str) -> PasswordHash {
        self.sign_in.passwords().hash(password.to_owned(), &email("nobody@example.com")).await.unwrap()
    }

    /// Creates an account with the password of all accounts here.
    pub(crate) async fn account(&self, address: &str) -> Account {
        let new = NewAccount {
            email: email(address),
            name: "Marta Ruiz".to_owned(),
            password_hash: self.hash(PASSWORD).await,
            operator: false,
        };
        self.write(move |tx| account::create(tx, &new, &Actor::CommandLine)).await.unwrap()
    }

    pub(crate) async fn workspace(&self) -> WorkspaceId {
        self.write(|tx| {
            let slug = model::SessionId::new(tx.now(), &*tx.random()).as_str().replace('_', "-");
            let new = NewWorkspace { name: "Acme".to_owned(), slug, partner: None };
            Ok(workspaces::create(tx, &new)?.id)
        })
        .await
        .unwrap()
    }

    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.db().write(work).await
    }

    /// Returns the open session with a secret.
    pub(crate) async fn find(&self, secret: &Secret) -> Option<Session> {
        let secret = secret.clone();
        self.db().read(move |read| sessions::by_secret(read, &secret)).await.unwrap()
    }

    /// Signs in from a browser that has no device cookie.
    pub(crate) async fn attempt(&self, email: &str, password: &str) -> Result<SignedIn> {
        self.sign_in.attempt(email, password.to_owned(), None, address(1), "Firefox").await
    }

    pub(crate) async fn signed_in(&self, email: &str) -> SignedIn {
        self.attempt(email, PASSWORD).await.unwrap()
    }
}

fn service(db: Db) -> Arc<SignIn> {
    let seal = Arc::new(Seal::new(&[7; 32]).unwrap());
    let passwords = Arc::new(Passwords::new(db.random()));
    Arc::new(SignIn::new(db, passwords, seal, Arc::new(RateWindows::local())))
}
