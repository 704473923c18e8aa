//! What every request passes, and who sends it.

pub mod gate;
pub mod me;
pub mod sessions;
