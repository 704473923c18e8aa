//! People who sign in: accounts, the members that they are in workspaces, sessions, one-time links, passwords, and the
//! audit log.

pub mod account;
pub mod audit;
mod email;
pub mod first_operator;
mod guessing;
mod housekeeping;
pub mod links;
pub mod memberships;
mod passwords;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod secret;
mod session_tokens;
pub mod sessions;
mod sign_in;

pub use account::Account;
pub use audit::{AUDIT_LOG, Actor};
pub use email::Email;
pub use housekeeping::jobs;
pub use memberships::Membership;
pub use passwords::{PasswordHash, Passwords};
pub use secret::Secret;
pub use session_tokens::SessionTokens;
pub use sessions::Session;
pub use sign_in::{SignIn, SignedIn};
