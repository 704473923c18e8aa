//! The job that deletes what is over: sessions, links, and counters of failures.

use crate::{guessing, links, sessions};
use jobs::Job;
use std::time::Duration;

/// Returns the jobs of this crate.
pub fn jobs() -> Vec<Job> {
    vec![Job::every(
        "accounts.purge",
        Duration::from_secs(3_600),
        "deletes ended sessions, links a week after their end, and failures to sign in of the day before",
        |job| async move {
            while job.db.write(sessions::purge).await? > 0 {}
            while job.db.write(links::purge).await? > 0 {}
            while job.db.write(guessing::purge).await? > 0 {}
            Ok(())
        },
    )]
}
