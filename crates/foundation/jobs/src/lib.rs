//! The runner of work in the background.
//!
//! A job is a row of the table `jobs`, added by [`store::Tx::enqueue`] in the transaction that wants the work done.
//! Every replica runs a [`Runner`]; each claims jobs that are due under a lease, and a job whose owner vanished is
//! claimed again when the lease has run out. So a job may run more than once, now and then even twice at a time, and
//! a handler must be idempotent. What is never done twice is the settling of a job: that takes the epoch of the
//! newest claim.
//!
//! What a job does belongs to the area that asks for it; here is only when, how often and until when.

mod error;
mod job;
mod runner;
mod table;
mod work;

pub use error::JobError;
pub use job::{Job, JobContext, When};
pub use runner::{Runner, Running, Waker};
pub use table::{due_before, purge_failed};
pub use work::Aborted;
