//! The zygote: this program executed again, which gives up all it has and then only forks workers.
//!
//! It must have one thread: a fork copies only the thread that forks, and locks that others hold would stay held.

use super::channel::Channel;
use super::confine::{self, Filters};
use super::random;
use crate::call::{Landlock, Protection};
use crate::sys::{self, Forked};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// The last argument of a zygote begins with this.
pub(crate) const MARK: &str = "--parent=";

/// What the parent tells the zygote on its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The parent's process.
    pub parent: i32,
    /// Whether to use landlock.
    pub landlock: bool,
    /// Whether to use seccomp.
    pub seccomp: bool,
    /// Bytes of memory of a worker's engine.
    pub memory: u64,
}

impl Options {
    /// Reads `--parent=1,landlock=1,seccomp=1,memory=1`.
    #[must_use]
    pub fn parse(argument: &str) -> Option<Self> {
        let mut parts = argument.strip_prefix(MARK)?.split(',');
        let parent = parts.next()?.parse().ok()?;
        let landlock = parts.next()?.strip_prefix("landlock=")? == "1";
        let seccomp = parts.next()?.strip_prefix("seccomp=")? == "1";
        let memory = parts.next()?.strip_prefix("memory=")?.parse().ok()?;
        Some(Self { parent, landlock, seccomp, memory })
    }
}

impl std::fmt::Display for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { parent, landlock, seccomp, memory } = *self;
        write!(
            f,
            "{MARK}{parent},landlock={},seccomp={},memory={memory}",
            u8::from(landlock),
            u8::from(seccomp)
        )
    }
}

/// Becomes a zygote, and never returns, if the program was started as one: `svc sandbox --parent=…`.
///
/// It must be the first thing that `main` does, before there is a thread or an open file.
pub fn zygote_if_asked() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("sandbox")
        && let Some(options) = arguments.next().and_then(|argument| Options::parse(&argument))
    {
        zygote(options, super::worker::serve);
    }
}

/// Is a zygote whose workers run `worker`.
pub fn zygote(options: Options, worker: fn(Channel) -> !) -> ! {
    std::panic::set_hook(Box::new(|_| sys::exit_now(101)));
    // The parent may have ended before this was set; then the signal never comes.
    let asked = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if asked.is_err() || rustix::process::getppid().map(Pid::as_raw_pid) != Some(options.parent) {
        sys::exit_now(0);
    }
    sys::close_from(1);
    if threads() > 1 {
        sys::exit_now(4);
    }
    let memory = confine::Memory::of_worker(options.memory);
    sys::interrupt_on_child();
    let filters = if options.seccomp { Filters::new() } else { None };
    confine::limit_zygote();
    let landlock = if options.landlock { confine::landlock() } else { Landlock::Missing };
    let seccomp = filters.as_ref().is_some_and(Filters::confine_zygote);
    let protection = Protection { landlock, seccomp };
    let zygote =
        Zygote { myself: rustix::process::getpid(), memory, filters: filters.filter(|_| seccomp), worker };
    if rustix::io::write(sys::first(), &confine::protection_to_bytes(protection)).is_err() {
        sys::exit_now(0);
    }
    loop {
        zygote.reap();
        match receive() {
            Some(Request::Fork(socket)) => zygote.fork(socket),
            Some(Request::Interrupted) => {}
            None => sys::exit_now(0),
        }
    }
}

/// Threads of this process; 1 where that cannot be read.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

struct Zygote {
    myself: Pid,
    memory: confine::Memory,
    filters: Option<Filters>,
    worker: fn(Channel) -> !,
}

enum Request {
    /// To fork a worker with this socket.
    Fork(OwnedFd),
    /// None: a worker ended.
    Interrupted,
}

/// Waits for a request; `None` when the parent has gone or sent something else.
fn receive() -> Option<Request> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        sys::first(),
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    );
    match received {
        Err(Errno::INTR) => return Some(Request::Interrupted),
        Ok(message) if message.bytes == 1 => {}
        _ => return None,
    }
    let mut descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let socket = descriptors.next()?.next()?;
    Some(Request::Fork(socket))
}

impl Zygote {
    /// Collects workers that have ended.
    fn reap(&self) {
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    }

    /// Forks a worker and sends its pidfd to the parent.
    fn fork(&self, socket: OwnedFd) {
        match sys::fork() {
            Ok(Forked::Child) => self.become_worker(socket),
            Ok(Forked::Parent(worker)) => {
                drop(socket);
                // Nobody else collects the worker, so until then its number is its own.
                match rustix::process::pidfd_open(worker, PidfdFlags::empty()) {
                    Ok(pidfd) => answer(Some(&pidfd)),
                    Err(_) => answer(None),
                }
            }
            Err(_) => answer(None),
        }
    }

    #[inline(never)]
    fn become_worker(&self, socket: OwnedFd) -> ! {
        let asked = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        if asked.is_err()
            || rustix::process::getppid() != Some(self.myself)
            || sys::make_first(socket).is_err()
        {
            sys::exit_now(0);
        }
        sys::close_from(1);
        confine::limit_worker(&self.memory);
        sys::renew_canary(random::system());
        if self.filters.as_ref().is_some_and(|filters| !filters.confine_worker()) {
            sys::exit_now(5);
        }
        (self.worker)(Channel)
    }
}

/// Answers a request: with a worker's pidfd, or that there is none.
fn answer(pidfd: Option<&OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<_> = pidfd.iter().map(|pidfd| pidfd.as_fd()).collect();
    let byte = if pidfd.is_some() { b'W' } else { b'E' };
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    while let Err(Errno::INTR) =
        rustix::net::sendmsg(sys::first(), &[IoSlice::new(&[byte])], &mut ancillary, SendFlags::NOSIGNAL)
    {
    }
}
