//! Conversion of bytes to text at the boundaries of code points.

/// Collects bytes and returns text as soon as its code points are complete.
#[derive(Default)]
pub(crate) struct Utf8Stream {
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// Adds bytes and returns the text that is now complete. Invalid bytes become U+FFFD.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.pending) {
                Ok(rest) => {
                    text.push_str(rest);
                    self.pending.clear();
                    return text;
                }
                Err(error) => {
                    let mut rest = self.pending.split_off(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(&self.pending));
                    // Without a length the code point is incomplete, and the next token may complete it.
                    let Some(length) = error.error_len() else {
                        self.pending = rest;
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.pending = rest.split_off(length);
                }
            }
        }
    }

    /// Ends the text. An incomplete code point becomes U+FFFD.
    pub(crate) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_whole_code_points_however_the_bytes_are_cut() {
        let text = "aé€🦀!";
        for size in 1..=text.len() {
            let mut stream = Utf8Stream::default();
            let parts: Vec<String> = text.as_bytes().chunks(size).map(|part| stream.push(part)).collect();
            assert_eq!(parts.concat() + &stream.finish(), text);
            assert!(!parts.concat().contains(char::REPLACEMENT_CHARACTER));
        }
    }

    #[test]
    fn replaces_what_is_no_text() {
        let mut stream = Utf8Stream::default();
        assert_eq!(stream.push(b"a\xFFb\xE2\x82"), "a\u{FFFD}b");
        assert_eq!(stream.push(b"c"), "\u{FFFD}c");
        assert_eq!(stream.push(b"\xF0\x9F"), "");
        assert_eq!(stream.finish(), "\u{FFFD}");
        assert_eq!(stream.finish(), "");
    }
}
