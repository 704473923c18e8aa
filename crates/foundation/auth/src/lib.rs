//! Authentication and its storage: API keys, the cached directory of keys and workspaces, rate limits, quotas,
//! idempotency records, and the encryption of stored secrets.

mod cache;
mod directory;
pub mod idempotency;
mod identity;
mod installation;
pub mod jwt;
pub mod keys;
pub mod partners;
pub mod plans;
mod quota;
mod rate;
pub mod reseal;
pub mod roles;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod seal;
mod secret;
mod spending;
mod subscription;
pub mod workspaces;

pub use cache::Cache;
pub use directory::{CountContacts, Directory};
pub use identity::{Audience, Identity};
pub use installation::{InstalledKeys, adopt_key, begin_rotation, end_rotation, installed_keys};
pub use quota::{Quotas, requests_by_day, requests_by_lineage};
pub use rate::{RateWindows, Window, ping as ping_redis};
pub use seal::{Piece, Seal, SealedTable, SecretKey};
pub use secret::{KeySecret, SecretHash, SecretText};
pub use spending::{Spending, SpentMicros};

/// The tables with encrypted values.
pub const SEALED: &[&SealedTable] = &[&idempotency::SEALED];
