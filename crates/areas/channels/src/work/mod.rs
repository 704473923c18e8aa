//! The work on channels: the lease of each channel, the notifications of new work, the rates, and the files that networks keep.

mod lease;
mod notifier;
mod rates;
mod signals;
mod uploads;

pub use lease::{Lease, RENEWAL, leased, leased_for_change};
pub use notifier::{Work, WorkNotifier};
pub use rates::Rates;
pub use signals::WorkSignals;
pub use uploads::{MediaId, UploadKey, Uploads};
