//! The threads that ask the database: as many as there are connections.
//!
//! They share two queues, and serve the one of high priority first. Under load each goes on with the next question without
//! having slept, where a pool that grows and shrinks by itself would wake a thread for each.

use model::{Error, Result};
use prometheus::Histogram;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
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

/// The queues. The threads end when they are dropped, once they have done what is in them.
pub(crate) struct Threads {
    queues: Arc<Queues>,
    /// How long jobs were in a queue.
    waits: Histogram,
}

/// The queues as the threads see them.
#[derive(Default)]
struct Queues(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    high: VecDeque<Job>,
    normal: VecDeque<Job>,
    /// Threads that have nothing to do. The last one is the next to be woken: its memory is in the processor's caches, and
    /// where one after another is asked, the others hold none.
    idle: Vec<Thread>,
    is_closed: bool,
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, priority: Priority, job: Job) {
        let mut waiting = self.lock();
        match priority {
            Priority::High => waiting.high.push_back(job),
            Priority::Normal => waiting.normal.push_back(job),
        }
        let idle = waiting.idle.pop();
        drop(waiting);
        if let Some(thread) = idle {
            thread.unpark();
        }
    }

    /// The next job, for which it waits; `None` once the queues are closed and empty.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            let Waiting { high, normal, .. } = &mut *waiting;
            let job = high.pop_front().or_else(|| normal.pop_front());
            if job.is_some() || waiting.is_closed {
                return job;
            }
            let own = thread::current();
            waiting.idle.push(own.clone());
            drop(waiting);
            thread::park();
            waiting = self.lock();
            // A thread may wake without having been woken.
            waiting.idle.retain(|idle| idle.id() != own.id());
        }
    }

    fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        waiting.idle.drain(..).for_each(|thread| thread.unpark());
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.queues.close();
    }
}

impl Threads {
    /// Starts `number` threads.
    pub(crate) fn start(number: u32, waits: Histogram) -> Result<Self> {
        let queues: Arc<Queues> = Arc::default();
        for _ in 0..number.max(1) {
            let own = queues.clone();
            let work = move || std::iter::from_fn(|| own.next()).for_each(|job| job());
            thread::Builder::new().name("database".to_owned()).spawn(work)?;
        }
        Ok(Self { queues, waits })
    }

    /// How many jobs are waiting for a thread.
    pub(crate) fn waiting(&self) -> usize {
        let waiting = self.queues.lock();
        waiting.high.len() + waiting.normal.len()
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
        self.spawn(priority, job);
        answer.await.map_err(|_| Error::internal("the work at the database panicked"))?
    }

    /// Does something on one of the threads. To be called within a runtime, or on such a thread.
    pub(crate) fn spawn(&self, priority: Priority, work: impl FnOnce() + Send + 'static) {
        let runtime = Handle::current();
        let (waits, since) = (self.waits.clone(), Instant::now());
        let job = move || {
            waits.observe(since.elapsed().as_secs_f64());
            // What is read may call for work beside it.
            let _within = runtime.enter();
            // A panic drops what the work was to answer with.
            let _ = catch_unwind(AssertUnwindSafe(work));
        };
        self.queues.push(priority, Box::new(job));
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
