//! Messages: what was said in conversations.

mod conversation;
mod delete;
mod detail;
mod enqueue;
mod forget;
mod list;
mod model;
mod print;
mod readable;
mod references;
mod requeue;
mod row;
pub(crate) mod terms;
mod together;
mod turns;

pub(crate) use conversation::{Conversation, ConversationStatus};
pub(crate) use delete::delete;
pub(crate) use detail::Detail;
pub use detail::Location;
pub(crate) use enqueue::{
    AttachmentStatus, NewAttachment, NewMessage, Outgoing, Priority, TranscriptStatus, by_provider_id,
    enqueue, known_provider_ids, write,
};
pub(crate) use forget::{is_locked, trash_unused};
pub use list::ContactMessages;
pub use model::{Message, MessageAttachment, MessageReaction, MessageSender, MessageStatusChange};
pub(crate) use print::print;
pub(crate) use readable::readable;
pub(crate) use references::{MESSAGE, MessageFiles, MessageReferences};
pub(crate) use requeue::{may_come_twice, requeue};
pub use row::MessageRow;
pub(crate) use row::{
    Alike, MessageDirection, MessageError, MessageSenderType, MessageStatus, MessageType, Sender,
};
pub(crate) use together::{enqueue_all, write_all};
pub use turns::Turns;
pub(crate) use turns::transcripts;

/// The most characters of a text that the network takes.
pub const LONGEST_TEXT: usize = 4_096;
