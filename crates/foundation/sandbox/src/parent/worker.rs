//! A worker as its parent sees it.

use super::zygote::{Forked, Zygote};
use crate::call::{Call, Error, Program};
use crate::settings::Limits;
use crate::wire::{Writer, to_worker};
use rustix::process::{Signal, pidfd_send_signal};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A process that serves calls of one program. It is killed when this is dropped.
#[derive(Debug)]
pub struct Worker {
    forked: Forked,
    /// The zygote that forked it.
    pub zygote: Arc<Zygote>,
    /// What it runs.
    pub program: Program,
    /// Bytes of memory of its engine.
    pub memory: usize,
    /// Calls that it served.
    pub served: u32,
    /// Since when it waits for a call.
    pub idle_since: Instant,
}

impl Worker {
    /// Forks a worker for `program`.
    pub async fn fork(zygote: &Arc<Zygote>, program: &Program, memory: usize) -> Result<Self, Error> {
        let forked = zygote.fork().await?;
        Ok(Self {
            forked,
            zygote: Arc::clone(zygote),
            program: program.clone(),
            memory,
            served: 0,
            idle_since: Instant::now(),
        })
    }

    /// The parent's end of the socket, for one call.
    pub fn socket(&self) -> std::io::Result<UnixStream> {
        self.forked.socket.try_clone()
    }

    /// Whether nothing came since the last call: neither the process's end nor a message that nobody asked for.
    pub fn is_quiet(&self) -> bool {
        use std::io::Read;
        matches!((&self.forked.socket).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // An error says that it has ended already.
        let _ = pidfd_send_signal(&self.forked.pidfd, Signal::KILL);
    }
}

/// The first message to a worker: its program.
pub fn program_message(program: &Program, limits: &Limits) -> Vec<u8> {
    let number = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
    Writer::new(to_worker::PROGRAM)
        .text(&program.0)
        .u64(number(limits.memory))
        .u64(number(limits.stack))
        .u64(number(limits.output))
        .u64(number(limits.depth))
        .u64(number(limits.logs))
        .u64(number(limits.request))
        .u32(limits.host_calls)
        .finish()
}

/// What `ctx` has besides functions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Given<'a> {
    input: &'a RawValue,
    vars: &'a RawValue,
    secrets: BTreeMap<&'a str, &'a str>,
    contact: Option<&'a RawValue>,
    run: Option<&'a RawValue>,
    idempotency_key: Option<&'a str>,
    livemode: bool,
}

/// The message of a call; `None` if one of its values is no JSON.
pub fn call_message(call: &Call, check: bool, deadline: Duration) -> Option<Vec<u8>> {
    let raw = |text: &'_ str| serde_json::from_str::<Box<RawValue>>(text).ok();
    let (input, vars) = (raw(&call.input)?, raw(&call.vars)?);
    let contact = call.contact.as_deref().map(raw);
    let run = call.run.as_deref().map(raw);
    let given = Given {
        input: &input,
        vars: &vars,
        secrets: call
            .secrets
            .iter()
            .map(|secret| (secret.name.as_str(), secret.placeholder.as_str()))
            .collect(),
        contact: contact.as_ref().and_then(Option::as_deref),
        run: run.as_ref().and_then(Option::as_deref),
        idempotency_key: call.idempotency_key.as_deref(),
        livemode: call.livemode,
    };
    let (now, seed) = call.fixed.map_or((0, 0), |fixed| (fixed.now, fixed.seed));
    let message = Writer::new(to_worker::CALL)
        .u8(u8::from(check))
        .u64(u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX))
        .u8(u8::from(call.fixed.is_some()))
        .u64(now.cast_unsigned())
        .u64(seed)
        .text(&serde_json::to_string(&given).ok()?);
    Some(message.finish())
}
