//! Messages between the parent and a worker: a length, a kind, and fields.
//!
//! ```text
//! u32  length of what follows (little endian, as all numbers)
//! u8   kind
//! …    fields: numbers as they are, texts and bytes with a u32 of their length before them
//! ```
//! The parser takes any bytes and never panics: the other end may be hostile. Who reads checks the length against the kinds
//! that may come next before it reads on.

/// Kinds of messages to a worker.
pub mod to_worker {
    /// The program, once: its source, then limits of memory and stack.
    pub const PROGRAM: u8 = 1;
    /// A call.
    pub const CALL: u8 = 2;
    /// The answer to a host call.
    pub const REPLY: u8 = 3;
}

/// Kinds of messages from a worker.
pub mod to_parent {
    /// A line of the log.
    pub const LOG: u8 = 1;
    /// A call of the host.
    pub const HOST: u8 = 2;
    /// The call's result.
    pub const DONE: u8 = 3;
    /// The call's failure.
    pub const FAILED: u8 = 4;
}

/// Bytes before the kind.
pub const PREFIX: usize = 4;

/// A message that breaks the rules of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Builds one message.
#[derive(Debug)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Begins a message.
    #[must_use]
    pub fn new(kind: u8) -> Self {
        Self(vec![0, 0, 0, 0, kind])
    }

    /// Adds one byte.
    #[must_use]
    pub fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds bytes with their length.
    #[must_use]
    pub fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend(length(value.len()));
        self.0.extend(value);
        self
    }

    /// Adds a text with its length.
    #[must_use]
    pub fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    /// The message, ready to be written.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let prefix = length(self.0.len().saturating_sub(PREFIX));
        for (to, from) in self.0.iter_mut().zip(prefix) {
            *to = from;
        }
        self.0
    }
}

/// A length as the wire has it. Nothing near 4 GiB is ever sent.
fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes()
}

/// Reads the fields of one message.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads `fields`: a message without its length and kind.
    #[must_use]
    pub fn new(fields: &'a [u8]) -> Self {
        Self(fields)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// The message ends here.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// The message ends here.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// The message ends here.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// The message ends here.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        let (head, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// The message ends here, or is no UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    /// Ends reading.
    ///
    /// # Errors
    /// More follows.
    pub fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let message = Writer::new(7).u8(1).u32(2).u64(3).text("four").bytes(&[5]).finish();
        assert_eq!(message[..5], [27, 0, 0, 0, 7]);
        let mut reader = Reader::new(&message[5..]);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u32(), Ok(2));
        assert_eq!(reader.u64(), Ok(3));
        assert_eq!(reader.text(), Ok("four"));
        assert_eq!(reader.bytes(), Ok([5].as_slice()));
        assert_eq!(reader.end(), Ok(()));
    }

    #[test]
    fn a_length_beyond_the_message_and_text_that_is_none_are_malformed() {
        assert_eq!(Reader::new(&[255, 255, 255, 255, 0]).bytes(), Err(Malformed));
        assert_eq!(Reader::new(&[1, 0, 0]).bytes(), Err(Malformed));
        assert_eq!(Reader::new(&[1, 0, 0, 0, 255]).text(), Err(Malformed));
        assert_eq!(Reader::new(&[0]).end(), Err(Malformed));
    }
}
