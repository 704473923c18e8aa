//! Message templates: their components and how values fill them.

mod check;
mod components;
mod fill;
mod text;

pub use components::{
    TemplateBody, TemplateButton, TemplateButtonType, TemplateComponents, TemplateHeader,
    TemplateHeaderFormat,
};
pub use fill::{ResolvedMessage, SentTemplate};
pub use text::{fill, variables};
