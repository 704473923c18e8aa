//! The messages with which the parent gives a worker its program and its calls.

use super::channel::Message;
use crate::wire::{Malformed, Reader, to_worker};
use std::time::Duration;

/// A program and its limits.
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

pub fn program(message: &Message) -> Result<Loaded, Malformed> {
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

pub fn task(message: &Message) -> Result<Task, Malformed> {
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
