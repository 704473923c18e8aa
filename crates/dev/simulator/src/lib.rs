//! A simulated chat network: an HTTP server on a loopback address that speaks the network's protocol and enforces its
//! rules. Its customers are controlled by tests and people.
//!
//! [`Simulator::start`] returns a handle for tests in the same process. The routes under `/control` offer the same
//! over HTTP. The page at `/` lets a person chat as a customer, and reply for the business.

mod clock;
mod connection;
mod control;
mod control_error;
mod dispatch;
mod ogg;
mod server;
mod settings;
mod simulator;
mod world;

pub use clock::VirtualClock;
pub use control::{NewTemplate, Review};
pub use control_error::ControlError;
pub use settings::{Connection, Service, Settings, StartError};
pub use simulator::Simulator;
pub use world::{
    Action, Behaviour, CallbackCounts, ChatLine, Faults, MediaFaults, NewUser, ReadMark, Scripted, SendFault,
    Sent, SentStatus, User,
};
