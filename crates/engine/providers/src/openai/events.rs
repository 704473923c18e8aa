//! Parser of server-sent events, as in the HTML standard.

/// The most bytes of one event. A chunk of an answer has some hundred.
const LARGEST_EVENT: usize = 1 << 20;

/// Reads events from bytes that come in any pieces. Of an event only the data is of use here.
#[derive(Default)]
pub(super) struct EventReader {
    line: Vec<u8>,
    /// The lines of data so far, once there is one.
    data: Option<Vec<u8>>,
    /// The last byte was a carriage return, which a line feed may belong to.
    after_return: bool,
    /// The first line is behind us.
    has_begun: bool,
}

/// An event that is larger than any that makes sense.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl EventReader {
    /// Takes bytes, and gives the data of the events that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut events = Vec::new();
        for &byte in bytes {
            let ends_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if ends_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                byte => self.line.push(byte),
            }
            if self.line.len() + self.data.as_ref().map_or(0, Vec::len) > LARGEST_EVENT {
                return Err(TooLarge);
            }
        }
        Ok(events)
    }

    /// Reads a line. An empty one ends the event.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return self.data.take();
        }
        let value: &[u8] = match line.strip_prefix(b"data")? {
            [] => &[],
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            // Another field, whose name only begins so.
            _ => return None,
        };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut reader = EventReader::default();
        let events = pieces.into_iter().flat_map(|piece| reader.push(piece).unwrap());
        events.map(|event| String::from_utf8(event).unwrap()).collect()
    }

    #[test]
    fn events_are_cut_as_the_standard_says() {
        for (text, events) in [
            ("data: a\n\n", &["a"][..]),
            ("\u{feff}data: a\n\ndata: \u{feff}b\n\n", &["a", "\u{feff}b"]),
            ("data:a\r\rdata:  b\r\n\r\n", &["a", " b"]),
            ("data: a\ndata\ndata: b\n\n", &["a\n\nb"]),
            ("data\n\n", &[""]),
            (": keep-alive\n\nevent: x\nid: 1\n\n", &[]),
            ("event: x\ndata: a\nretry: 5\ndatas: b\nfield\n\n", &["a"]),
            // What has no end is no event.
            ("data: a\n\ndata: b\n", &["a"]),
            ("data: a\n\ndata: b", &["a"]),
            ("", &[]),
        ] {
            assert_eq!(read([text.as_bytes()]), events, "{text:?}");
        }
    }

    #[test]
    fn what_never_ends_is_given_up() {
        let long = vec![b'x'; LARGEST_EVENT + 1];
        assert_eq!(EventReader::default().push(&long), Err(TooLarge));
        let mut reader = EventReader::default();
        let lines = b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(1000);
        assert!((0..100).any(|_| reader.push(&lines).is_err()));
    }

    proptest! {
        #[test]
        fn the_borders_of_pieces_do_not_matter(
            words in prop::collection::vec(
                prop::sample::select(vec!["data: a", "data:é", "data", "event: x", ":", "\u{feff}", "\n", "\r", "\r\n"]),
                0..30,
            ),
            size in 1usize..9,
        ) {
            let text = words.concat();
            prop_assert_eq!(read(text.as_bytes().chunks(size)), read([text.as_bytes()]));
        }

        #[test]
        fn what_is_written_is_read(
            events in prop::collection::vec(prop::collection::vec("[^\r\n]{0,12}", 1..4), 0..6),
            end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            size in 1usize..9,
        ) {
            let mut text = format!(": hello{end}{end}");
            for lines in &events {
                lines.iter().for_each(|line| text.push_str(&format!("data: {line}{end}")));
                text.push_str(end);
            }
            let written: Vec<String> = events.iter().map(|lines| lines.join("\n")).collect();
            prop_assert_eq!(read(text.as_bytes().chunks(size)), written);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1usize..9) {
            let mut pieces = EventReader::default();
            let cut: Vec<_> = bytes.chunks(size).flat_map(|piece| pieces.push(piece).unwrap()).collect();
            prop_assert_eq!(EventReader::default().push(&bytes).unwrap(), cut);
        }
    }
}
