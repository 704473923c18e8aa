//! The shared words of the service: ids, scopes, callers, errors, events, pages, time and randomness.
//!
//! Nothing here does I/O or knows a protocol. A change rebuilds every crate, so it should be boring: what only
//! one group of areas needs belongs there.

mod caller;
mod cause;
mod clock;
mod conversions;
mod error;
mod event;
mod hex;
mod id;
mod json;
mod metadata;
mod patch;
mod raw_members;
mod role;
mod scope;
mod stored_time;
#[doc(hidden)]
pub mod text_enum;
mod trace;

pub use caller::{
    Answering, ApiKey, AuthorizedApp, Caller, Env, KeyOwner, MemberSession, Plan, Principal,
    SubscriptionStatus, Workspace, stricter,
};
pub use cause::{Actor, ActorType, Cause, Chain, RequestRef};
pub use clock::{Clock, ManualClock, Random, SeededRandom, SystemClock, SystemRandom, Timestamp, Zeros};
pub use error::{Code, Error, ErrorType, FieldError, LONGEST_RETRY_AFTER, Result};
pub use event::{Event, EventMeta, print_data, schema_of};
pub use hex::hex;
pub use id::*;
pub use json::JsonText;
pub use metadata::Metadata;
pub use patch::Patch;
pub use raw_members::{MemberName, RawMembers};
pub use role::MemberRole;
pub use scope::{Scope, ScopeSet};
pub use stored_time::StoredTime;
pub use trace::Trace;
