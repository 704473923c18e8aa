//! The names of discovery tools and everyday operations.

pub(super) const FIND: &str = "svc_find_operations";
pub(super) const DESCRIBE: &str = "svc_describe_operation";
pub(super) const READ: &str = "svc_read";
pub(super) const WRITE: &str = "svc_write";
pub(super) const DELETE: &str = "svc_delete";

/// The names of the discovery tools.
pub(super) const NAMES: [&str; 5] = [FIND, DESCRIBE, READ, WRITE, DELETE];

/// The operations of the default list. An operation that the service does not have yet appears with it.
const EVERYDAY: [&str; 17] = [
    "getMe",
    "listContacts",
    "getContact",
    "upsertContact",
    "createContactNote",
    "listTasks",
    "createTask",
    "completeTask",
    "listCollections",
    "getCollectionSchema",
    "listItems",
    "createItem",
    "listConversations",
    "createRun",
    "listSnapshots",
    "getSnapshot",
    "installSnapshot",
];

/// Returns whether an operation is a tool of the default list.
pub(super) fn is_everyday(id: &str) -> bool {
    EVERYDAY.contains(&id)
}

/// Returns whether a discovery tool is listed for read-only clients.
pub(super) fn is_read_only(name: &str) -> bool {
    matches!(name, FIND | DESCRIBE | READ)
}
