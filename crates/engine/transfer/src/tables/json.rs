//! Reading of a JSON array element by element, in constant memory.

use super::LONGEST;
use bytes::Bytes;
use std::io::{BufRead, Result};

/// The result of reading an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// The text of the element.
    Text(Bytes),
    /// The element exceeds the maximum length.
    TooLong,
    /// The file ends within the array, or continues after it.
    Fault,
}

/// A reader of an array's elements.
#[derive(Debug)]
pub(crate) struct Values<R> {
    reader: R,
    read: u64,
    has_begun: bool,
    is_over: bool,
}

impl<R: BufRead> Values<R> {
    /// Creates a reader from the beginning of a file, or from the end of an element.
    pub(crate) fn new(reader: R, is_start: bool) -> Self {
        Self { reader, read: 0, has_begun: !is_start, is_over: false }
    }

    /// Returns the number of bytes up to the end of the last element.
    pub(crate) fn place(&self) -> u64 {
        self.read
    }

    /// Reads the next element. Returns `None` at the end or after a fault.
    pub(crate) fn next_value(&mut self) -> Result<Option<Value>> {
        while !self.is_over {
            let next = self.reader.fill_buf()?.first().copied();
            match next {
                Some(byte) if byte.is_ascii_whitespace() => self.consume(1),
                Some(b'[') if !self.has_begun => {
                    self.has_begun = true;
                    self.consume(1);
                }
                Some(b',') if self.has_begun => self.consume(1),
                Some(b']') => {
                    self.consume(1);
                    return Ok((!self.ends()?).then_some(Value::Fault));
                }
                Some(_) if self.has_begun => return self.value().map(Some),
                Some(_) | None => {
                    self.is_over = true;
                    return Ok(Some(Value::Fault));
                }
            }
        }
        Ok(None)
    }

    fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.read += bytes as u64;
    }

    /// Checks that only white space follows the array.
    fn ends(&mut self) -> Result<bool> {
        self.is_over = true;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(true);
            }
            if !buffer.iter().all(u8::is_ascii_whitespace) {
                return Ok(false);
            }
            let used = buffer.len();
            self.consume(used);
        }
    }

    fn value(&mut self) -> Result<Value> {
        let (mut text, mut length) = (Vec::new(), 0_usize);
        let mut scan = Scan::default();
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                self.is_over = true;
                return Ok(Value::Fault);
            }
            let end = buffer.iter().position(|byte| scan.ends_before(*byte));
            let used = end.unwrap_or(buffer.len());
            length += used;
            if length <= LONGEST {
                text.extend(buffer.iter().take(used));
            }
            self.consume(used);
            if end.is_some() {
                let is_kept = length <= LONGEST;
                return Ok(if is_kept { Value::Text(text.into()) } else { Value::TooLong });
            }
        }
    }
}

/// The state of the scanner within an element.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Scan {
    /// Returns whether the element ends before this byte.
    fn ends_before(&mut self, byte: u8) -> bool {
        if self.in_text {
            self.in_text = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return false;
        }
        match byte {
            b',' | b']' if self.depth == 0 => return true,
            b'"' => self.in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn read(text: &str, from: usize) -> (Vec<String>, Vec<usize>) {
        let reader = BufReader::with_capacity(3, text.get(from..).unwrap().as_bytes());
        let mut values = Values::new(reader, from == 0);
        let (mut found, mut places) = (Vec::new(), Vec::new());
        while let Some(value) = values.next_value().unwrap() {
            found.push(match value {
                Value::Text(text) => String::from_utf8(text.to_vec()).unwrap().trim().to_owned(),
                other => format!("{other:?}"),
            });
            places.push(from + usize::try_from(values.place()).unwrap());
        }
        (found, places)
    }

    #[test]
    fn elements_are_read_from_behind_any_other() {
        let text = " [\n {\"a\": \"x]},\\\"\"}, 5 ,\n[1,{}],{\n\"b\":[{}]\n}\n]\n ";
        let (whole, places) = read(text, 0);
        assert_eq!(whole, ["{\"a\": \"x]},\\\"\"}", "5", "[1,{}]", "{\n\"b\":[{}]\n}"]);
        for (number, place) in places.iter().enumerate() {
            assert_eq!(read(text, *place).0, whole[number + 1..], "behind {number}");
        }
        assert_eq!(read("[]", 0).0, Vec::<String>::new());
    }

    #[test]
    fn what_is_cut_or_goes_on_is_a_fault() {
        for (text, elements) in
            [("[{\"a\":1},{\"a\"", 1), ("[{\"a\":1}, ", 1), ("[{}] x", 1), ("[", 0), ("x", 0)]
        {
            let (found, _) = read(text, 0);
            assert_eq!(
                (found.len(), found.last().map(String::as_str)),
                (elements + 1, Some("Fault")),
                "{text:?}"
            );
        }
    }
}
