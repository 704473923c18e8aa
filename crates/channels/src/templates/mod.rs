//! Message templates: what the network has reviewed may be sent at any time.

mod components;
mod model;
mod operations;
mod queries;
mod resolve;

pub(crate) use components::variables;
pub use model::MessageTemplate;
pub(crate) use model::TemplateRow;
pub(crate) use operations::{
    CreateMessageTemplate, DeleteMessageTemplate, GetMessageTemplate, ListMessageTemplates, expect_approved,
};
pub(crate) use queries::{approved, named, updated};
pub(crate) use resolve::{ResolvedMessage, button_params, expect_media, fill, resolve};
