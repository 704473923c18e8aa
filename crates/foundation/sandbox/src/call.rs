//! Programs, calls, and what comes of them.

use std::sync::Arc;
use std::time::Duration;

/// Whose code it is. Calls of two keys never share a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The workspace: calls of one workspace share its places.
    pub workspace: String,
    /// The version of the function, among all functions of the workspace.
    pub version: String,
}

/// The source of a program: an ECMAScript module with `export default async function (ctx) { … }`.
#[derive(Debug, Clone)]
pub struct Program(pub(crate) Arc<str>);

impl Program {
    /// A program with this source.
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self(Arc::from(source))
    }
}

/// Whether a call changes something outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only reads: a call whose worker was lost without its own fault is made once more.
    Read,
    /// It may write: such a call is made once more only if it had not called the host yet.
    Write,
}

/// A clock that stands still and random numbers that repeat, for tests of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed {
    /// Milliseconds since 1970.
    pub now: i64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// A value that the program handles without seeing it.
#[derive(Debug, Clone)]
pub struct Secret {
    /// Its name in `ctx.secrets`.
    pub name: String,
    /// The text that the program gets. [`crate::Host::fetch`] replaces it.
    pub placeholder: String,
}

/// One call of a program. Values are JSON texts.
#[derive(Debug, Clone)]
pub struct Call {
    /// `ctx.input`.
    pub input: String,
    /// `ctx.vars`, an object.
    pub vars: String,
    /// `ctx.secrets`.
    pub secrets: Vec<Secret>,
    /// `ctx.contact`.
    pub contact: Option<String>,
    /// `ctx.run`.
    pub run: Option<String>,
    /// `ctx.idempotencyKey`, a text and no JSON.
    pub idempotency_key: Option<String>,
    /// `ctx.livemode`.
    pub livemode: bool,
    /// What the call may change.
    pub effect: Effect,
    /// The clock and the seed of a test.
    pub fixed: Option<Fixed>,
    /// Whether the call gets a process of its own: drafts, tests, scripts of skills.
    pub strict: bool,
    /// A shorter deadline than that of the settings.
    pub deadline: Option<Duration>,
    /// Less memory of the engine than that of the settings, in bytes.
    pub memory: Option<usize>,
}

impl Call {
    /// A live call with this input and nothing else.
    #[must_use]
    pub fn new(input: &str) -> Self {
        Self {
            input: input.to_owned(),
            vars: "{}".to_owned(),
            secrets: Vec::new(),
            contact: None,
            run: None,
            idempotency_key: None,
            livemode: true,
            effect: Effect::Read,
            fixed: None,
            strict: false,
            deadline: None,
            memory: None,
        }
    }
}

/// What became of a call.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The output as JSON, or why there is none.
    pub result: Result<String, Failure>,
    /// What the program logged, at most [`crate::Limits::logs`].
    pub logs: Vec<LogLine>,
    /// Whether lines were left out.
    pub logs_truncated: bool,
    /// From the start of the call to its end, without the wait for its turn.
    pub duration: Duration,
    /// The most memory that the engine held, in bytes; 0 where the worker could not tell it.
    pub peak_memory: u64,
    /// Host calls that the program made.
    pub host_calls: u32,
}

/// A line of a program's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its level.
    pub level: Level,
    /// Its text.
    pub text: String,
}

/// The level of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `console.debug`
    Debug,
    /// `ctx.log`, `console.log`, `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
}

/// A fault of a program or of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The source does not compile, or imports something.
    Compile {
        /// The engine's words.
        message: String,
        /// From 1; 0 where it is unknown.
        line: u32,
        /// From 1; 0 where it is unknown.
        column: u32,
    },
    /// The module has no default export.
    NoDefaultExport,
    /// Its default export is no function.
    DefaultIsNoFunction,
    /// The program threw.
    Thrown {
        /// The error's name.
        name: String,
        /// Its message.
        message: String,
        /// Lines of the program that were active, the innermost first.
        stack: String,
        /// After how many milliseconds the program wants to be called again (`RetryableError`).
        retry_after: Option<u64>,
    },
    /// The program waits for something that nobody will do.
    NeverSettles,
    /// The deadline passed.
    Timeout,
    /// The memory did not suffice.
    Memory,
    /// The stack did not suffice.
    Stack,
    /// The output is none: why.
    Output(BadOutput),
    /// The process of the program ended: a fault of the engine, or a limit of the system.
    Crashed,
    /// The process of the program broke the rules of its messages.
    Protocol,
}

