//! Runs JavaScript of strangers.
//!
//! [`Sandbox`] is the parent's side: it starts a **zygote** (the same program executed again), which gives up its environment,
//! descriptors, rights and most system calls, and then only forks **workers**. A worker runs calls of one program, each in a
//! fresh engine, and reaches the outside only through messages to the parent, which treats it as hostile.
//!
//! A program is an ECMAScript module with `export default async function (ctx) { … }`. What it asks of the outside, the
//! caller's [`Host`] answers. `docs/sandbox.md` has the threat model.
//!
//! The crate uses no other crate of the workspace, and is the only one with `unsafe` code (in `sys.rs`).

mod call;
mod child;
mod host;
mod json;
mod parent;
mod settings;
mod sys;
pub mod wire;

pub use call::{
    BadOutput, BadValue, Call, Effect, Error, Failure, Fixed, Key, Landlock, Level, LogLine, Outcome,
    Program, Protection, Secret,
};
pub use child::{Channel, Options, serve, zygote, zygote_if_asked};
pub use host::{FetchRequest, FetchResponse, Host, HostError, NoHost};
pub use parent::{Sandbox, Stats};
pub use settings::{Limits, Settings};
