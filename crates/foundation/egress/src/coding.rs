//! Content codings (RFC 9110, 8.4), that is, compressed bodies.
//!
//! Requests ask for uncompressed bodies, but some servers compress anyway, such as object storage whose objects were
//! uploaded compressed. The compressed data is not trusted: the caller's limit counts decoded bytes, and the input is
//! decoded in pieces small enough that the output of each is bounded.

use std::io::{self, Write as _};

use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use http::{HeaderMap, StatusCode, header};

use crate::error::Error;

/// Bytes of input decoded at a time. Deflate expands a byte to at most 1032 bytes.
pub(crate) const PIECE: usize = 1024;

/// Growth of the output buffer, in bytes.
const ROOM: usize = 16 * 1024;

const BROKEN: Error = Error::Http { reason: "the compressed body is broken or incomplete" };
const UNKNOWN: Error = Error::Http { reason: "the body is compressed in a way that is not supported" };

/// The coding of a body.
pub(crate) enum Coding {
    /// Not compressed, or to be left as it is.
    Plain,
    /// Compressed in a supported coding.
    Coded(Decoder),
    /// Compressed in an unsupported coding, or in several.
    Unknown,
}

impl Coding {
    /// Returns the coding of a response.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        // A range is a part of the compressed body and cannot be decoded without the bytes before it.
        if status == StatusCode::PARTIAL_CONTENT {
            return Self::Plain;
        }
        let names = headers.get_all(header::CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let names = names.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase());
        // Servers also write charsets and `none` in this header. Values that are not compressing codings are skipped,
        // as browsers do.
        let mut codings = names.filter(|name| compresses(name));
        match (codings.next().as_deref(), codings.next()) {
            (None, _) => Self::Plain,
            // Some servers describe a gzip file both in `Content-Type` and in `Content-Encoding`.
            (Some("gzip" | "x-gzip"), None) if is_gzip_file(headers) => Self::Plain,
            (Some("gzip" | "x-gzip"), None) => Self::Coded(Decoder::gzip()),
            (Some("deflate"), None) => Self::Coded(Decoder::deflate()),
            _ => Self::Unknown,
        }
    }
}

fn compresses(name: &str) -> bool {
    matches!(
        name,
        "gzip"
            | "x-gzip"
            | "deflate"
            | "br"
            | "zstd"
            | "compress"
            | "x-compress"
            | "dcb"
            | "dcz"
            | "bzip2"
            | "xz"
            | "lzma"
    )
}

fn is_gzip_file(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(
        kind.as_str(),
        "application/gzip" | "application/x-gzip" | "application/x-gunzip" | "application/x-tgz"
    )
}

/// A streaming decoder.
pub(crate) struct Decoder {
    form: Form,
    /// Whether any byte has arrived. A response without a body often has a `Content-Encoding` and is not an error.
    is_begun: bool,
}

enum Form {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// A `deflate` body before its first two bytes have arrived. They tell zlib's format from the raw stream,
    /// which many servers send.
    Undecided(Vec<u8>),
    Deflate(Decompress),
    /// The stream has ended. Further bytes are ignored.
    Ended,
}

impl Decoder {
    fn gzip() -> Self {
        Self { form: Form::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))), is_begun: false }
    }

    fn deflate() -> Self {
        Self { form: Form::Undecided(Vec::new()), is_begun: false }
    }

    /// Decodes one piece of at most [`PIECE`] bytes.
    pub(crate) fn decode(&mut self, piece: &[u8]) -> Result<Vec<u8>, Error> {
        self.is_begun |= !piece.is_empty();
        self.decoded(piece).map_err(|_| BROKEN)
    }

    fn decoded(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        match &mut self.form {
            Form::Gzip(decoder) => {
                decoder.write_all(piece)?;
                // Flush after each piece: the body may be a stream whose reader waits for this part.
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Form::Undecided(start) => {
                start.extend_from_slice(piece);
                let &[first, second, ..] = start.as_slice() else { return Ok(Vec::new()) };
                let is_zlib = first & 0x0f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31);
                let start = std::mem::take(start);
                self.form = Form::Deflate(Decompress::new(is_zlib));
                self.decoded(&start)
            }
            Form::Deflate(stream) => {
                let mut decoded = Vec::new();
                if inflate(stream, piece, &mut decoded)? {
                    self.form = Form::Ended;
                }
                Ok(decoded)
            }
            Form::Ended => Ok(Vec::new()),
        }
    }

    /// Checks that the body is complete.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        let is_whole = match &mut self.form {
            _ if !self.is_begun => true,
            Form::Gzip(decoder) => decoder.try_finish().is_ok(),
            Form::Ended => true,
            Form::Undecided(_) | Form::Deflate(_) => false,
        };
        if is_whole { Ok(()) } else { Err(BROKEN) }
    }
}

