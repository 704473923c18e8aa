//! The threads that ask the database: as many as there are connections.
//!
//! They share two queues, and serve the one of high priority first. Under load each goes on with the next question without
//! having slept, where a pool that grows and shrinks by itself would wake a thread for each.

use crossbeam_channel::{Sender, select_biased, unbounded};
use model::{Error, Result};
use prometheus::Histogram;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// What goes first when all threads are busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    High,
    Normal,
}

/// The queues. The threads end when they are dropped.
pub(crate) struct Threads {
    high: Sender<Job>,
    normal: Sender<Job>,
    /// How long jobs were in a queue.
    waits: Histogram,
}

impl Threads {
    /// Starts `number` threads.
    pub(crate) fn start(number: u32, waits: Histogram) -> Result<Self> {
        let (high, first) = unbounded::<Job>();
        let (normal, then) = unbounded::<Job>();
        for _ in 0..number.max(1) {
            let (first, then) = (first.clone(), then.clone());
            let next = move || select_biased! { recv(first) -> job => job, recv(then) -> job => job }.ok();
            let work = move || std::iter::from_fn(&next).for_each(|job| job());
            std::thread::Builder::new().name("database".to_owned()).spawn(work)?;
        }
        Ok(Self { high, normal, waits })
    }

    /// How many jobs are waiting for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.high.len() + self.normal.len()
    }

    /// Does something on one of the threads, which answers at once or hands the answer on. What is `only_for_the_answer` is
    /// not begun once nobody waits for it.
    ///
    /// # Errors
    /// What is answered; an internal error where `work` panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        priority: Priority,
        only_for_the_answer: bool,
        work: impl FnOnce(Answer<T>) + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = move || {
            if !only_for_the_answer || !reply.is_closed() {
                work(Answer(reply));
            }
        };
        self.spawn(priority, job)?;
        answer.await.map_err(|_| Error::internal("the work at the database panicked"))?
    }

    /// Does something on one of the threads. To be called within a runtime, or on such a thread.
    ///
    /// # Errors
    /// When the threads have ended.
    pub(crate) fn spawn(&self, priority: Priority, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let runtime = Handle::current();
        let (waits, since) = (self.waits.clone(), Instant::now());
        let job = move || {
            waits.observe(since.elapsed().as_secs_f64());
            // What is read may call for work beside it.
            let _within = runtime.enter();
            // A panic drops what the work was to answer with.
            let _ = catch_unwind(AssertUnwindSafe(work));
        };
        let queue = match priority {
            Priority::High => &self.high,
            Priority::Normal => &self.normal,
        };
        queue.send(Box::new(job)).map_err(|_| Error::internal("the database's threads have ended"))
    }
}

/// Where the result of work goes.
pub(crate) struct Answer<T>(oneshot::Sender<Result<T>>);

impl<T> Answer<T> {
    pub(crate) fn new(reply: oneshot::Sender<Result<T>>) -> Self {
        Self(reply)
    }

    pub(crate) fn send(self, result: Result<T>) {
        // Nobody waits any more where the request was cancelled.
        let _ = self.0.send(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::HistogramOpts;
    use std::sync::{Arc, Mutex, mpsc};

    #[tokio::test]
    async fn high_priority_goes_first_when_all_threads_are_busy() {
        let waits = Histogram::with_opts(HistogramOpts::new("waits", "How long jobs wait.")).unwrap();
        let threads = Threads::start(1, waits).unwrap();
        let (go_on, stopped) = mpsc::channel::<()>();
        let order = Arc::new(Mutex::new(Vec::new()));
        let job = |name: &'static str| {
            let order = order.clone();
            move |answer: Answer<()>| {
                order.lock().unwrap().push(name);
                answer.send(Ok(()));
            }
        };
        let busy = threads.run(Priority::Normal, false, move |answer: Answer<()>| {
            answer.send(stopped.recv().map_err(Error::internal));
        });
        let others = async {
            // The thread has taken up what keeps it busy.
            while threads.waiting() > 0 {
                tokio::task::yield_now().await;
            }
            let queued = async {
                while threads.waiting() < 3 {
                    tokio::task::yield_now().await;
                }
                go_on.send(()).unwrap();
            };
            tokio::join!(
                threads.run(Priority::Normal, false, job("first")),
                threads.run(Priority::Normal, false, job("second")),
                threads.run(Priority::High, false, job("urgent")),
                queued
            )
        };
        let (busy, (first, second, urgent, ())) = tokio::join!(busy, others);
        for done in [busy, first, second, urgent] {
            done.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["urgent", "first", "second"]);
    }
}