/// Why an output is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadOutput {
    /// It contains itself.
    Cycle,
    /// It has more levels than [`crate::Limits::depth`].
    Depth,
    /// It is larger than [`crate::Limits::output`].
    Size,
    /// It is or contains a function.
    Function,
    /// It is or contains a symbol.
    Symbol,
    /// It is or contains `NaN` or an infinity.
    NotFinite,
    /// It is or contains a BigInt.
    BigInt,
    /// It is `undefined`, or an array contains that.
    Undefined,
}

impl BadOutput {
    pub(crate) const ALL: [Self; 8] = [
        Self::Cycle,
        Self::Depth,
        Self::Size,
        Self::Function,
        Self::Symbol,
        Self::NotFinite,
        Self::BigInt,
        Self::Undefined,
    ];
}

impl std::fmt::Display for BadOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cycle => "the output contains itself",
            Self::Depth => "the output is nested too deeply",
            Self::Size => "the output is too large",
            Self::Function => "the output contains a function",
            Self::Symbol => "the output contains a symbol",
            Self::NotFinite => "the output contains NaN or an infinity, which JSON cannot express",
            Self::BigInt => "the output contains a BigInt, which JSON cannot express",
            Self::Undefined => "the function returned undefined, or an array that contains it",
        })
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Compile { message, line: 0, .. } => f.write_str(message),
            Self::Compile { message, line, column } => write!(f, "{message} (line {line}, column {column})"),
            Self::NoDefaultExport => f.write_str("the module has no default export"),
            Self::DefaultIsNoFunction => f.write_str("the default export is no function"),
            Self::Thrown { name, message, .. } => write!(f, "{name}: {message}"),
            Self::NeverSettles => f.write_str("the function waits for a promise that nothing settles"),
            Self::Timeout => f.write_str("the function ran out of time"),
            Self::Memory => f.write_str("the function ran out of memory"),
            Self::Stack => f.write_str("the function ran out of stack"),
            Self::Output(why) => why.fmt(f),
            Self::Crashed => f.write_str("the process of the function ended unexpectedly"),
            Self::Protocol => f.write_str("the process of the function sent a message that is not allowed"),
        }
    }
}

/// Why a call was not made, or why nobody knows what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Its turn did not come in time.
    Busy,
    /// A value that was given with the call is refused.
    Given {
        /// `code`, `input`, `vars`, `contact` or `run`.
        what: &'static str,
        /// Why.
        why: BadValue,
    },
    /// The system lacks a protection that the settings require.
    Unprotected(Protection),
    /// The settings say that no code is run.
    Off,
    /// The processes cannot be started.
    Unavailable(String),
    /// The processes were ended from outside while the call ran.
    Interrupted,
}

/// Why a value is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadValue {
    /// It is larger than the limit, in bytes.
    TooLarge(usize),
    /// It has more levels than the limit.
    TooDeep(usize),
    /// It is no JSON.
    NotJson,
    /// It has a number that a program cannot hold without losing digits.
    Number(String),
}

impl std::fmt::Display for BadValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge(limit) => write!(f, "it is larger than {limit} bytes"),
            Self::TooDeep(limit) => write!(f, "it is nested deeper than {limit} levels"),
            Self::NotJson => f.write_str("it is no JSON"),
            Self::Number(number) => {
                write!(f, "the number {number} has more digits than a program can hold: send it as a string")
            }
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Busy => f.write_str("too many functions are running"),
            Self::Given { what, why } => write!(f, "{what}: {why}"),
            Self::Unprotected(protection) => {
                write!(f, "code is not run, because the system lacks a protection: {protection}")
            }
            Self::Off => f.write_str("this installation runs no code (SVC_SANDBOX is off)"),
            Self::Unavailable(why) => write!(f, "the sandbox cannot be started: {why}"),
            Self::Interrupted => f.write_str("the process of the function was ended from outside"),
        }
    }
}

impl std::error::Error for Error {}

/// What the system holds a worker with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protection {
    /// Landlock.
    pub landlock: Landlock,
    /// Whether system calls are filtered.
    pub seccomp: bool,
}

impl Protection {
    /// Whether nothing is missing. Landlock of an older kernel, without its newer rights, suffices: the filter of system calls
    /// covers what it leaves open.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.seccomp && self.landlock != Landlock::Missing
    }
}

impl std::fmt::Display for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let landlock = match self.landlock {
            Landlock::Full => "landlock",
            Landlock::Partial => "landlock (in part)",
            Landlock::Missing => "no landlock",
        };
        write!(f, "{landlock}, {}", if self.seccomp { "seccomp" } else { "no seccomp" })
    }
}

/// How much of landlock the kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    /// File system, TCP, signals and abstract sockets are closed.
    Full,
    /// An older kernel: the file system is closed, some of the rest is not.
    Partial,
    /// Nothing, or switched off.
    Missing,
}
