//! Links with which a person decides something without a login, such as the approval of a tool's call: signed, each for one thing
//! that is asked, with a page for people and the same answer for programs.
//!
//! A link names what it is about and proves that it was made here. It is made on demand and not stored. Until when it works, and
//! that it works once, is up to what it is about: an [`Action`] looks at that under the lock of its own row. So each thing that is
//! asked needs an identity of its own, and the link of an answered question answers no later one.

mod decision;
mod link;
pub mod page;
mod required;
mod route;
mod shown;

pub use decision::{Decision, LONGEST_NOTE};
pub use link::Links;
pub use required::{RequiredAction, RequiredCall};
pub use route::{Action, Answered, Form, LinkRoute};
pub use shown::{cut, visible};
