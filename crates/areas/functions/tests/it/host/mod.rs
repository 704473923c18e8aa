//! The host of a call: what `ctx.fetch`, `ctx.items` and `ctx.kv` do for programs in the sandbox.

mod bed;
mod data;
mod fetch;
mod hostile;
