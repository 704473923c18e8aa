//! Keys and what they may do, and the workspaces in which they do it: secrets, the directory of keys and workspaces, rate windows, quotas, idempotency
//! records, and the sealing of secrets that must be read back.

mod cache;
mod directory;
pub mod idempotency;
pub mod keys;
pub mod partners;
pub mod plans;
mod quota;
mod rate;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod seal;
mod secret;
mod spending;
mod subscription;
pub mod workspaces;

pub use cache::Cache;
pub use directory::Directory;
pub use quota::{Quotas, requests_by_day, requests_by_lineage};
pub use rate::{RateWindows, Window};
pub use seal::{Seal, is_sealed_under};
pub use secret::{KeySecret, SecretHash};
pub use spending::{Spending, SpentMicros};
