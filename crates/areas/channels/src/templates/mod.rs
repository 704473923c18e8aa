//! Message templates. A template that the network has approved can be sent at any time.

mod events;
mod model;
mod operations;
mod queries;

pub(crate) use events::TemplateUpdated;
pub use model::{MessageTemplate, TemplateRow};
pub use operations::expect_approved;
pub(crate) use operations::{
    CreateMessageTemplate, DeleteMessageTemplate, GetMessageTemplate, ListMessageTemplates,
};
pub use queries::{approved, components_named, named, updated};
