//! Inspection of a file's bytes: media type, size, digest, and the dimensions of an image. Images are never decoded,
//! because an image of a few bytes can have billions of pixels.

use bytes::Bytes;
use model::hex;

/// The number of bytes kept from the start of a file. The dimensions of a photo come after its preview.
const HEAD: usize = 256 << 10;

/// The number of bytes that must be text for the file to count as text.
const TEXT_HEAD: usize = 8 << 10;

/// The properties of a file's content.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) size: i64,
    /// In hexadecimal.
    pub(crate) sha256: String,
    /// The media type detected from the first bytes.
    detected: Option<&'static str>,
    encoding: TextEncoding,
    pub(crate) dimensions: Option<(i64, i64)>,
    pub(crate) duration_ms: Option<i64>,
}

impl Content {
    /// Returns the media type. Types of text are distinguished by the file name's extension, because the bytes do not
    /// tell.
    pub(crate) fn mime_type(&self, name: &str) -> &'static str {
        if let Some(detected) = self.detected {
            return detected;
        }
        if self.encoding == TextEncoding::None {
            return "application/octet-stream";
        }
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        match extension.as_deref() {
            Some("csv") => "text/csv",
            Some("tsv") => "text/tab-separated-values",
            // Bytes that may be text in an old encoding count as text only with a matching extension.
            Some("txt") => "text/plain",
            _ if self.encoding == TextEncoding::Old => "application/octet-stream",
            Some("htm" | "html") => "text/html",
            Some("json") => "application/json",
            Some("jsonl" | "ndjson") => "application/x-ndjson",
            Some("md") => "text/markdown",
            Some("svg") => "image/svg+xml",
            Some("xml") => "text/xml",
            _ => "text/plain",
        }
    }

    /// Returns whether the content can have a duration.
    pub(crate) fn is_timed(&self) -> bool {
        self.detected.is_some_and(|kind| kind.starts_with("audio/") || kind.starts_with("video/"))
    }
}

/// Collects the properties of a file while its bytes pass.
pub(crate) struct Inspector {
    digest: ring::digest::Context,
    size: u64,
    head: Vec<u8>,
}

impl Inspector {
    pub(crate) fn new() -> Self {
        Self { digest: ring::digest::Context::new(&ring::digest::SHA256), size: 0, head: Vec::new() }
    }

    pub(crate) fn pass(&mut self, chunk: &Bytes) {
        self.size += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        self.digest.update(chunk);
        let wanted = HEAD.saturating_sub(self.head.len()).min(chunk.len());
        self.head.extend_from_slice(chunk.get(..wanted).unwrap_or_default());
    }

    /// Returns the number of bytes so far.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn finish(self) -> Content {
        let encoding = TextEncoding::of(&self.head);
        let detected = infer::get(&self.head).map(|kind| kind.mime_type());
        let detected = detected.filter(|kind| encoding == TextEncoding::None || is_of_text(kind));
        let is_image = detected.is_some_and(|kind| kind.starts_with("image/"));
        Content {
            size: i64::try_from(self.size).unwrap_or(i64::MAX),
            sha256: hex(self.digest.finish()),
            detected,
            encoding,
            dimensions: is_image.then(|| dimensions(&self.head)).flatten(),
            duration_ms: None,
        }
    }
}

/// The possible text encodings of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextEncoding {
    /// Not text.
    None,
    /// UTF-8 or UTF-16.
    Unicode,
    /// Possibly an older encoding, such as windows-1252 or Shift-JIS.
    Old,
}

impl TextEncoding {
    fn of(head: &[u8]) -> Self {
        let (text, is_cut) = match head.get(..TEXT_HEAD) {
            Some(text) => (text, true),
            None => (head, false),
        };
        let has_mark = text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff");
        if has_mark || utf16_without_mark(text).is_some() {
            return Self::Unicode;
        }
        let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | 0x0c | b'\r');
        match std::str::from_utf8(text) {
            _ if text.contains(&0) => Self::None,
            Ok(_) => Self::Unicode,
            // The last character may be cut off by the limit.
            Err(error) if error.error_len().is_none() && is_cut => Self::Unicode,
            Err(_) if text.iter().any(is_control) => Self::None,
            Err(_) => Self::Old,
        }
    }
}

