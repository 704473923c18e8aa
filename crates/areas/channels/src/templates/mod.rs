//! Message templates: what the network has reviewed may be sent at any time.

mod model;
mod operations;
mod queries;

pub use model::MessageTemplate;
pub(crate) use model::TemplateRow;
pub(crate) use operations::{
    CreateMessageTemplate, DeleteMessageTemplate, GetMessageTemplate, ListMessageTemplates, expect_approved,
};
pub(crate) use queries::{approved, named, updated};
