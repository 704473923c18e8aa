//! One call in a fresh engine.

use super::bridge::{self, Pending};
use super::channel::Channel;
use super::report::{self, OUT_OF_MEMORY};
use super::task::{Loaded, Task};
use super::thrown::{FILE, thrown};
use super::{output, random};
use crate::call::Failure;
use crate::sys::{self, Meter, Metered};
use rquickjs::context::intrinsic;
use rquickjs::promise::PromiseState;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Module, Promise, Runtime, Value};
use std::rc::Rc;
use std::time::Instant;

/// All of the language but what reads a clock closely, outlives objects, or is an interface of browsers.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// Runs one call and sends its end. After an unclean end the process ends, without freeing anything.
pub fn run(channel: Channel, loaded: &Loaded, task: &Task) {
    let meter = Rc::new(Meter::default());
    let Ok(runtime) = Runtime::new_with_alloc(Metered::new(Rc::clone(&meter), loaded.memory, exhausted))
    else {
        exhausted()
    };
    runtime.set_max_stack_size(loaded.stack);
    let deadline = Instant::now() + task.deadline;
    runtime.set_interrupt_handler(Some(Box::new(move || {
        end_if_late(deadline);
        false
    })));
    let Ok(context) = Context::custom::<Language>(&runtime) else { exhausted() };
    context.with(|ctx| {
        let pending = Pending::default();
        let run = Run { ctx: ctx.clone(), channel, loaded, task, deadline, pending: &pending };
        let result = run.result();
        run.finish_host_calls();
        match result {
            Ok(text) => channel.write(&report::done(meter.peak(), &text)),
            Err(failure) => {
                channel.write(&report::failed(meter.peak(), &failure));
                if failure == Failure::Stack {
                    sys::exit_now(0);
                }
            }
        }
        // Functions that the engine's collector of cycles does not see.
        pending.clear();
    });
}

/// Ends the process: the memory did not suffice.
fn exhausted() -> ! {
    Channel.write(&OUT_OF_MEMORY);
    sys::exit_now(0)
}

/// Ends the process if the deadline passed. The engine's own way out, an exception that cannot be caught, had faults.
fn end_if_late(deadline: Instant) {
    if Instant::now() > deadline {
        Channel.write(&report::failed(0, &Failure::Timeout));
        sys::exit_now(0);
    }
}

struct Run<'a, 'js> {
    ctx: Ctx<'js>,
    channel: Channel,
    loaded: &'a Loaded,
    task: &'a Task,
    deadline: Instant,
    pending: &'a Pending<'js>,
}

impl<'js> Run<'_, 'js> {
    fn result(&self) -> Result<String, Failure> {
        let random = Rc::new(random::Random::new(self.task.fixed.map(|(_, seed)| seed)));
        let call = bridge::install(&self.ctx, self.channel, self.task, self.loaded, random, self.pending)
            .catch(&self.ctx)
            .map_err(thrown)?;
        let function = self.load()?;
        if self.task.check {
            return Ok("null".to_owned());
        }
        let promise: Promise<'js> = call.call((function,)).catch(&self.ctx).map_err(thrown)?;
        let value = self.settle(&promise)?;
        output::to_json(&self.ctx, value, self.loaded.output, self.loaded.depth)
    }

    /// Compiles the module and runs its top level.
    fn load(&self) -> Result<Function<'js>, Failure> {
        let module = Module::declare(self.ctx.clone(), FILE, self.loaded.source.as_str())
            .catch(&self.ctx)
            .map_err(uncompiled)?;
        let (module, promise) = module.eval().catch(&self.ctx).map_err(not_imported)?;
        self.settle(&promise)?;
        let exports = module.namespace().catch(&self.ctx).map_err(thrown)?;
        if !exports.contains_key("default").catch(&self.ctx).map_err(thrown)? {
            return Err(Failure::NoDefaultExport);
        }
        let default: Value<'js> = exports.get("default").catch(&self.ctx).map_err(thrown)?;
        default.into_function().ok_or(Failure::DefaultIsNoFunction)
    }

    /// Waits for answers that the program did not wait for: what it asked for is done.
    fn finish_host_calls(&self) {
        while !self.pending.is_empty() {
            self.hear();
            while self.ctx.execute_pending_job() {
                end_if_late(self.deadline);
            }
        }
    }

    /// Receives an answer of the parent.
    fn hear(&self) {
        let Some(reply) = self.channel.read() else { sys::exit_now(0) };
        // The functions of a promise do not throw.
        let _ = self.pending.settle(&self.ctx, &reply).catch(&self.ctx);
    }

    /// Runs the program's jobs and answers its host calls until `promise` is settled.
    fn settle(&self, promise: &Promise<'js>) -> Result<Value<'js>, Failure> {
        loop {
            while self.ctx.execute_pending_job() {
                end_if_late(self.deadline);
            }
            match promise.state() {
                PromiseState::Pending => {}
                PromiseState::Resolved | PromiseState::Rejected => break,
            }
            if self.pending.is_empty() {
                return Err(Failure::NeverSettles);
            }
            self.hear();
        }
        match promise.result::<Value<'js>>() {
            Some(result) => result.catch(&self.ctx).map_err(thrown),
            None => Err(Failure::NeverSettles),
        }
    }
}

/// A source that does not compile.
fn uncompiled(error: CaughtError<'_>) -> Failure {
    match error {
        CaughtError::Exception(exception) => {
            let (line, column) = place(&exception.stack().unwrap_or_default());
            Failure::Compile { message: exception.message().unwrap_or_default(), line, column }
        }
        // The only other error: a zero byte in the source.
        _ => Failure::Compile {
            message: "the source contains a character that is not allowed".to_owned(),
            line: 0,
            column: 0,
        },
    }
}

/// A module that is loaded, but not run: nothing can be imported.
fn not_imported(error: CaughtError<'_>) -> Failure {
    match thrown(error) {
        Failure::Thrown { name, message, .. }
            if name == "ReferenceError" && message.starts_with("could not load") =>
        {
            Failure::Compile { message: "a function cannot import modules".to_owned(), line: 0, column: 0 }
        }
        Failure::Thrown { name, message, stack, .. } if name == "SyntaxError" => {
            let (line, column) = place(&stack);
            Failure::Compile { message, line, column }
        }
        failure => failure,
    }
}

/// Line and column of the first place of the program in a stack.
fn place(stack: &str) -> (u32, u32) {
    let mut numbers = stack
        .split_once("function.js:")
        .map_or("", |(_, rest)| rest)
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
