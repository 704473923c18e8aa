//! Quick replies: answers that are saved, because they are given often.

mod body;
mod model;
mod operations;
mod ports;
mod render;
mod row;

pub(crate) use ports::{QuickReplyFiles, QuickReplyVariables};
pub(crate) use render::{Filling, Rendered, rendered};

use operation::{EventType, Operations};

pub(crate) fn operations() -> Operations {
    vec![
        Box::new(operations::ListQuickReplies),
        Box::new(operations::CreateQuickReply),
        Box::new(operations::UpdateQuickReply),
        Box::new(operations::DeleteQuickReply),
    ]
}

pub(crate) fn event_types() -> Vec<EventType> {
    EventType::of::<model::QuickReplyEvent>()
}
