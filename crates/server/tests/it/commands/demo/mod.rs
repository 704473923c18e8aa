//! `svc serve --demo`.

mod answers;
mod chat;
mod desk;
mod settings;
