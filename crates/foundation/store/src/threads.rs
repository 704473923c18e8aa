//! The threads that ask the database: as many as there are connections.
//!
//! They share two queues, and serve the one of high priority first. Under load each goes on with the next question without
//! having slept, where a pool that grows and shrinks by itself would wake a thread for each.
//!
//! Where jobs take processor time, as on SQLite, more of them at once than there are processors end no sooner: the operating system
//! interrupts each for the others, and what one that takes half a millisecond needs becomes ten. So only some begin at a time, in
//! their order. One that has run for a while no longer counts among them, so that long ones do not keep short ones waiting.
//!
//! On Linux a thread that is woken takes the place of one that runs. Then each request would be interrupted by its own question,
//! at the cost of two switches between threads; so these threads wait for their turn (`SCHED_BATCH`).

use model::{Error, Result};
#[cfg(target_os = "linux")]
use preempt_rt::sched::{Pid, Scheduler, SchedulerParams, set_scheduler};
use prometheus::Histogram;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// A job that has run for so long no longer keeps others from beginning.
const LONG: Duration = Duration::from_millis(15);

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
struct Queues(Mutex<State>);

struct State {
    high: VecDeque<Job>,
    normal: VecDeque<Job>,
    /// Threads that have nothing to do. The last one is the next to be woken: its memory is in the processor's caches, and
    /// where one after another is asked, the others hold none.
    idle: Vec<Thread>,
    /// The most jobs at a time, without those that are long.
    most: usize,
    /// When the job of each thread began.
    running: Vec<Option<Instant>>,
    /// Whether a thread without a job waits until another's job is long.
    is_watched: bool,
    is_closed: bool,
}

impl State {
    fn new(threads: usize, most: usize) -> Self {
        Self {
            high: VecDeque::new(),
            normal: VecDeque::new(),
            idle: Vec::new(),
            most: most.max(1),
            running: vec![None; threads],
            is_watched: false,
            is_closed: false,
        }
    }

    fn waiting(&self) -> usize {
        self.high.len() + self.normal.len()
    }

    /// Whether a thread may have nothing to do although a job waits.
    fn is_limited(&self) -> bool {
        self.most < self.running.len()
    }

    /// After what time another job may begin, if none ends before.
    fn delay(&self) -> Duration {
        if self.is_closed || !self.is_limited() {
            return Duration::ZERO;
        }
        let left = |began: &Instant| LONG.checked_sub(began.elapsed()).filter(|left| !left.is_zero());
        let (count, least) = self
            .running
            .iter()
            .flatten()
            .filter_map(left)
            .fold((0, LONG), |(count, least), left| (count + 1, least.min(left)));
        if count < self.most { Duration::ZERO } else { least }
    }

    /// The thread to wake, where one has something to do: a job, or to wait until a job is long.
    fn thread_to_wake(&mut self) -> Option<Thread> {
        if self.waiting() == 0 || (self.is_watched && !self.delay().is_zero()) {
            return None;
        }
        self.idle.pop()
    }

    /// Begins the next job on the thread at `place`.
    fn begin(&mut self, place: usize) -> Option<Job> {
        let job = self.high.pop_front().or_else(|| self.normal.pop_front())?;
        self.set_running(place, Some(Instant::now()));
        Some(job)
    }

    fn set_running(&mut self, place: usize, began: Option<Instant>) {
        if let Some(running) = self.running.get_mut(place) {
            *running = began;
        }
    }
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, priority: Priority, job: Job) {
        let mut state = self.lock();
        match priority {
            Priority::High => state.high.push_back(job),
            Priority::Normal => state.normal.push_back(job),
        }
        Self::wake(state);
    }

    /// Wakes a thread where one has something to do.
    fn wake(mut state: MutexGuard<'_, State>) {
        let idle = state.thread_to_wake();
        drop(state);
        if let Some(thread) = idle {
            thread.unpark();
        }
    }

    /// The next job of the thread at `place`, whose last one is done; it waits for one. `None` once the queues are closed and
    /// empty.
    fn next(&self, place: usize) -> Option<Job> {
        let mut state = self.lock();
        state.set_running(place, None);
        loop {
            let delay = state.delay();
            let is_empty = state.waiting() == 0;
            if is_empty && state.is_closed {
                return None;
            }
            if is_empty || (!delay.is_zero() && state.is_watched) {
                state = self.sleep(state);
            } else if delay.is_zero() {
                let job = state.begin(place);
                // Without a limit each push has woken a thread for its job.
                if state.is_limited() {
                    Self::wake(state);
                }
                return job;
            } else {
                state.is_watched = true;
                drop(state);
                thread::park_timeout(delay);
                state = self.lock();
                state.is_watched = false;
            }
        }
    }

    /// Sleeps until this thread is woken.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let own = thread::current();
        state.idle.push(own.clone());
        drop(state);
        thread::park();
        state = self.lock();
        // A thread may wake without having been woken.
        state.idle.retain(|idle| idle.id() != own.id());
        state
    }

    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.idle.drain(..).for_each(|thread| thread.unpark());
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.queues.close();
    }
}

impl Threads {
    /// Starts `number` threads, of which at most `most` begin jobs at a time.
    pub(crate) fn start(number: u32, most: usize, waits: Histogram) -> Result<Self> {
        let number = usize::try_from(number).unwrap_or(usize::MAX).max(1);
        let queues = Arc::new(Queues(Mutex::new(State::new(number, most))));
        for place in 0..number {
            let own = queues.clone();
            let work = move || {
                wait_for_turns();
                std::iter::from_fn(|| own.next(place)).for_each(|job| job());
            };
            thread::Builder::new().name("database".to_owned()).spawn(work)?;
        }
        Ok(Self { queues, waits })
    }

