//! The threads that ask the database: as many as there are connections, so that none waits for one.
//!
//! Work waits in queues and not for a permit of a semaphore. A permit may be given to a future that its task does not poll
//! now, because the task polls several and has turned to another. If the other future needs a permit too, then nobody gets
//! one.

use model::{Error, Result};
use prometheus::Histogram;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// What goes first when all threads are busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    High,
    Normal,
    /// As [`Self::Normal`], but all work of this priority together has at most half of the threads, at least one.
    Background,
}

/// The threads.
pub(crate) struct Threads {
    /// Only its threads for blocking work are used. `None` once this is dropped.
    pool: Option<Runtime>,
    queues: Arc<Queues>,
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
        let queues = Queues { background: (number / 2).max(1), waiting: Mutex::default(), waits };
        Ok(Self { pool: Some(pool), queues: Arc::new(queues) })
    }

    /// How much work is waiting for a thread. Work whose answer nobody awaits any more does not count.
    pub(crate) fn waiting(&self) -> usize {
        self.queues.lock().all().filter(|entry| entry.work.is_awaited()).count()
    }

    /// Does something on one of the threads, which answers at once or hands the answer on. Work is not begun once nobody
    /// waits for its answer.
    ///
    /// # Errors
    /// What is answered; an internal error where `work` panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        priority: Priority,
        work: impl FnOnce(Answer<T>) + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.queue(priority, Question { work, reply });
        answer.await.map_err(|_| Error::internal("the work at the database panicked"))?
    }

    /// Does something on the next free thread, for many at once. To be called within a runtime, or on such a thread.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        self.queue(Priority::High, work);
    }

    fn queue(&self, priority: Priority, work: impl Work + 'static) {
        let Some(pool) = &self.pool else { return };
        let entry = Entry { work: Box::new(work), caller: Handle::current(), since: Instant::now() };
        if self.queues.add(priority, entry) {
            let queues = self.queues.clone();
            pool.spawn_blocking(move || queues.serve());
        }
    }
}

/// Something to do on one of the threads.
trait Work: Send {
    /// Whether anybody awaits the answer.
    fn is_awaited(&self) -> bool;
    fn run(self: Box<Self>);
}

/// Work whose answer a future awaits.
struct Question<T, F> {
    work: F,
    reply: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnOnce(Answer<T>) + Send> Work for Question<T, F> {
    fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(self: Box<Self>) {
        if self.is_awaited() {
            (self.work)(Answer(self.reply));
        }
    }
}

impl<F: FnOnce() + Send> Work for F {
    fn is_awaited(&self) -> bool {
        true
    }

    fn run(self: Box<Self>) {
        self();
    }
}

/// Work in a queue.
struct Entry {
    work: Box<dyn Work>,
    /// The runtime of the caller. Work may start tasks, and nothing drives those of the pool.
    caller: Handle,
    since: Instant,
}

/// Work that has no thread yet.
struct Queues {
    /// How many threads background work may have.
    background: usize,
    waiting: Mutex<Waiting>,
    /// How long work waited for a thread.
    waits: Histogram,
}

#[derive(Default)]
struct Waiting {
    high: VecDeque<Entry>,
    /// Work for which a thread comes, with whether it is background work.
    normal: VecDeque<(Entry, bool)>,
    /// Background work beyond what may be done at a time.
    background: VecDeque<Entry>,
    /// How much background work is in `normal`, or is being done.
    background_admitted: usize,
}

impl Waiting {
    fn all(&self) -> impl Iterator<Item = &Entry> {
        let normal = self.normal.iter().map(|(entry, _)| entry);
        self.high.iter().chain(normal).chain(&self.background)
    }
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds work. Returns whether a thread has to come for it.
    fn add(&self, priority: Priority, entry: Entry) -> bool {
        let mut waiting = self.lock();
        match priority {
            Priority::High => waiting.high.push_back(entry),
            Priority::Normal => waiting.normal.push_back((entry, false)),
            Priority::Background if waiting.background_admitted < self.background => {
                waiting.background_admitted += 1;
                waiting.normal.push_back((entry, true));
            }
            Priority::Background => {
                waiting.background.push_back(entry);
                return false;
            }
        }
        true
    }

    /// Does the work that is first. After background work, the thread stays for that which it admits.
    fn serve(&self) {
        while let Some((entry, is_background)) = self.next() {
            self.waits.observe(entry.since.elapsed().as_secs_f64());
            let _within = entry.caller.enter();
            // Whoever waits learns of a panic, because the answer is dropped with the work.
            let _ = catch_unwind(AssertUnwindSafe(|| entry.work.run()));
            if !(is_background && self.admit_background()) {
                return;
            }
        }
    }

