//! Work on channels: leases, notifications, send rates, and uploaded files.

mod lease;
mod notifier;
mod rates;
mod signals;
mod uploads;

pub use lease::{LEASE, Lease, RENEWAL, leased, leased_for_change};
pub use notifier::{Work, WorkNotifier};
pub use rates::Rates;
pub use signals::WorkSignals;
pub use uploads::{MediaId, UploadKey, Uploads};
