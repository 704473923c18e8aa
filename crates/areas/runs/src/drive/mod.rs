//! Execution of accepted runs: the queue of a conversation, the main loop, recovery and retention.

mod queue;
mod recovery;
mod retention;
mod run_loop;
