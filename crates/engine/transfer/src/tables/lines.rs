//! Decoding of a file in chunks. Line ends have the same bytes in all encodings except UTF-16. So whole lines can be
//! decoded separately, and the position of each line in the file is known.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

/// The decoded lines of a chunk, with their positions.
#[derive(Debug)]
pub struct Lines {
    /// The text.
    pub text: String,
    /// The start of each line in the text and in the bytes.
    places: Vec<(usize, usize)>,
}

impl Lines {
    /// Decodes a chunk. Unless it is the last of the file, leaves out an incomplete last line.
    pub fn of(bytes: &[u8], encoding: &'static Encoding, is_last: bool) -> Self {
        let mut decoded = String::with_capacity(bytes.len());
        let mut places = vec![(0, 0)];
        let mut from = 0;
        while let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) {
            let (length, is_whole) = line_length(rest, encoding);
            if !is_whole && !is_last {
                break;
            }
            let line = rest.get(..length).unwrap_or_default();
            let (text, _) = encoding.decode_with_bom_removal(line);
            // A byte order mark is stripped at the start of each line. It is meaningful only at the start of the file
            // and invisible elsewhere.
            decoded.push_str(&text);
            from += length;
            places.push((decoded.len(), from));
        }
        Self { text: decoded, places }
    }

    /// Returns the position in bytes of the line at a position in the text.
    pub fn place(&self, decoded: usize) -> u64 {
        let found = self.places.binary_search_by_key(&decoded, |(decoded, _)| *decoded);
        let at = found.unwrap_or_else(|next| next.saturating_sub(1));
        self.places.get(at).map_or(0, |(_, bytes)| *bytes as u64)
    }
}

/// Returns the length of the first line with its line end, and whether it has one.
fn line_length(bytes: &[u8], encoding: &'static Encoding) -> (usize, bool) {
    let (width, high) = match encoding {
        _ if encoding == UTF_16LE => (2, 1),
        _ if encoding == UTF_16BE => (2, 0),
        _ => (1, 1),
    };
    let mut units = bytes.chunks_exact(width).map(|unit| match unit {
        [byte] => *byte,
        [low, zero] if high == 1 && *zero == 0 => *low,
        [0, low] if high == 0 => *low,
        _ => 0,
    });
    let Some(end) = units.position(|unit| matches!(unit, b'\n' | b'\r')) else { return (bytes.len(), false) };
    let is_return = bytes.chunks_exact(width).nth(end).is_some_and(|unit| unit.contains(&b'\r'));
    // A carriage return at the end of the chunk may be followed by a line feed.
    match units.next() {
        Some(b'\n') if is_return => ((end + 2) * width, true),
        None if is_return => (bytes.len(), false),
        _ => ((end + 1) * width, true),
    }
}
