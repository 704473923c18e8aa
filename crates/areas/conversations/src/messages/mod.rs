//! Messages: what was said in conversations.

mod broadcasts;
mod conversation;
mod delete;
mod detail;
pub(crate) mod enqueue;
mod forget;
mod list;
mod lookup;
mod model;
mod outbox;
mod print;
mod read_mark;
mod readable;
mod references;
mod row;
pub(crate) mod terms;
mod turns;

pub use broadcasts::BroadcastRecipients;
pub use conversation::{Conversation, ConversationStatus};
pub(crate) use delete::delete;
pub use detail::{Detail, Location};
pub(crate) use enqueue::{
    AttachmentStatus, NewMessage, TranscriptStatus, by_provider_id, known_provider_ids, write, write_all,
};
pub use enqueue::{NewAttachment, Outgoing, Priority, enqueue, enqueue_all};
pub(crate) use forget::{is_locked, trash_unused};
pub use list::ContactMessages;
pub(crate) use lookup::files_of_all;
pub use lookup::{by_client_key, expect_in, files_of, lock, of_channel, sent_in};
pub use model::{Message, MessageAttachment, MessageReaction, MessageSender, MessageStatusChange};
pub(crate) use outbox::{Outbox, may_come_twice};
pub use outbox::{begin_attempt, cancel, requeue, withdraw};
pub(crate) use print::print;
pub use read_mark::mark_read;
pub(crate) use readable::readable;
pub(crate) use references::{MESSAGE, MessageFiles, MessageReferences};
pub use row::{
    Alike, MessageDirection, MessageError, MessageRow, MessageSenderType, MessageStatus, MessageType, Sender,
};
pub use turns::Turns;
pub(crate) use turns::transcripts;

/// The most characters of a text that the network takes.
pub const LONGEST_TEXT: usize = 4_096;
