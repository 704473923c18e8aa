//! The service through its front door, on both databases.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that goes wrong must fail")]

mod runs;
