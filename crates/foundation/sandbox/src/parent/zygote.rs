//! The zygote as its parent sees it.

use crate::call::{Error, Landlock, Protection};
use crate::child::Options;
use crate::settings::Settings;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How long the zygote may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// A running zygote. It ends when this is dropped, and its workers with it.
#[derive(Debug)]
pub struct Zygote {
    control: Mutex<OwnedFd>,
    ended: watch::Receiver<bool>,
    process: u32,
    /// What the system holds its workers with.
    pub protection: Protection,
}

/// A process forked by the zygote.
#[derive(Debug)]
pub struct Forked {
    /// The parent's end of its socket.
    pub socket: UnixStream,
    /// The process, by a descriptor that cannot come to mean another.
    pub pidfd: OwnedFd,
}

impl Zygote {
    /// Starts a zygote.
    pub async fn start(settings: &Settings) -> Result<Arc<Self>, Error> {
        let (control, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| unavailable(&error.into()))?;
        let timeout = rustix::net::sockopt::Timeout::Recv;
        rustix::net::sockopt::set_socket_timeout(&control, timeout, Some(ANSWER))
            .map_err(|error| unavailable(&error.into()))?;
        let (end, ended) = watch::channel(false);
        let process = execute(command(settings, theirs), end).await?;
        let (control, protection) =
            tokio::task::spawn_blocking(move || hello(&control).map(|protection| (control, protection)))
                .await
                .map_err(|_| Error::Unavailable("its start was cancelled".to_owned()))??;
        if protection.is_complete() {
            tracing::info!(process, %protection, "sandbox started");
        } else {
            tracing::warn!(process, %protection, "sandbox started without all protection");
        }
        Ok(Arc::new(Self { control: Mutex::new(control), ended, process, protection }))
    }

    /// Forks a worker.
    pub async fn fork(self: &Arc<Self>) -> Result<Forked, Error> {
        let zygote = Arc::clone(self);
        // Not abandoned when the caller goes away, so an answer never meets the next request.
        tokio::task::spawn_blocking(move || zygote.fork_now())
            .await
            .map_err(|_| Error::Unavailable("the fork was cancelled".to_owned()))?
            .map_err(|error| unavailable(&error))
    }

    fn fork_now(&self) -> std::io::Result<Forked> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [theirs.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        rustix::net::sendmsg(&*control, &[IoSlice::new(b"F")], &mut ancillary, SendFlags::NOSIGNAL)?;
        let pidfd = receive_pidfd(&control)?;
        Ok(Forked { socket, pidfd })
    }

    /// Whether the zygote has ended.
    pub fn is_dead(&self) -> bool {
        *self.ended.borrow() || self.ended.has_changed().is_err()
    }

    /// Waits for the zygote's end, at most `patience`; whether it ended.
    pub async fn dies_within(&self, patience: Duration) -> bool {
        let mut ended = self.ended.clone();
        // An error says that the thread which waited for the process is gone, and so is the process.
        tokio::time::timeout(patience, ended.wait_for(|ended| *ended)).await.is_ok()
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.process
    }
}

fn unavailable(error: &std::io::Error) -> Error {
    Error::Unavailable(error.to_string())
}

/// How the zygote is executed: with nothing but its end of the control socket.
fn command(settings: &Settings, control: OwnedFd) -> Command {
    let options = Options {
        parent: i32::try_from(std::process::id()).unwrap_or(-1),
        landlock: settings.landlock,
        seccomp: settings.seccomp,
        memory: u64::try_from(settings.limits.memory).unwrap_or(u64::MAX),
    };
    let mut command = Command::new(&settings.program);
    command.args(&settings.arguments).arg(options.to_string()).env_clear().current_dir("/");
    command.stdin(Stdio::from(control)).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Executes `command` and returns its process.
///
/// The signal that ends a process with its parent comes when the *thread* that started it ends. So that thread lives as long as
/// the process: it waits for it.
async fn execute(mut command: Command, end: watch::Sender<bool>) -> Result<u32, Error> {
    let (report, started) = oneshot::channel();
    let waiting = move || {
        let child = command.spawn();
        // Closes the zygote's end of the socket in this process.
        drop(command);
        match child {
            Ok(mut child) => {
                let _ = report.send(Ok(child.id()));
                let status = child.wait();
                tracing::debug!(process = child.id(), ?status, "sandbox ended");
                let _ = end.send(true);
            }
            Err(error) => {
                let _ = report.send(Err(unavailable(&error)));
            }
        }
    };
    std::thread::Builder::new()
        .name("sandbox".to_owned())
        .stack_size(256 << 10)
        .spawn(waiting)
        .map_err(|error| unavailable(&error))?;
    started.await.map_err(|_| Error::Unavailable("its thread ended".to_owned()))?
}

/// Receives what the zygote says when it is ready.
fn hello(control: &OwnedFd) -> Result<Protection, Error> {
    let mut bytes = [0; 4];
    let received = rustix::net::recv(control, &mut bytes, RecvFlags::empty()).map(|(count, _)| count);
    match (received, bytes) {
        (Ok(3), [b'H', landlock @ 0..=2, seccomp @ 0..=1, _]) => {
            let landlock = match landlock {
                2 => Landlock::Full,
                1 => Landlock::Partial,
                _ => Landlock::Missing,
            };
            Ok(Protection { landlock, seccomp: seccomp == 1 })
        }
        (Ok(_), _) => Err(Error::Unavailable("the program ended, or is no sandbox".to_owned())),
        (Err(error), _) => Err(unavailable(&error.into())),
    }
}

fn receive_pidfd(control: &OwnedFd) -> std::io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::net::recvmsg(
        control,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let pidfd = descriptors.next().and_then(|mut descriptors| descriptors.next());
    pidfd
        .filter(|_| message.bytes == 1 && byte == *b"W")
        .ok_or_else(|| std::io::Error::other("no process was forked"))
}
