//! Child processes of the benchmark. Commands are lines on their input, and responses are lines of JSON on their
//! output.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};

/// A running child process. It is killed when dropped.
pub struct Child {
    process: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The first line of its output.
    pub hello: Value,
}

impl Child {
    /// Starts this program with `arguments` and waits for its first line.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments);
        Self::run(command, None)
    }

    /// Starts any program, sends it a line of input if there is one, and waits for its first line.
    pub fn run(mut command: Command, first: Option<&Value>) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = process.stdin.take();
        if let (Some(input), Some(first)) = (&mut input, first) {
            writeln!(input, "{first}")?;
        }
        let output = BufReader::new(process.stdout.take().context("no output")?);
        let mut child = Self { process, input, output, hello: Value::Null };
        child.hello = child.read()?;
        Ok(child)
    }

    /// Sends a command and returns the response.
    pub fn ask(&mut self, word: &str) -> Result<Value> {
        let input = self.input.as_mut().context("its input is closed")?;
        writeln!(input, "{word}")?;
        input.flush()?;
        self.read()
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    fn read(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("a process of the benchmark ended: {}", self.process.wait()?);
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the lines of this process's input, which a separate thread reads.
pub fn words() -> tokio::sync::mpsc::Receiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Returns a text member of a response.
pub fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    value.get(name).and_then(Value::as_str).with_context(|| format!("no {name} in {value}"))
}

/// Returns a number member of a response.
pub fn number(value: &Value, name: &str) -> Result<i64> {
    value.get(name).and_then(Value::as_i64).with_context(|| format!("no {name} in {value}"))
}
