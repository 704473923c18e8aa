//! A worker: reads its program, then calls, until the parent closes the socket.

use super::channel::{Channel, Message};
use super::engine;
use crate::sys;
use crate::wire::{Malformed, Reader, to_worker};
use std::time::Duration;

/// What a worker runs, and with how much.
#[derive(Debug)]
pub struct Loaded {
    /// The source.
    pub source: String,
    /// Bytes of memory of the engine.
    pub memory: usize,
    /// Bytes of its stack.
    pub stack: usize,
    /// Bytes of an output.
    pub output: usize,
    /// Levels of an output.
    pub depth: usize,
    /// Bytes of all lines of a log.
    pub logs: usize,
    /// Bytes of a host call.
    pub request: usize,
    /// Host calls of a call.
    pub host_calls: u32,
}

/// One call.
#[derive(Debug)]
pub struct Task {
    /// Whether the program is only loaded, and its function not called.
    pub check: bool,
    /// The deadline, from now.
    pub deadline: Duration,
    /// Clock and seed of a test.
    pub fixed: Option<(i64, u64)>,
    /// What `ctx` has besides functions, as JSON.
    pub given: String,
}

/// Serves one program's calls, then ends the process. It is what a zygote runs in its workers.
pub fn serve(channel: Channel) -> ! {
    let Some(loaded) = channel.read().and_then(|message| program(&message).ok()) else { sys::exit_now(0) };
    while let Some(message) = channel.read() {
        let Ok(task) = task(&message) else { sys::exit_now(2) };
        engine::run(channel, &loaded, &task);
    }
    sys::exit_now(0)
}

fn program(message: &Message) -> Result<Loaded, Malformed> {
    if message.kind != to_worker::PROGRAM {
        return Err(Malformed);
    }
    let mut fields = Reader::new(&message.fields);
    let source = fields.text()?.to_owned();
    let mut size = || fields.u64().and_then(|size| usize::try_from(size).map_err(|_| Malformed));
    let (memory, stack, output, depth) = (size()?, size()?, size()?, size()?);
    let (logs, request) = (size()?, size()?);
    Ok(Loaded { source, memory, stack, output, depth, logs, request, host_calls: fields.u32()? })
}

fn task(message: &Message) -> Result<Task, Malformed> {
    if message.kind != to_worker::CALL {
        return Err(Malformed);
    }
    let mut fields = Reader::new(&message.fields);
    let check = fields.u8()? == 1;
    let deadline = Duration::from_millis(fields.u64()?);
    let fixed = (fields.u8()? == 1, fields.u64()?.cast_signed(), fields.u64()?);
    let fixed = fixed.0.then_some((fixed.1, fixed.2));
    Ok(Task { check, deadline, fixed, given: fields.text()?.to_owned() })
}
