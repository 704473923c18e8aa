//! The runner of background jobs.
//!
//! A job is a row of the table `jobs`. [`store::Tx::enqueue`] inserts it in the transaction that needs the work done.
//! Each replica runs a [`Runner`], which claims due jobs under a lease. If the owner dies, another runner claims the
//! job after the lease has expired.
//!
//! A job may therefore run more than once, and in rare cases twice at the same time, so its handler must be
//! idempotent. Only the newest owner can settle a job: each claim increases the row's epoch, and settling requires
//! the current epoch.
//!
//! The work itself belongs to the crates that enqueue it. This crate decides when and how often a job runs.

mod error;
mod job;
mod runner;
mod table;
mod work;

pub use error::JobError;
pub use job::{Job, JobContext, When};
pub use runner::{Runner, Running};
pub use table::{due_before, purge_failed};
pub use work::Aborted;
