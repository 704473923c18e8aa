//! Static files with their caching headers.

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
    /// Creates a file that clients must revalidate for each use.
    pub(crate) fn new(bytes: impl Into<Bytes>, content_type: &'static str) -> Self {
        let bytes = bytes.into();
        let etag = format!("\"{}\"", digest(&bytes));
        Self { bytes, content_type, etag, cache_control: "no-cache", gzipped: false }
    }

    /// Marks the file as immutable, for a URL that changes with its content.
    pub(crate) fn immutable(self) -> Self {
        Self { cache_control: "public, max-age=31536000, immutable", ..self }
    }

    /// Marks the bytes as compressed by gzip. They are sent compressed to every client, because all browsers support
    /// it.
    pub(crate) fn gzipped(self) -> Self {
        Self { gzipped: true, ..self }
    }

    /// Returns the file, or 304 if the client has it.
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

/// Returns a short digest of a content, for URLs and ETags.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    URL_SAFE_NO_PAD.encode(digest.as_ref().get(..12).unwrap_or_default())
}
