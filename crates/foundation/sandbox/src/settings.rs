//! What a sandbox may use.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How a sandbox starts its processes, and what it may use.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that becomes the zygote. It calls [`crate::zygote_if_asked`] first.
    pub program: PathBuf,
    /// Its arguments. [`crate::zygote_if_asked`] looks for the first; a last one is added.
    pub arguments: Vec<OsString>,
    /// Whether the file system, TCP and signals are closed with landlock.
    pub landlock: bool,
    /// Whether system calls are filtered with seccomp.
    pub seccomp: bool,
    /// Whether to refuse to run code where landlock or seccomp is missing.
    pub required: bool,
    /// Whether to refuse to run any code.
    pub off: bool,
    /// Calls that one worker serves. With 1, each call has a process of its own.
    pub calls_per_worker: u32,
    /// How long a worker waits for its next call.
    pub idle: Duration,
    /// Workers that wait for their next call, of all workspaces.
    pub idle_workers: usize,
    /// Calls of one workspace at a time.
    pub workspace_calls: usize,
    /// Calls of all workspaces at a time.
    pub calls: usize,
    /// How long a call waits for its turn.
    pub patience: Duration,
    /// What one call may use.
    pub limits: Limits,
}

impl Default for Settings {
    /// The defaults, with this process's own program as the zygote, also after its file was replaced.
    fn default() -> Self {
        Self::new(PathBuf::from("/proc/self/exe"))
    }
}

impl Settings {
    /// The defaults, with `program` as the zygote.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            arguments: vec!["sandbox".into()],
            landlock: true,
            seccomp: true,
            required: false,
            off: false,
            calls_per_worker: 100,
            idle: Duration::from_secs(60),
            idle_workers: 64,
            workspace_calls: 20,
            calls: 64,
            patience: Duration::from_secs(10),
            limits: Limits::default(),
        }
    }
}

/// What one call may use. Sizes are in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The source of a program.
    pub code: usize,
    /// The input, as JSON.
    pub input: usize,
    /// The output, as JSON.
    pub output: usize,
    /// All lines of the log together.
    pub logs: usize,
    /// Levels of arrays and objects in input and output.
    pub depth: usize,
    /// The engine's memory.
    pub memory: usize,
    /// The engine's stack.
    pub stack: usize,
    /// Wall time of a call, without the wait for its turn.
    pub deadline: Duration,
    /// How much longer than the deadline a worker may take to say that it reached it.
    pub grace: Duration,
    /// Host calls.
    pub host_calls: u32,
    /// Host calls at a time.
    pub parallel_host_calls: u32,
    /// Of the host calls, those of `fetch`.
    pub fetches: u32,
    /// What a host call sends.
    pub request: usize,
    /// What a host call receives.
    pub response: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            code: 256 << 10,
            input: 256 << 10,
            output: 256 << 10,
            logs: 64 << 10,
            depth: 100,
            memory: 128 << 20,
            stack: 512 << 10,
            deadline: Duration::from_secs(30),
            grace: Duration::from_millis(250),
            host_calls: 1_000,
            parallel_host_calls: 10,
            fetches: 10,
            request: 1 << 20,
            response: 5 << 20,
        }
    }
}
