//! The engine's handle, its queue and its thread. Requests are processed one at a time on a dedicated thread, because
//! a generation occupies a core for seconds and must not block threads that serve requests.

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

/// The resources of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of computing threads. `None` is the number of cores minus one, and at least one. More threads than
    /// idle cores make it slower, because all wait for the slowest.
    pub threads: Option<usize>,
    /// The maximum number of waiting requests. Beyond it, [`Engine::generate`] returns [`Error::Busy`].
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

/// A loaded model. Clones are handles to the same model. After the last handle is dropped, the thread finishes its
/// requests and ends.
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
    /// The problem with the file (see [`Error`]).
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

    /// Adds a request to the queue. Does not block. The answer is received from the [`Generation`].
    ///
    /// # Errors
    /// [`Error::Busy`] if the queue is full.
    pub fn generate(&self, request: Request) -> Result<Generation, Error> {
        let (events, receiver) = unbounded_channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        self.shared.queue.push(Job { request, events, cancelled: Arc::clone(&cancelled) })?;
        Ok(Generation { events: receiver, cancelled, ended: false })
    }

    /// Returns the maximum number of tokens of a prompt and its answer together.
    #[must_use]
    pub fn context_tokens(&self) -> usize {
        self.shared.context
    }

    /// Returns whether the model has less than about a billion parameters. Such a model copies and chooses, but does
    /// not reason.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.shared.is_small
    }

    /// Returns a name of the model, taken from its file, such as `smollm2-135m`.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.shared.label
    }
}

/// The answer to one request, received as it is generated. Dropping it cancels the request.
#[derive(Debug)]
pub struct Generation {
    events: UnboundedReceiver<Event>,
    cancelled: Arc<AtomicBool>,
    ended: bool,
}

impl Generation {
    /// Returns the next event, or `None` after [`Event::Done`] or [`Event::Failed`]. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let event = self.events.recv().await;
        // The thread always sends a final event, unless it has died.
        let event = event.unwrap_or_else(|| Event::Failed(Error::Inference("the engine stopped".to_owned())));
        self.ended = !matches!(event, Event::Token(_));
        Some(event)
    }

    /// Cancels the request. The engine stops within one token, or within one chunk of the prompt. The last event is
    /// then [`Event::Failed`] with [`Error::Cancelled`], unless the answer was already complete.
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

/// The waiting requests. Not a channel, because cancelled requests must free their place at once.
struct Queue {
    state: Mutex<Waiting>,
    changed: Condvar,
    most: usize,
}

struct Waiting {
    jobs: VecDeque<Job>,
    /// Whether the thread waits for a job. Then one request more than `most` is accepted.
    idle: bool,
    closed: bool,
}

impl Queue {
    fn new(most: usize) -> Self {
        let state = Waiting { jobs: VecDeque::new(), idle: true, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), most }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Code under this lock cannot panic, so a poisoned lock is consistent.
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

    /// Waits for a job. Returns `None` when the queue is closed and empty.
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

/// Runs the thread: loads the model, then processes requests until the queue is closed.
fn work(path: PathBuf, threads: usize, queue: &Queue, ready: &mpsc::SyncSender<Loaded>) {
    // Create a separate pool with this thread as a member. rayon uses the pool of the calling thread, so the parallel
    // loops of candle and of this crate use at most `threads` threads, and never the process-wide pool.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .use_current_thread()
        .thread_name(|number| format!("local-model-{number}"))
        .build();
    if let Err(error) = pool {
        let _ = ready.send(Err(Error::Load(format!("no thread pool: {error}"))));
        return;
    }
    // candle reports most problems as errors, but a corrupt file can still fail an assertion.
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
            // If the receiver is gone, the cancelled flag is set, and the session checks it before the next token.
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