    /// How many jobs are waiting for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.queues.lock().waiting()
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

/// Has this thread interrupt no other one when it is woken, where the system lets it.
fn wait_for_turns() {
    #[cfg(target_os = "linux")]
    {
        let default = SchedulerParams { priority: 0 };
        if let Err(error) = set_scheduler(Pid::current_thread(), Scheduler::SCHED_BATCH, default) {
            tracing::debug!(%error, "a thread of the database may interrupt others");
        }
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

    fn waits() -> Histogram {
        Histogram::with_opts(HistogramOpts::new("waits", "How long jobs wait.")).unwrap()
    }

    /// A time that does not become long ago while a test runs.
    fn just_now() -> Instant {
        Instant::now() + Duration::from_secs(3_600)
    }

    #[test]
    fn only_short_jobs_keep_others_waiting() {
        let (now, earlier) = (just_now(), Instant::now().checked_sub(LONG).unwrap());
        let state = |running: &[Instant], idle: usize| {
            let mut places: Vec<_> = running.iter().copied().map(Some).collect();
            places.resize(running.len() + idle, None);
            let mut state = State::new(places.len(), 2);
            state.running = places;
            state
        };
        for (running, idle, waits) in [
            (&[][..], 3, false),
            (&[now], 2, false),
            (&[now, now], 1, true),
            (&[now, earlier], 1, false),
            (&[now, earlier, now], 1, true),
            (&[earlier, earlier, now], 1, false),
            // As many as there are threads.
            (&[now, now], 0, false),
        ] {
            let delay = state(running, idle).delay();
            assert_eq!(!delay.is_zero(), waits, "{running:?} and {idle}");
            assert!(delay <= LONG, "{delay:?}");
        }
    }

    #[test]
    fn a_thread_is_woken_where_it_has_something_to_do() {
        let now = just_now();
        for (waiting, running, is_watched, woken) in [
            (0, 0, false, false),
            (1, 0, false, true),
            (1, 1, true, true),
            // To wait until one is long.
            (1, 2, false, true),
            (1, 2, true, false),
        ] {
            let mut state = State::new(8, 2);
            state.normal.extend((0..waiting).map(|_| Box::new(|| ()) as Job));
            state.running.iter_mut().take(running).for_each(|began| *began = Some(now));
            state.idle.push(thread::current());
            state.is_watched = is_watched;
            assert_eq!(state.thread_to_wake().is_some(), woken, "{waiting}, {running}, {is_watched}");
        }
    }

    #[tokio::test]
    async fn a_long_job_does_not_keep_others_from_beginning() {
        let threads = Threads::start(3, 1, waits()).unwrap();
        let (go_on, stopped) = mpsc::channel::<()>();
        let long = threads.run(Priority::Normal, false, move |answer: Answer<()>| {
            answer.send(stopped.recv().map_err(Error::internal));
        });
        let short = threads.run(Priority::Normal, false, move |answer: Answer<()>| {
            answer.send(go_on.send(()).map_err(Error::internal));
        });
        let (long, short) = tokio::join!(long, short);
        long.and(short).unwrap();
    }

    #[tokio::test]
    async fn all_jobs_are_done_however_many_begin_at_a_time() {
        for most in [1, 2, 8] {
            let threads = Arc::new(Threads::start(4, most, waits()).unwrap());
            let mut jobs = tokio::task::JoinSet::new();
            for number in 0..1_000_u32 {
                let threads = threads.clone();
                jobs.spawn(async move {
                    let job = move |answer: Answer<u32>| answer.send(Ok(number));
                    threads.run(Priority::Normal, false, job).await
                });
            }
            let mut done: Vec<u32> = jobs.join_all().await.into_iter().map(Result::unwrap).collect();
            done.sort_unstable();
            assert_eq!(done, (0..1_000).collect::<Vec<_>>(), "{most} at a time");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn threads_interrupt_nobody() {
        let threads = Threads::start(1, 1, waits()).unwrap();
        let policy = |answer: Answer<Scheduler>| {
            let policy = preempt_rt::sched::get_scheduler(Pid::current_thread());
            answer.send(policy.map_err(Error::internal));
        };
        let policy = threads.run(Priority::Normal, false, policy).await.unwrap();
        assert_eq!(policy, Scheduler::SCHED_BATCH);
    }

    #[tokio::test]
    async fn threads_end_when_nobody_can_ask_any_more() {
        let threads = Threads::start(4, 1, waits()).unwrap();
        let (go_on, stopped) = mpsc::channel::<()>();
        let (done, ended) = mpsc::channel();
        threads.spawn(Priority::Normal, move || stopped.recv().unwrap_or_default());
        for _ in 0..10 {
            let done = done.clone();
            threads.spawn(Priority::Normal, move || done.send(()).unwrap());
        }
        let queues = threads.queues.clone();
        drop((threads, done));
        drop(go_on);
        assert_eq!(ended.iter().count(), 10);
        while Arc::strong_count(&queues) > 1 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn high_priority_goes_first_when_all_threads_are_busy() {
        let threads = Threads::start(1, 1, waits()).unwrap();
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
