//! The service's side: starts the zygote, keeps workers, and talks with them.

mod conversation;
mod pool;
mod sandbox;
mod shares;
mod worker;
mod zygote;

pub use sandbox::{Sandbox, Stats};
