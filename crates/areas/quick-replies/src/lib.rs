//! Quick replies: answers that are saved, because they are given often.

mod body;
mod model;
mod operations;
mod ports;
mod render;
mod row;
mod schema;

pub use ports::{QuickReplyFiles, QuickReplyVariables};
pub use render::{Filling, Rendered, rendered};

use operation::{EventType, Operations};

/// The operations over quick replies.
pub fn operations() -> Operations {
    vec![
        Box::new(operations::ListQuickReplies),
        Box::new(operations::CreateQuickReply),
        Box::new(operations::UpdateQuickReply),
        Box::new(operations::DeleteQuickReply),
    ]
}

/// The events of quick replies.
pub fn event_types() -> Vec<EventType> {
    EventType::of::<model::QuickReplyEvent>()
}
