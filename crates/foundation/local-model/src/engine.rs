//! The handle, the queue and the thread: one inference at a time, on a thread of its own, because a generation keeps
//! a core busy for seconds and must never sit on a thread that serves requests.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{
    session::{Listener, Session},
    types::{Error, Event, Request},
};

/// How an engine uses the machine.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads that compute; `None` is one less than there are cores, at least one. More than the idle cores make it
    /// slower, not faster: all wait for the slowest.
    pub threads: Option<usize>,
    /// Requests that may wait while one is computed; with more, [`Engine::generate`] answers [`Error::Busy`].
    pub queue: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: None, queue: 32 }
    }
}

impl Options {
    fn threads(&self) -> usize {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(cores.saturating_sub(1)).max(1)
    }
}

/// A loaded model. Cloning gives another handle to the same one; when the last handle is dropped, the thread ends
/// after the requests it has.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Arc<Queue>,
    context: usize,
    label: String,
    is_small: bool,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("label", &self.shared.label).finish_non_exhaustive()
    }
}

impl Engine {
    /// Loads a GGUF file and starts the thread. Blocks for about a second.
    ///
    /// # Errors
    /// What is wrong with the file, see [`Error`].
    pub fn load(path: &Path, options: Options) -> Result<Self, Error> {
        let queue = Arc::new(Queue::new(options.queue));
        let (ready, loaded) = mpsc::sync_channel(1);
        let (path, threads, jobs) = (path.to_owned(), options.threads(), Arc::clone(&queue));
        thread::Builder::new()
            .name("local-model".to_owned())
            .spawn(move || work(path, threads, &jobs, &ready))
            .map_err(|error| Error::Load(format!("no thread: {error}")))?;
        let (context, label, is_small) =
            loaded.recv().map_err(|_| Error::Load("the thread ended".to_owned()))??;
        Ok(Self { shared: Arc::new(Shared { queue, context, label, is_small }) })
    }

    /// Puts a request into the queue. Does not block; the answer comes through the [`Generation`].
    ///
    /// # Errors
    /// [`Error::Busy`] when as many requests wait already as [`Options::queue`] allows.
    pub fn generate(&self, request: Request) -> Result<Generation, Error> {
        let (events, receiver) = unbounded_channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        self.shared.queue.push(Job { request, events, cancelled: Arc::clone(&cancelled) })?;
        Ok(Generation { events: receiver, cancelled, ended: false })
    }

    /// Tokens a prompt and its answer may have together.
    #[must_use]
    pub fn context_tokens(&self) -> usize {
        self.shared.context
    }

    /// Whether the model has fewer than about a billion parameters: it copies and chooses, but does not reason.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.shared.is_small
    }

    /// A name for the model, from its file, such as `smollm2-135m`.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.shared.label
    }
}

/// The answer to one request, as it is generated. Dropping it cancels the request.
#[derive(Debug)]
pub struct Generation {
    events: UnboundedReceiver<Event>,
    cancelled: Arc<AtomicBool>,
    ended: bool,
}

impl Generation {
    /// The next event; `None` after [`Event::Done`] or [`Event::Failed`]. Cancel safe: a dropped call loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let event = self.events.recv().await;
        // The thread always says how it ended, unless it died.
        let event = event.unwrap_or_else(|| Event::Failed(Error::Inference("the engine stopped".to_owned())));
        self.ended = !matches!(event, Event::Token(_));
        Some(event)
    }

    /// Asks the engine to stop: within one token, or within one chunk of the prompt. The last event is then
    /// [`Event::Failed`] with [`Error::Cancelled`], unless the answer was already complete.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.cancel();
    }
}

struct Job {
    request: Request,
    events: UnboundedSender<Event>,
    cancelled: Arc<AtomicBool>,
}

impl Job {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// The requests that wait. Not a channel, because cancelled requests must give up their place at once.
struct Queue {
    state: Mutex<Waiting>,
    changed: Condvar,
    most: usize,
}

struct Waiting {
    jobs: VecDeque<Job>,
    /// The thread is waiting for a job, so one more than `most` may be taken.
    idle: bool,
    closed: bool,
}

impl Queue {
    fn new(most: usize) -> Self {
        let state = Waiting { jobs: VecDeque::new(), idle: true, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), most }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Job) -> Result<(), Error> {
        let mut state = self.lock();
        state.jobs.retain(|job| {
            let keep = !job.is_cancelled();
            if !keep {
                let _ = job.events.send(Event::Failed(Error::Cancelled));
            }
            keep
        });
        if state.jobs.len() >= self.most + usize::from(state.idle) {
            return Err(Error::Busy);
        }
        state.jobs.push_back(job);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for a job; `None` when the queue is closed and empty.
    fn pop(&self) -> Option<Job> {
        let mut state = self.lock();
        state.idle = true;
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.idle = false;
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }
}

type Loaded = Result<(usize, String, bool), Error>;

/// The body of the thread: loads, then serves until the queue is closed.
fn work(path: PathBuf, threads: usize, queue: &Queue, ready: &mpsc::SyncSender<Loaded>) {
    // A pool of our own, with this thread as a member: rayon uses the pool of the thread that calls it, so candle's
    // and our parallel loops stay within `threads` and leave rayon's process-wide pool alone.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .use_current_thread()
        .thread_name(|number| format!("local-model-{number}"))
        .build();
    if let Err(error) = pool {
        let _ = ready.send(Err(Error::Load(format!("no thread pool: {error}"))));
        return;
    }
    // candle reports most mistakes as errors, but a damaged file may still trip an assertion.
    let session = catch_unwind(|| Session::load(&path));
    let mut session =
        match session.unwrap_or_else(|_| Err(Error::NotGguf("its contents make no sense".to_owned()))) {
            Ok(session) => session,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
    if ready.send(Ok((session.context(), session.label().to_owned(), session.is_small()))).is_err() {
        return;
    }
    while let Some(job) = queue.pop() {
        let mut send = |text| {
            // A receiver that is gone has set the flag, which the session sees before the next token.
            let _ = job.events.send(Event::Token(text));
        };
        let mut listener = Listener { cancelled: &job.cancelled, token: &mut send };
        let outcome = catch_unwind(AssertUnwindSafe(|| session.run(&job.request, &mut listener)))
            .unwrap_or_else(|_| Err(Error::Inference("the computation panicked".to_owned())));
        let event = match outcome {
            Ok(completion) => Event::Done(completion),
            Err(error) => {
                if error != Error::Cancelled {
                    session.forget();
                }
                Event::Failed(error)
            }
        };
        let _ = job.events.send(event);
    }
}
