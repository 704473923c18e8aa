//! One call as a conversation with a worker.
//!
//! A worker may send, in this order: lines of the log and host calls in any number within the limits, the latter numbered
//! from 0; then exactly one result or failure, with no host call unanswered; then nothing until the next call. A worker that
//! sends anything else is hostile, and its process is killed.

use crate::call::{BadOutput, Failure, Level, LogLine};
use crate::child::report::{LONGEST_FAILURE, code};
use crate::host::{Host, HostAnswer, HostCall, HostError};
use crate::json;
use crate::settings::Limits;
use crate::wire::{Malformed, PREFIX, Reader, Writer, to_parent, to_worker};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// How a conversation ended.
#[derive(Debug)]
pub enum End {
    /// With a result or a failure.
    Told(Result<String, Failure>),
    /// The process ended.
    Lost,
    /// The process broke the rules.
    Hostile,
}

/// What was said in a conversation, also in one that was cut off.
#[derive(Debug, Default)]
pub struct Transcript {
    /// Lines of the log.
    pub logs: Vec<LogLine>,
    /// Bytes of all lines.
    log_bytes: usize,
    /// Whether the worker said that it leaves lines out.
    pub logs_truncated: bool,
    /// Host calls.
    pub host_calls: u32,
    /// Of those, fetches.
    fetches: u32,
    /// The most memory that the engine held.
    pub peak_memory: u64,
}

/// A message as it came.
struct Message<'b> {
    kind: u8,
    fields: &'b [u8],
    /// Its length on the wire.
    length: usize,
}

/// Room for what comes first. Most answers are smaller.
const FIRST_READ: usize = 16 << 10;

/// What one message comes to.
enum Heard<'a> {
    /// Nothing to do.
    Noted,
    /// An answer is due.
    Asked(BoxFuture<'a, (u32, HostAnswer)>),
    /// The end.
    End(Result<String, Failure>),
}

/// Sends `message` and talks until the worker has told the call's end.
///
/// What was heard so far is in `transcript` at each moment, so a caller that gives up has it.
pub async fn talk(
    socket: &mut UnixStream,
    message: Vec<u8>,
    limits: &Limits,
    host: &dyn Host,
    transcript: &mut Transcript,
) -> End {
    let (mut reader, mut writer) = socket.split();
    let mut outgoing = message;
    let mut sent = 0;
    // A reader fills the room that there is: from an empty one, an answer of 1 KB would take five system calls.
    let mut incoming: Vec<u8> = Vec::with_capacity(FIRST_READ);
    let mut asked: FuturesUnordered<BoxFuture<'_, (u32, HostAnswer)>> = FuturesUnordered::new();
    let most = usize::try_from(limits.parallel_host_calls).unwrap_or(1).max(1);
    loop {
        while asked.len() < most {
            let message = match next(&incoming, limits) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(Malformed) => return End::Hostile,
            };
            let length = message.length;
            match hear(&message, limits, host, transcript) {
                Ok(Heard::Noted) => {}
                Ok(Heard::Asked(answer)) => asked.push(answer),
                Ok(Heard::End(end))
                    if asked.is_empty() && incoming.len() == length && sent == outgoing.len() =>
                {
                    return End::Told(end);
                }
                Ok(Heard::End(_)) | Err(Malformed) => return End::Hostile,
            }
            incoming.drain(..length);
        }
        let rest = outgoing.get(sent..).unwrap_or_default();
        tokio::select! {
            read = reader.read_buf(&mut incoming), if asked.len() < most => match read {
                Ok(0) | Err(_) => return End::Lost,
                Ok(_) => {}
            },
            written = writer.write(rest), if !rest.is_empty() => match written {
                Ok(0) | Err(_) => return End::Lost,
                Ok(count) => sent += count,
            },
            Some((id, answer)) = asked.next() => {
                if sent == outgoing.len() {
                    outgoing.clear();
                    sent = 0;
                }
                outgoing.extend(reply(id, answer, limits.response));
            }
        }
    }
}

/// The first message in `incoming`, if it is complete. Its length is checked against its kind before more of it is awaited.
fn next<'b>(incoming: &'b [u8], limits: &Limits) -> Result<Option<Message<'b>>, Malformed> {
    let Some((prefix, rest)) = incoming.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*prefix)).map_err(|_| Malformed)?;
    let Some((kind, _)) = rest.split_first() else { return Ok(None) };
    // Besides the text or body itself: lengths and numbers.
    const FIELDS: usize = 64;
    let most = match *kind {
        to_parent::LOG => limits.logs.min(LONGEST_FAILURE) + FIELDS,
        to_parent::HOST => limits.request + FIELDS,
        to_parent::DONE => limits.output + FIELDS,
        to_parent::FAILED => LONGEST_FAILURE,
        _ => return Err(Malformed),
    };
    if length == 0 || length > most {
        return Err(Malformed);
    }
    let Some(message) = rest.get(..length) else { return Ok(None) };
    let fields = message.get(1..).unwrap_or_default();
    Ok(Some(Message { kind: *kind, fields, length: PREFIX + length }))
}

