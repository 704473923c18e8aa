//! The threads that ask the database: as many as there are connections.
//!
//! They share one queue. Under load each goes on with the next question without having slept, where a pool that grows
//! and shrinks by itself would wake a thread for each.

use crossbeam_channel::{Sender, unbounded};
use model::{Error, Result};
use prometheus::Histogram;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// The queue. The threads end when it is dropped and empty.
pub(crate) struct Threads {
    queue: Sender<Job>,
    /// How long jobs were in the queue.
    waits: Histogram,
}

impl Threads {
    /// Starts `number` threads.
    pub(crate) fn start(number: u32, waits: Histogram) -> Result<Self> {
        let (queue, receiver) = unbounded::<Job>();
        for _ in 0..number.max(1) {
            let receiver = receiver.clone();
            let work = move || receiver.into_iter().for_each(|job| job());
            std::thread::Builder::new().name("database".to_owned()).spawn(work)?;
        }
        Ok(Self { queue, waits })
    }

    /// How many jobs are waiting for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Does something on one of the threads. What is `only_for_the_answer` is not begun once nobody waits for it.
    ///
    /// # Errors
    /// What `work` fails with; an internal error where it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        only_for_the_answer: bool,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let runtime = Handle::current();
        let (waits, since) = (self.waits.clone(), Instant::now());
        let job = move || {
            waits.observe(since.elapsed().as_secs_f64());
            // What is read may call for work beside it.
            let _within = runtime.enter();
            if only_for_the_answer && reply.is_closed() {
                return;
            }
            let result = catch_unwind(AssertUnwindSafe(work))
                .unwrap_or_else(|_| Err(Error::internal("the work at the database panicked")));
            // Nobody waits any more where the request was cancelled.
            let _ = reply.send(result);
        };
        self.queue.send(Box::new(job)).map_err(|_| Error::internal("the database's threads have ended"))?;
        answer.await.map_err(Error::internal)?
    }
}