/// Returns whether text can be of a type detected from its first letters. `BM`, for example, can begin a table of
/// values, but also marks a bitmap image.
fn is_of_text(mime_type: &str) -> bool {
    mime_type.starts_with("text/")
        || ["application/pdf", "application/postscript", "application/rtf"].contains(&mime_type)
}

/// Detects UTF-16 without a byte order mark. Returns whether it is little-endian, or `None` if it is not UTF-16. In
/// most languages the high byte of many characters is zero, and the low byte almost never is.
pub fn utf16_without_mark(bytes: &[u8]) -> Option<bool> {
    let zeros = |odd: usize| bytes.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, enough) = (zeros(0), zeros(1), bytes.len() / 20);
    match () {
        () if bytes.len() < 4 => None,
        () if odd > enough && odd > even * 4 => Some(true),
        () if even > enough && even > odd * 4 => Some(false),
        () => None,
    }
}

fn dimensions(head: &[u8]) -> Option<(i64, i64)> {
    let found = imagesize::blob_size(head).ok()?;
    Some((i64::try_from(found.width).ok()?, i64::try_from(found.height).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn content(bytes: &[u8]) -> Content {
        let mut inspector = Inspector::new();
        for chunk in bytes.chunks(7) {
            inspector.pass(&Bytes::copy_from_slice(chunk));
        }
        inspector.finish()
    }

    /// Returns the start of a PNG with these dimensions.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend(*b"\x08\x02\0\0\0\0\0\0\0");
        bytes
    }

    #[test]
    fn bytes_determine_the_type_and_names_distinguish_text() {
        assert_eq!(content(&png(1, 1)).mime_type("list.csv"), "image/png");
        assert_eq!(content(b"a,b").mime_type("list.CSV"), "text/csv");
        assert_eq!(content(b"{}").mime_type("list.ndjson"), "application/x-ndjson");
        assert_eq!(content(b"hello").mime_type("list"), "text/plain");
        assert_eq!(content(b"hello").mime_type("list.png"), "text/plain");
        assert_eq!(content(b"<svg xmlns='http://www.w3.org/2000/svg'/>").mime_type("a.svg"), "image/svg+xml");
        assert_eq!(content(b"<!DOCTYPE html><p>").mime_type("a.png"), "text/html");
        assert_eq!(content(&[0, 1, 2]).mime_type("list.csv"), "application/octet-stream");
        assert_eq!(content(b"BMI,name\n22,Ana\n").mime_type("list.csv"), "text/csv");
        let cut = [&[b'a'; TEXT_HEAD - 1][..], "é".as_bytes()].concat();
        assert_eq!(content(&cut).mime_type("a"), "text/plain");
    }

    #[test]
    fn text_is_text_in_any_encoding() {
        let text = "name;phone\nNúñez;1\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = [&b"\xff\xfe"[..], &little].concat();
        let latin: Vec<u8> = text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect();
        for bytes in [&little, &big, &marked, &latin] {
            assert_eq!(content(bytes).mime_type("list.csv"), "text/csv", "{bytes:?}");
        }
        assert_eq!(content(&marked).mime_type("list"), "text/plain");
        assert_eq!(content(&latin).mime_type("list.TXT"), "text/plain");
        assert_eq!(content(&latin).mime_type("list"), "application/octet-stream");
        assert_eq!(content(b"\x93\x01\x02").mime_type("list.csv"), "application/octet-stream");
    }

    #[test]
    fn dimensions_are_read_and_nothing_is_decoded() {
        assert_eq!(content(&png(65_535, 60_000)).dimensions, Some((65_535, 60_000)));
        assert_eq!(content(&png(u32::MAX, u32::MAX)).dimensions, Some((4_294_967_295, 4_294_967_295)));
        assert_eq!(content(b"GIF89a\x40\x01\xf0\0\0\0\0").dimensions, Some((320, 240)));
        assert_eq!(content(b"\x89PNG\r\n\x1a\n").dimensions, None);
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(kind in 0_usize..8, bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let heads: [&[u8]; 8] = [
                b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe1", b"II*\0", b"RIFF\0\0\0\0WEBPVP8 ",
                b"\0\0\0\x18ftypheic", b"BM", b"\0\0\x01\0",
            ];
            let found = content(&[heads[kind], &bytes].concat());
            prop_assert_eq!(found.size, i64::try_from(heads[kind].len() + bytes.len()).unwrap());
        }
    }
}