/// Takes one message.
fn hear<'h>(
    message: &Message<'_>,
    limits: &Limits,
    host: &'h dyn Host,
    transcript: &mut Transcript,
) -> Result<Heard<'h>, Malformed> {
    let fields = Reader::new(message.fields);
    match message.kind {
        to_parent::LOG => log(fields, limits, transcript).map(|()| Heard::Noted),
        to_parent::HOST => ask(fields, limits, host, transcript).map(Heard::Asked),
        to_parent::DONE => done(fields, limits, transcript).map(|output| Heard::End(Ok(output))),
        to_parent::FAILED => failed(fields, limits, transcript).map(|failure| Heard::End(Err(failure))),
        _ => Err(Malformed),
    }
}

fn log(mut fields: Reader<'_>, limits: &Limits, transcript: &mut Transcript) -> Result<(), Malformed> {
    let (level, text) = (fields.u8()?, fields.text()?);
    fields.end()?;
    transcript.log_bytes += text.len();
    // Empty lines take place too, in our memory.
    if transcript.logs_truncated || transcript.log_bytes > limits.logs || transcript.logs.len() > limits.logs
    {
        return Err(Malformed);
    }
    let level = match level {
        0 => Level::Debug,
        1 => Level::Info,
        2 => Level::Warn,
        3 => Level::Error,
        4 => {
            transcript.logs_truncated = true;
            return Ok(());
        }
        _ => return Err(Malformed),
    };
    transcript.logs.push(LogLine { level, text: text.to_owned() });
    Ok(())
}

fn ask<'h>(
    mut fields: Reader<'_>,
    limits: &Limits,
    host: &'h dyn Host,
    transcript: &mut Transcript,
) -> Result<BoxFuture<'h, (u32, HostAnswer)>, Malformed> {
    let (id, call, body) = (fields.u32()?, fields.text()?, fields.bytes()?);
    fields.end()?;
    if id != transcript.host_calls || transcript.host_calls >= limits.host_calls {
        return Err(Malformed);
    }
    transcript.host_calls += 1;
    let refuse = |name, message: &str| {
        let error = HostError::new(name, message);
        Box::pin(std::future::ready((id, Err(error))))
    };
    // The program can write this text, so a fault in it is the program's, and no break of the rules.
    let Ok(call) = serde_json::from_str::<HostCall>(call) else {
        return Ok(refuse("TypeError", "the arguments are not understood"));
    };
    if call.is_fetch() {
        transcript.fetches += 1;
        if transcript.fetches > limits.fetches {
            return Ok(refuse("LimitError", &format!("a call may fetch {} times", limits.fetches)));
        }
    }
    let body = body.to_vec();
    Ok(Box::pin(async move { (id, call.ask(body, host).await) }))
}

fn done(mut fields: Reader<'_>, limits: &Limits, transcript: &mut Transcript) -> Result<String, Malformed> {
    let (peak, output) = (fields.u64()?, fields.text()?);
    fields.end()?;
    transcript.peak_memory = peak;
    let is_json = json::levels(output) <= limits.depth
        && output.len() <= limits.output
        && serde_json::from_str::<&serde_json::value::RawValue>(output).is_ok();
    if is_json { Ok(output.to_owned()) } else { Err(Malformed) }
}

fn failed(
    mut fields: Reader<'_>,
    limits: &Limits,
    transcript: &mut Transcript,
) -> Result<Failure, Malformed> {
    transcript.peak_memory = fields.u64()?;
    let failure = match fields.u8()? {
        code::COMPILE => Failure::Compile {
            message: fields.text()?.to_owned(),
            line: fields.u32()?,
            column: fields.u32()?,
        },
        code::NO_DEFAULT_EXPORT => Failure::NoDefaultExport,
        code::DEFAULT_IS_NO_FUNCTION => Failure::DefaultIsNoFunction,
        code::THROWN => Failure::Thrown {
            name: fields.text()?.to_owned(),
            message: fields.text()?.to_owned(),
            stack: fields.text()?.to_owned(),
            retry_after: retry_after(&mut fields)?,
        },
        code::NEVER_SETTLES => Failure::NeverSettles,
        code::TIMEOUT => Failure::Timeout,
        code::MEMORY => {
            transcript.peak_memory = u64::try_from(limits.memory).unwrap_or(u64::MAX);
            Failure::Memory
        }
        code::STACK => Failure::Stack,
        code::OUTPUT => {
            let place = usize::from(fields.u8()?);
            Failure::Output(BadOutput::ALL.get(place).copied().ok_or(Malformed)?)
        }
        _ => return Err(Malformed),
    };
    fields.end()?;
    Ok(failure)
}