    fn next(&self) -> Option<(Entry, bool)> {
        let mut waiting = self.lock();
        let high = waiting.high.pop_front().map(|entry| (entry, false));
        high.or_else(|| waiting.normal.pop_front())
    }

    /// Gives the place of background work that has ended to that which waits. Returns whether any did.
    fn admit_background(&self) -> bool {
        let mut waiting = self.lock();
        let next = waiting.background.pop_front();
        match next {
            Some(entry) => waiting.normal.push_back((entry, true)),
            None => {
                waiting.background_admitted -= 1;
                return false;
            }
        }
        true
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
    use std::future::poll_fn;
    use std::sync::mpsc;
    use std::task::Poll;
    use std::time::Duration;
    use tokio::task::{JoinHandle, JoinSet, yield_now};
    use tokio::time::timeout;

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
                let threads = threads.clone();
                let priority = match job % 3 {
                    0 => Priority::High,
                    1 => Priority::Normal,
                    _ => Priority::Background,
                };
                jobs.spawn(async move {
                    threads.run(priority, move |answer: Answer<u32>| answer.send(Ok(job))).await
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
        let busy = threads.run(Priority::Normal, move |answer: Answer<()>| {
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
                threads.run(Priority::Normal, job("first")),
                threads.run(Priority::Normal, job("second")),
                threads.run(Priority::High, job("urgent")),
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
        for priority in [Priority::High, Priority::Normal, Priority::Background, Priority::Background] {
            let failed = threads.run(priority, |_: Answer<()>| panic!("on purpose")).await;
            assert!(failed.is_err());
        }
        threads.run(Priority::Background, |answer: Answer<()>| answer.send(Ok(()))).await.unwrap();
    }

    /// Keeps a thread busy until the sender says so.
    async fn busy(threads: &Arc<Threads>, priority: Priority) -> (mpsc::Sender<()>, JoinHandle<Result<()>>) {
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel::<()>();
        let own = threads.clone();
        let busy = tokio::spawn(async move {
            let work = move |answer: Answer<()>| {
                begin.send(()).unwrap();
                answer.send(ended.recv().map_err(Error::internal));
            };
            own.run(priority, work).await
        });
        begun.await.unwrap();
        (end, busy)
    }

    #[tokio::test]
    async fn work_that_nobody_awaits_does_not_count_and_is_not_begun() {
        let threads = threads(1);
        let (end, busy) = busy(&threads, Priority::Normal).await;
        let cancelled = threads.run(Priority::Normal, |_: Answer<()>| panic!("it was begun"));
        tokio::select! {
            biased;
            done = cancelled => panic!("there was no thread: {done:?}"),
            () = yield_now() => {}
        }
        assert_eq!(threads.waiting(), 0, "it counts though nobody awaits it");
        end.send(()).unwrap();
        busy.await.unwrap().unwrap();
        threads.run(Priority::Normal, |answer: Answer<()>| answer.send(Ok(()))).await.unwrap();
        assert_eq!(threads.waiting(), 0);
    }

    #[tokio::test]
    async fn background_work_leaves_half_of_the_threads_to_others() {
        let threads = threads(4);
        let first = busy(&threads, Priority::Background).await;
        let second = busy(&threads, Priority::Background).await;
        let own = threads.clone();
        let third = tokio::spawn(async move {
            own.run(Priority::Background, |answer: Answer<()>| answer.send(Ok(()))).await
        });
        while threads.waiting() == 0 {
            yield_now().await;
        }
        threads.run(Priority::Normal, |answer: Answer<()>| answer.send(Ok(()))).await.unwrap();
        assert_eq!(threads.waiting(), 1, "background work waits for background work");
        first.0.send(()).unwrap();
        third.await.unwrap().unwrap();
        second.0.send(()).unwrap();
        first.1.await.unwrap().unwrap();
        second.1.await.unwrap().unwrap();
    }

    /// A task that polls several futures may wait for one alone while the others have asked for a thread.
    #[tokio::test]
    async fn futures_that_are_not_polled_keep_no_thread() {
        for priority in [Priority::Normal, Priority::Background] {
            let threads = threads(2);
            let (end, busy) = busy(&threads, priority).await;
            let mut others: Vec<_> = (0..8)
                .map(|_| Box::pin(threads.run(priority, |answer: Answer<()>| answer.send(Ok(())))))
                .collect();
            for other in &mut others {
                let is_pending = poll_fn(|context| Poll::Ready(other.as_mut().poll(context).is_pending()));
                assert!(is_pending.await);
            }
            end.send(()).unwrap();
            let alone = threads.run(priority, |answer: Answer<()>| answer.send(Ok(())));
            timeout(Duration::from_secs(60), alone).await.expect("a thread").unwrap();
            busy.await.unwrap().unwrap();
        }
    }
}
