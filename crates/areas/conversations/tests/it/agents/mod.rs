//! Agents that answer contacts over channels.

mod agent_tools;
mod contact_scope;
mod context;
mod placeholders;
mod takeover;
mod talk;
