//! What the bytes of a file are: their type, size and digest, and the dimensions of an image. Nothing is decoded: an image
//! of a few bytes can have billions of pixels.

use bytes::Bytes;

/// How much of a file's beginning is looked at. The dimensions of a photo are behind its preview.
const HEAD: usize = 256 << 10;

/// How much of it must be text for the file to be text.
const TEXT_HEAD: usize = 8 << 10;

/// What was found in the bytes of a file.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) size: i64,
    /// In hexadecimal.
    pub(crate) sha256: String,
    /// The media type that the first bytes show.
    detected: Option<&'static str>,
    is_text: bool,
    pub(crate) dimensions: Option<(i64, i64)>,
    pub(crate) duration_ms: Option<i64>,
}

impl Content {
    /// The media type. Text is distinguished by the file's name, because no bytes say what it is.
    pub(crate) fn mime_type(&self, name: &str) -> &'static str {
        if let Some(detected) = self.detected {
            return detected;
        }
        if !self.is_text {
            return "application/octet-stream";
        }
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        match extension.as_deref() {
            Some("csv") => "text/csv",
            Some("htm" | "html") => "text/html",
            Some("json") => "application/json",
            Some("jsonl" | "ndjson") => "application/x-ndjson",
            Some("md") => "text/markdown",
            Some("svg") => "image/svg+xml",
            Some("xml") => "text/xml",
            _ => "text/plain",
        }
    }

    /// Whether it could have a duration.
    pub(crate) fn is_timed(&self) -> bool {
        self.detected.is_some_and(|kind| kind.starts_with("audio/") || kind.starts_with("video/"))
    }
}

/// Looks at the bytes of a file as they pass.
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

    /// How many bytes have passed.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn finish(self) -> Content {
        let detected = infer::get(&self.head).map(|kind| kind.mime_type());
        let is_image = detected.is_some_and(|kind| kind.starts_with("image/"));
        Content {
            size: i64::try_from(self.size).unwrap_or(i64::MAX),
            sha256: self.digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
            detected,
            is_text: is_text(&self.head),
            dimensions: is_image.then(|| dimensions(&self.head)).flatten(),
            duration_ms: None,
        }
    }
}

fn is_text(head: &[u8]) -> bool {
    let (text, is_cut) = match head.get(..TEXT_HEAD) {
        Some(text) => (text, true),
        None => (head, false),
    };
    // A character may be cut at the end of the head; anything else that is wrong means that it is no text.
    !text.contains(&0)
        && match std::str::from_utf8(text) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none() && is_cut,
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

    /// The beginning of a PNG of this size.
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
        let cut = [&[b'a'; TEXT_HEAD - 1][..], "é".as_bytes()].concat();
        assert_eq!(content(&cut).mime_type("a"), "text/plain");
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
