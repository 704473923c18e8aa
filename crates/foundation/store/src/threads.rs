//! The threads that ask the database: as many as there are connections, so that none waits for one.
//!
//! Work of normal priority waits for a permit of a semaphore, of which there are as many as threads. Work of high priority
//! needs none: it gets the next thread, before all that waits for a permit.

use model::{Error, Result};
use prometheus::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// What goes first when all threads are busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    High,
    Normal,
}

/// The threads.
pub(crate) struct Threads {
    /// Only its threads for blocking work are used. `None` once this is dropped.
    pool: Option<Runtime>,
    normal: Arc<Semaphore>,
    /// How much work has no thread yet.
    waiting: Arc<AtomicUsize>,
    /// How long work waited for a thread.
    waits: Histogram,
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Work has its own reference to what has this, so none is left that could be lost. Waiting for the threads is no
        // option, because one of them may drop this.
        if let Some(pool) = self.pool.take() {
            pool.shutdown_background();
        }
    }
}

impl Threads {
    /// Allows for `number` threads. They are started when they are needed.
    pub(crate) fn start(number: u32, waits: Histogram) -> Result<Self> {
        let number = usize::try_from(number).unwrap_or(usize::MAX).max(1);
        let pool =
            Builder::new_current_thread().thread_name("database").max_blocking_threads(number).build()?;
        let normal = Arc::new(Semaphore::new(number.min(Semaphore::MAX_PERMITS)));
        Ok(Self { pool: Some(pool), normal, waiting: Arc::default(), waits })
    }

    /// How much work is waiting for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Does something on one of the threads, which answers at once or hands the answer on. Work that is `only_for_the_answer`
    /// is not begun once nobody waits for it.
    ///
    /// # Errors
    /// What is answered; an internal error where `work` panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        priority: Priority,
        only_for_the_answer: bool,
        work: impl FnOnce(Answer<T>) + Send + 'static,
    ) -> Result<T> {
        let waiting = self.wait();
        let permit = match priority {
            Priority::High => None,
            // The semaphore is never closed.
            Priority::Normal => self.normal.clone().acquire_owned().await.ok(),
        };
        let (reply, answer) = oneshot::channel();
        self.begin(waiting, permit, move || {
            if !only_for_the_answer || !reply.is_closed() {
                work(Answer(reply));
            }
        });
        answer.await.map_err(|_| Error::internal("the work at the database panicked"))?
    }

    /// Does something on the next free thread, for many at once. To be called within a runtime, or on such a thread.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        self.begin(self.wait(), None, work);
    }

    fn wait(&self) -> Waiting {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting { count: self.waiting.clone(), waits: self.waits.clone(), since: Instant::now() }
    }

    fn begin(
        &self,
        waiting: Waiting,
        permit: Option<OwnedSemaphorePermit>,
        work: impl FnOnce() + Send + 'static,
    ) {
        let Some(pool) = &self.pool else { return };
        let caller = Handle::current();
        pool.spawn_blocking(move || {
            let _held_to_the_end = permit;
            waiting.waits.observe(waiting.since.elapsed().as_secs_f64());
            drop(waiting);
            // Work may start tasks, and nothing drives those of the pool.
            let _within = caller.enter();
            work();
        });
    }
}

/// Work that has no thread yet. Counted until it is dropped, so that a request that is cancelled no longer counts.
struct Waiting {
    count: Arc<AtomicUsize>,
    waits: Histogram,
    since: Instant,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
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
    use std::sync::{Mutex, mpsc};
    use tokio::task::{JoinSet, yield_now};

    fn threads(number: u32) -> Arc<Threads> {
        let waits = Histogram::with_opts(HistogramOpts::new("waits", "How long work waits.")).unwrap();
        Arc::new(Threads::start(number, waits).unwrap())
    }

    #[tokio::test]
    async fn all_work_is_done_however_few_threads_there_are() {
        for number in [1, 2, 4] {
            let threads = threads(number);
            let mut jobs = JoinSet::new();
            for job in 0..1_000_u32 {
                let (threads, priority) =
                    (threads.clone(), if job % 3 == 0 { Priority::High } else { Priority::Normal });
                jobs.spawn(async move {
                    threads.run(priority, false, move |answer: Answer<u32>| answer.send(Ok(job))).await
                });
            }
            let mut done: Vec<u32> = jobs.join_all().await.into_iter().map(Result::unwrap).collect();
            done.sort_unstable();
            assert_eq!(done, (0..1_000).collect::<Vec<_>>(), "{number} threads");
            assert_eq!(threads.waiting(), 0);
        }
    }

    #[tokio::test]
    async fn high_priority_goes_first_when_all_threads_are_busy() {
        let threads = threads(1);
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
                yield_now().await;
            }
            let queued = async {
                while threads.waiting() < 3 {
                    yield_now().await;
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

    #[tokio::test]
    async fn a_panic_is_an_error_and_takes_no_thread_along() {
        let threads = threads(1);
        for _ in 0..3 {
            let failed = threads.run(Priority::Normal, false, |_: Answer<()>| panic!("on purpose")).await;
            assert!(failed.is_err());
        }
        threads.run(Priority::Normal, false, |answer: Answer<()>| answer.send(Ok(()))).await.unwrap();
    }

    #[tokio::test]
    async fn a_request_that_is_cancelled_waits_no_longer() {
        let threads = threads(1);
        let (end, ended) = mpsc::channel::<()>();
        let own = threads.clone();
        let busy = tokio::spawn(async move {
            let work = move |answer: Answer<()>| answer.send(ended.recv().map_err(Error::internal));
            own.run(Priority::Normal, false, work).await
        });
        while threads.normal.available_permits() > 0 || threads.waiting() > 0 {
            yield_now().await;
        }
        let cancelled = threads.run(Priority::Normal, true, |answer: Answer<()>| answer.send(Ok(())));
        tokio::select! {
            biased;
            done = cancelled => panic!("there was no thread: {done:?}"),
            () = yield_now() => {}
        }
        assert_eq!(threads.waiting(), 0);
        end.send(()).unwrap();
        busy.await.unwrap().unwrap();
    }
}
