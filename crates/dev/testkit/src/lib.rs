//! Test support: a separate database per test on both backends, and a clock that tests advance. The feature `app`
//! adds the whole service behind HTTP, with a scripted model.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up must fail"
)]
#![cfg_attr(
    feature = "app",
    expect(clippy::indexing_slicing, reason = "a test that looks in the wrong place must fail")
)]

mod absent;
#[cfg(feature = "app")]
mod app;
#[cfg(feature = "app")]
mod channel_app;
#[cfg(feature = "app")]
mod client;
mod database;
#[cfg(feature = "app")]
mod emitted;
#[cfg(feature = "app")]
mod energy;
#[cfg(feature = "app")]
mod events;
#[cfg(feature = "app")]
mod flows;
#[cfg(feature = "app")]
mod listening;
#[cfg(feature = "app")]
mod members;
mod plans;
#[cfg(feature = "app")]
mod program;
#[cfg(feature = "app")]
mod raw;
#[cfg(feature = "app")]
mod receiver;
#[cfg(feature = "app")]
mod scripted;

pub use absent::assert_absent;
#[cfg(feature = "app")]
pub use app::TestApp;
#[cfg(feature = "app")]
pub use channel_app::ChannelApp;
#[cfg(feature = "app")]
pub use client::{Answer, Asking, Client, Key, until};
pub use database::{Kind, TestDb};
#[cfg(feature = "app")]
pub use events::{ConversionSent, MessageSent};
#[cfg(feature = "app")]
pub use flows::{FlowEnd, ScriptedFlows, StartedFlow};
#[cfg(feature = "app")]
pub use listening::{Heard, Listening};
#[cfg(feature = "app")]
pub use members::Member;
pub use plans::expect_indexes;
#[cfg(feature = "app")]
pub use program::{Demo, Program, Serving};
#[cfg(feature = "app")]
pub use raw::{read_all, read_answer};
#[cfg(feature = "app")]
pub use receiver::{Answering, Delivered, Receiver};
#[cfg(feature = "app")]
pub use scripted::{OpenAiServer, Script, ScriptedModel, completion, tool_call};
pub use testkit_macros::both;
