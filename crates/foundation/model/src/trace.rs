//! Traces over several services, as W3C Trace Context defines them.

use crate::Random;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The flags that version 00 defines: sampled, and random trace id.
const KNOWN_FLAGS: u8 = SAMPLED | RANDOM;
/// The sampled flag: the caller may have recorded its part of the trace.
const SAMPLED: u8 = 0b01;
/// The random trace id flag.
const RANDOM: u8 = 0b10;
/// The longest `tracestate` that is passed on. All services must take at least so much.
const LONGEST_STATE: usize = 512;
/// The most entries of a `tracestate`.
const MOST_ENTRIES: usize = 32;

/// Which trace something belongs to, and its caller's span in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    parent: TraceParent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

/// The value of the header `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct TraceParent {
    trace: u128,
    span: u64,
    flags: u8,
}

impl Trace {
    /// Reads the headers `traceparent` and `tracestate`. `None` where the first cannot be read: then a new trace begins.
    /// A `tracestate` that cannot be read is left out.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let parent = parent.parse().ok()?;
        Some(Self { parent, state: state.filter(|state| is_state(state)).map(str::to_owned) })
    }

    /// The trace of what came without one: its id is the 128 bits of a time-ordered id, such as a request's, so that it
    /// need not be stored with it.
    pub fn of_id(id: &str) -> Self {
        let (_, tail) = id.split_once('_').unwrap_or_default();
        let trace =
            tail.bytes().fold(0_u128, |bits, letter| bits << 5 | u128::from(crate::id::digit(letter)));
        // The zero is no trace; and what an older version stored may be no time-ordered id.
        let (trace, span) = (trace.max(1), (trace as u64).max(1));
        Self { parent: TraceParent { trace, span, flags: RANDOM }, state: None }
    }

    /// The trace's id: 32 hexadecimal digits.
    pub fn id(&self) -> String {
        format!("{:032x}", self.parent.trace)
    }

    /// The trace's id as a number.
    pub fn trace_id(&self) -> u128 {
        self.parent.trace
    }

    /// The caller's span. For a request to another service, the span of that request.
    pub fn span_id(&self) -> u64 {
        self.parent.span
    }

    /// The flags of the header `traceparent`.
    pub fn flags(&self) -> u8 {
        self.parent.flags
    }

    /// The header `tracestate`, if one came.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Whether spans below it are recorded.
    pub fn is_sampled(&self) -> bool {
        self.parent.flags & SAMPLED != 0
    }

    /// The same with the sampled flag set or cleared.
    #[must_use]
    pub fn sampled(mut self, sampled: bool) -> Self {
        self.parent.flags = self.parent.flags & !SAMPLED | if sampled { SAMPLED } else { 0 };
        self
    }

    /// The value of the header `traceparent`.
    pub fn parent(&self) -> String {
        self.parent.to_string()
    }

    /// The same trace below a new span, for a request to another service.
    #[must_use]
    pub fn child(&self, random: &dyn Random) -> Self {
        let mut span = [0; 8];
        random.fill(&mut span);
        let span = u64::from_be_bytes(span).max(1);
        Self { parent: TraceParent { span, ..self.parent }, state: self.state.clone() }
    }

    /// The headers that carry it to another service.
    pub fn headers(&self) -> impl Iterator<Item = (String, String)> {
        let parent = ("traceparent".to_owned(), self.parent());
        let state = self.state.clone().map(|state| ("tracestate".to_owned(), state));
        std::iter::once(parent).chain(state)
    }
}

impl FromStr for TraceParent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut fields = text.split('-');
            let mut field = |digits: usize| fields.next().filter(|field| is_hexadecimal(field, digits));
            let (version, trace, span, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
            // Later versions may add fields.
            if version == "ff" || version == "00" && fields.next().is_some() {
                return None;
            }
            let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace > 0)?;
            let span = u64::from_str_radix(span, 16).ok().filter(|span| *span > 0)?;
            Some(Self { trace, span, flags: u8::from_str_radix(flags, 16).ok()? & KNOWN_FLAGS })
        };
        parse().ok_or("is no traceparent")
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.to_string()
    }
}

