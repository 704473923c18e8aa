//! Message templates: what the network has reviewed may be sent at any time.

mod model;
mod operations;
mod queries;

pub use model::{MessageTemplate, TemplateRow};
pub(crate) use operations::{
    CreateMessageTemplate, DeleteMessageTemplate, GetMessageTemplate, ListMessageTemplates, expect_approved,
};
pub use queries::named;
pub(crate) use queries::{approved, updated};
