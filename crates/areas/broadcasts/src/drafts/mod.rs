//! Drafts, previews and test sends.

pub(crate) mod draft;
pub(crate) mod preview;
pub(crate) mod test_send;