impl TryFrom<String> for TraceParent {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// The digits of the standard are in lower case.
fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether this is a list of keys and values as the standard has it.
fn is_state(text: &str) -> bool {
    let entries =
        || text.split(',').map(|entry| entry.trim_matches([' ', '\t'])).filter(|entry| !entry.is_empty());
    let is_entry =
        |entry: &str| entry.split_once('=').is_some_and(|(key, value)| is_key(key) && is_value(value));
    text.len() <= LONGEST_STATE && (1..=MOST_ENTRIES).contains(&entries().count()) && entries().all(is_entry)
}

fn is_key(key: &str) -> bool {
    let is_part = |part: &str, longest: usize| {
        (1..=longest).contains(&part.len())
            && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/'))
    };
    let begins_with_letter = |part: &str| part.starts_with(|first: char| first.is_ascii_lowercase());
    match key.split_once('@') {
        None => is_part(key, 256) && begins_with_letter(key),
        Some((tenant, system)) => {
            is_part(tenant, 241)
                && tenant.starts_with(|first: char| first.is_ascii_alphanumeric())
                && is_part(system, 14)
                && begins_with_letter(system)
        }
    }
}

fn is_value(value: &str) -> bool {
    (1..=256).contains(&value.len())
        && !value.ends_with(' ')
        && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestId, SeededRandom, Timestamp};

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_child_stays_in_the_trace() {
        let trace = Trace::parse(PARENT, Some("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7")).unwrap();
        assert_eq!(trace.id(), "0af7651916cd43dd8448eb211c80319c");
        let child = trace.child(&SeededRandom::new(7));
        let headers: Vec<_> = child.headers().collect();
        assert!(headers[0].1.starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
        assert!(headers[0].1.ends_with("-01") && !headers[0].1.contains("b7ad6b7169203331"));
        assert_eq!(headers[1], ("tracestate".into(), "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7".into()));
        let stored = serde_json::to_string(&trace).unwrap();
        assert_eq!(serde_json::from_str::<Trace>(&stored).unwrap(), trace);
    }

    #[test]
    fn a_parent_is_read_strictly() {
        for good in [
            PARENT,
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-later",
        ] {
            assert!(Trace::parse(good, None).is_some(), "{good}");
        }
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(Trace::parse(bad, Some("a=b")), None, "{bad}");
        }
        let unknown_flags = PARENT.replace("-01", "-fd");
        assert_eq!(Trace::parse(&unknown_flags, None).unwrap().parent(), PARENT);
    }

    #[test]
    fn a_state_that_cannot_be_read_is_left_out() {
        let state = |text: &str| Trace::parse(PARENT, Some(text)).unwrap().state;
        let full = vec!["a=b"; MOST_ENTRIES].join(",");
        for good in ["a=1", "a=1, b-_*/2=x y:~", "0tenant@sys=1,,\tc=2", &full] {
            assert_eq!(state(good).as_deref(), Some(good));
        }
        let long = format!("a={}", "x".repeat(LONGEST_STATE));
        let many = format!("{full},c=d");
        for bad in [
            "", ",", "a", "=1", "a=", "A=1", "0a=1", "a@=1", "a@0b=1", "a=1=2", "a=é", "a=\u{7f}", &long,
            &many,
        ] {
            assert_eq!(state(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_came_without_a_trace_has_one_by_its_id() {
        let random = SeededRandom::new(7);
        let id = RequestId::new(Timestamp::from_millis(0x0123_4567_89ab), &random);
        let trace = Trace::of_id(id.as_str());
        assert!(trace.id().starts_with("0123456789ab"), "{}", trace.id());
        assert_eq!(Trace::of_id(id.as_str()), trace);
        assert_ne!(Trace::of_id(RequestId::new(Timestamp::from_millis(0), &random).as_str()), trace);
        for strange in ["", "req_", "req_0", "strange"] {
            let child = Trace::of_id(strange).child(&random);
            assert!(Trace::parse(&child.parent(), None).is_some(), "{strange}");
        }
    }
}