/// Decodes `input` and appends the output to `decoded`. Returns whether the stream has ended.
fn inflate(stream: &mut Decompress, mut input: &[u8], decoded: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        let (read, written) = (stream.total_in(), stream.total_out());
        decoded.reserve(ROOM);
        let status = stream.decompress_vec(input, decoded, FlushDecompress::None)?;
        let taken = usize::try_from(stream.total_in() - read).unwrap_or(usize::MAX);
        input = input.get(taken..).unwrap_or_default();
        if status == Status::StreamEnd {
            return Ok(true);
        }
        if taken == 0 && stream.total_out() == written {
            return if input.is_empty() { Ok(false) } else { Err(io::ErrorKind::InvalidData.into()) };
        }
    }
}

/// Returns the error for an unsupported coding.
pub(crate) fn unknown() -> Error {
    UNKNOWN
}

/// Returns whether `error` means that the body cannot be decoded.
pub(crate) fn is_of_coding(error: Error) -> bool {
    error == BROKEN || error == UNKNOWN
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    const TEXT: &[u8] = b"sku,price\nA-1,2.50\nA-1,2.50\nA-1,2.50\n";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn raw(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn decode(mut decoder: Decoder, bytes: &[u8], size: usize) -> Result<Vec<u8>, Error> {
        let mut decoded = Vec::new();
        for piece in bytes.chunks(size) {
            decoded.extend(decoder.decode(piece)?);
        }
        decoder.finish().map(|()| decoded)
    }

    fn coding(headers: &[(&'static str, &str)]) -> &'static str {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        match Coding::of(StatusCode::OK, &map) {
            Coding::Plain => "plain",
            Coding::Unknown => "unknown",
            Coding::Coded(Decoder { form: Form::Gzip(_), .. }) => "gzip",
            Coding::Coded(_) => "deflate",
        }
    }

    #[test]
    fn what_was_compressed_comes_back_in_pieces_of_any_size() {
        let large: Vec<u8> = (0..200_000_u32).flat_map(|number| (number % 977).to_le_bytes()).collect();
        for text in [TEXT, b"", b"x", &large] {
            for size in [1, 2, 7, PIECE] {
                assert!(decode(Decoder::gzip(), &gzip(text), size).unwrap() == text);
                assert!(decode(Decoder::deflate(), &zlib(text), size).unwrap() == text);
                assert!(decode(Decoder::deflate(), &raw(text), size).unwrap() == text);
            }
        }
        let members = [gzip(TEXT), gzip(b"more")].concat();
        assert_eq!(decode(Decoder::gzip(), &members, 3).unwrap(), [TEXT, b"more"].concat());
        assert_eq!(decode(Decoder::gzip(), b"", 1).unwrap(), b"");
        assert_eq!(decode(Decoder::deflate(), b"", 1).unwrap(), b"");
    }

    #[test]
    fn what_is_flushed_is_there_at_once() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut decoder = Decoder::gzip();
        for part in ["data: 1\n\n", "data: 2\n\n"] {
            encoder.write_all(part.as_bytes()).unwrap();
            encoder.flush().unwrap();
            let sent = std::mem::take(encoder.get_mut());
            assert_eq!(decoder.decode(&sent).unwrap(), part.as_bytes());
        }
    }

    #[test]
    fn broken_and_incomplete_bodies_are_errors() {
        for (make, bytes) in [
            (Decoder::gzip as fn() -> Decoder, gzip(TEXT)),
            (Decoder::deflate, zlib(TEXT)),
            (Decoder::deflate, raw(TEXT)),
        ] {
            for length in 1..bytes.len() {
                assert_eq!(decode(make(), &bytes[..length], 5), Err(BROKEN), "{length}");
            }
        }
        assert_eq!(decode(Decoder::gzip(), TEXT, 100), Err(BROKEN));
        let mut wrong = gzip(TEXT);
        let last = wrong.len() - 5;
        wrong[last] ^= 1;
        assert_eq!(decode(Decoder::gzip(), &wrong, 100), Err(BROKEN));
    }

    #[test]
    fn headers_say_what_is_decoded() {
        let name = "content-encoding";
        for (headers, expected) in [
            (&[][..], "plain"),
            (&[(name, "identity")], "plain"),
            (&[(name, "utf-8")], "plain"),
            (&[(name, "aws-chunked, gzip")], "gzip"),
            (&[(name, "X-GZIP")], "gzip"),
            (&[(name, "identity"), (name, " Deflate ")], "deflate"),
            (&[(name, "br")], "unknown"),
            (&[(name, "gzip"), (name, "gzip")], "unknown"),
            (&[(name, "gzip"), ("content-type", "application/x-gzip")], "plain"),
            (&[(name, "gzip"), ("content-type", "text/csv; charset=utf-8")], "gzip"),
        ] {
            assert_eq!(coding(headers), expected, "{headers:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), size in 1..50_usize) {
            let _ = decode(Decoder::gzip(), &[&[0x1f, 0x8b, 8], bytes.as_slice()].concat(), size);
            let _ = decode(Decoder::deflate(), &bytes, size);
        }
    }
}
