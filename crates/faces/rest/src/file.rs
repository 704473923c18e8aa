//! What is served as it is: bytes, and what caches need to know of them.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, IF_NONE_MATCH};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A file in memory.
pub(crate) struct File {
    bytes: Bytes,
    content_type: &'static str,
    etag: String,
    cache_control: &'static str,
    gzipped: bool,
}

impl File {
    /// A file whose readers ask each time whether it has changed.
    pub(crate) fn new(bytes: impl Into<Bytes>, content_type: &'static str) -> Self {
        let bytes = bytes.into();
        let etag = format!("\"{}\"", digest(&bytes));
        Self { bytes, content_type, etag, cache_control: "no-cache", gzipped: false }
    }

    /// The same, at an address that changes with its content.
    pub(crate) fn immutable(self) -> Self {
        Self { cache_control: "public, max-age=31536000, immutable", ..self }
    }

    /// The same, with bytes that gzip has compressed. They are sent so to everybody: every browser reads them.
    pub(crate) fn gzipped(self) -> Self {
        Self { gzipped: true, ..self }
    }

    /// The file, or 304 for a reader that has it.
    pub(crate) fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let known =
            request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let unchanged = known
            .split(',')
            .any(|tag| matches!(tag.trim(), tag if tag == "*" || tag.trim_start_matches("W/") == self.etag));
        let mut response = if unchanged { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header((ETAG, self.etag.as_str())).insert_header((CACHE_CONTROL, self.cache_control));
        if unchanged {
            return response.finish();
        }
        if self.gzipped {
            response.insert_header((CONTENT_ENCODING, "gzip"));
        }
        response.content_type(self.content_type).body(self.bytes.clone())
    }
}

/// A short digest of a content, for addresses and ETags.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    URL_SAFE_NO_PAD.encode(digest.as_ref().get(..12).unwrap_or_default())
}
