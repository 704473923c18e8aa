//! Flows through the whole service, on both databases.

mod drafts;
