//! What exports write and imports read back.

mod guard;

pub use guard::{guarded, unguarded};
