//! Conversations: what is said between a contact and the business over one channel.

mod assigned;
mod dashboard;
mod list;
mod model;
mod search;
mod state;

pub use assigned::AutoAssigned;
pub(crate) use state::job;
pub use state::{ConversationState, StateChange, set_state};

use crate::viewers::{LeaveConversation, ViewConversation};
use operation::{Domain, Operations};

/// What is said between contacts and the business.
pub struct Conversations;

impl Domain for Conversations {
    const AREA: &'static str = "Conversations";
    const ORDER: u16 = 180;
    const DESCRIPTION: &'static str = "Conversations are what is said between a contact and the business, one for each channel. Read them, search their \
         messages, and save answers that are given often.";

    fn operations() -> Operations {
        vec![
            Box::new(list::ListConversations),
            Box::new(search::SearchConversations),
            Box::new(list::GetConversation),
            Box::new(list::ListConversationMessages),
            Box::new(dashboard::CloseConversation),
            Box::new(dashboard::ReopenConversation),
            Box::new(dashboard::SnoozeConversation),
            Box::new(ViewConversation),
            Box::new(LeaveConversation),
        ]
    }
}
