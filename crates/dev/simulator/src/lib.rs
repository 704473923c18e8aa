//! A chat network on this machine: a loopback HTTP server that speaks the network's own wire form and enforces its rules,
//! with customers who do as they are told.
//!
//! [`Simulator::start`] gives a handle for tests in the same process. The same can be asked over HTTP under `/control`,
//! and `/` is a page on which a person chats as a customer, and answers for the business.

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
