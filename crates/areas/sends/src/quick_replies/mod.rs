//! Quick replies: answers that are saved, because they are given often.

mod body;
mod model;
mod operations;
mod ports;
mod render;
mod row;

pub(crate) use ports::{QuickReplyFiles, QuickReplyVariables};
pub(crate) use render::{Filling, Rendered, rendered};

use operation::{Domain, EventType, Operations};

/// Quick replies, which stand with the conversations in the contract.
pub(crate) struct QuickReplies;

impl Domain for QuickReplies {
    const AREA: &'static str = "Conversations";
    const ORDER: u16 = 180;
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListQuickReplies),
            Box::new(operations::CreateQuickReply),
            Box::new(operations::UpdateQuickReply),
            Box::new(operations::DeleteQuickReply),
        ]
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<model::QuickReplyEvent>()
    }
}