fn retry_after(fields: &mut Reader<'_>) -> Result<Option<u64>, Malformed> {
    let (wished, after) = (fields.u8()?, fields.u64()?);
    Ok((wished == 1).then_some(after))
}

/// The message that answers a host call.
fn reply(id: u32, answer: HostAnswer, limit: usize) -> Vec<u8> {
    let answer = answer.and_then(|(text, body)| {
        if text.len() + body.len() > limit {
            return Err(HostError::new("LimitError", &format!("the answer is larger than {limit} bytes")));
        }
        Ok((text, body))
    });
    let (good, text, body) = match answer {
        Ok((text, body)) => (1, text, body),
        Err(HostError { name, message, code }) => {
            let error = serde_json::json!({ "name": name, "message": message, "code": code });
            (0, error.to_string(), Vec::new())
        }
    };
    Writer::new(to_worker::REPLY).u32(id).u8(good).text(&text).bytes(&body).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::NoHost;

    /// A repeatable sequence (xorshift).
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
        }
    }

    fn messages() -> Vec<Vec<u8>> {
        let host = |id, call: &str| Writer::new(to_parent::HOST).u32(id).text(call).bytes(b"body").finish();
        vec![
            Writer::new(to_parent::LOG).u8(1).text("a line").finish(),
            Writer::new(to_parent::LOG).u8(4).text("").finish(),
            host(0, r#"{"call":"kv_get","key":"k"}"#),
            host(1, r#"{"call":"fetch","method":"GET","url":"https://a.example","headers":[["a","b"]]}"#),
            Writer::new(to_parent::DONE).u64(7).text(r#"{"a":[1,"x"]}"#).finish(),
            Writer::new(to_parent::FAILED).u64(7).u8(1).text("m").u32(1).u32(2).finish(),
            Writer::new(to_parent::FAILED).u64(7).u8(4).text("n").text("m").text("s").u8(1).u64(5).finish(),
            Writer::new(to_parent::FAILED).u64(7).u8(9).u8(3).finish(),
        ]
    }

    /// Takes all messages of `bytes`; how many, and whether the rules were kept.
    fn take(mut bytes: &[u8]) -> (usize, bool) {
        let (limits, mut transcript) = (Limits::default(), Transcript::default());
        let mut count = 0;
        loop {
            let message = match next(bytes, &limits) {
                Ok(Some(message)) => message,
                Ok(None) => return (count, true),
                Err(Malformed) => return (count, false),
            };
            if hear(&message, &limits, &NoHost, &mut transcript).is_err() {
                return (count, false);
            }
            bytes = &bytes[message.length..];
            count += 1;
        }
    }

    #[test]
    fn messages_are_taken_and_those_cut_short_are_awaited() {
        let all: Vec<u8> =
            messages().into_iter().enumerate().filter(|(n, _)| *n != 1).flat_map(|(_, m)| m).collect();
        assert_eq!(take(&all), (7, true));
        for end in 0..all.len() {
            assert!(take(&all[..end]).1, "{end}");
        }
    }

    #[test]
    fn a_length_is_checked_before_anything_is_awaited() {
        for kind in 0..=255 {
            let claim = [0_u8, 0, 0, 64, kind];
            assert_eq!(take(&claim), (0, false), "{kind}");
            assert_eq!(take(&[0, 0, 0, 0, kind]), (0, false), "{kind}");
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        let messages = messages();
        // For longer: `SVC_TEST_PARSER_ROUNDS=100000000`, and another seed.
        let setting = |name, default| std::env::var(name).map_or(default, |value| value.parse().unwrap());
        let mut random = Random(setting("SVC_TEST_PARSER_SEED", 0x9e37_79b9_7f4a_7c15));
        for _ in 0..setting("SVC_TEST_PARSER_ROUNDS", 200_000) {
            let mut bytes: Vec<u8> = Vec::new();
            for _ in 0..=random.below(3) {
                bytes.extend(&messages[random.below(messages.len())]);
            }
            for _ in 0..random.below(5) {
                let place = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes[place] = u8::try_from(random.below(256)).unwrap(),
                    1 => bytes[place] ^= 1 << random.below(8),
                    2 => bytes.truncate(place.max(1)),
                    _ => bytes.insert(place, [0, 1, 127, 255][random.below(4)]),
                }
            }
            take(&bytes);
        }
    }
}
