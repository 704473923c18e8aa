//! Keys and what they may do: secrets, the directory of keys and workspaces, rate windows, quotas, idempotency
//! records, and the sealing of secrets that must be read back.

mod cache;
mod directory;
pub mod idempotency;
pub mod keys;
mod quota;
mod rate;
mod seal;
mod secret;
mod spending;

pub use cache::Cache;
pub use directory::Directory;
pub use quota::Quotas;
pub use rate::{RateWindows, Window};
pub use seal::{Seal, is_sealed_under};
pub use secret::{KeySecret, SecretHash};
pub use spending::Spending;
