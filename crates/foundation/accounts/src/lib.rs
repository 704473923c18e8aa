//! People who sign in: accounts, the members that they are in workspaces, sessions, one-time links, passwords, and the
//! audit log.

pub mod account;
pub mod audit;
mod email;
pub mod links;
pub mod memberships;
mod passwords;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod secret;
mod session_tokens;
<<<<<<< HEAD
mod standing;
=======
pub mod sessions;
>>>>>>> f792fc07b46f3d9192e1a26e4aca19ae354fccc8

pub use account::Account;
pub use audit::{AUDIT_LOG, Actor};
pub use email::Email;
pub use memberships::Membership;
pub use passwords::{PasswordHash, Passwords};
pub use secret::Secret;
pub use session_tokens::SessionTokens;
<<<<<<< HEAD
pub use standing::is_active;
=======
pub use sessions::Session;
>>>>>>> f792fc07b46f3d9192e1a26e4aca19ae354fccc8
