//! The program: its commands, its demo, its upgrade.

pub(crate) mod admin;
pub(crate) mod app_tokens;
pub(crate) mod channel_check;
pub(crate) mod client_commands;
pub(crate) mod command_line;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod installation;
pub(crate) mod library;
pub(crate) mod log_reader;
pub(crate) mod operators;
pub(crate) mod processes;
pub(crate) mod program;
pub(crate) mod restore;
pub(crate) mod secrets;
pub(crate) mod skill_check;
pub(crate) mod upgrade;
