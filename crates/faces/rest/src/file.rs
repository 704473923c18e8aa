//! Static files with their caching headers.

use crate::gzip;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use std::sync::OnceLock;

/// A file in memory.
pub(crate) struct File {
    bytes: Bytes,
    content_type: &'static str,
    digest: String,
    cache_control: &'static str,
    coding: Coding,
}

/// How a file is compressed.
enum Coding {
    /// Not at all.
    Plain,
    /// Its bytes are compressed by gzip.
    Compressed,
    /// For clients that accept it. Compressed when the first of them asks.
    Offered(OnceLock<Bytes>),
}

impl File {
    /// Creates a file that clients must revalidate for each use.
    pub(crate) fn new(bytes: impl Into<Bytes>, content_type: &'static str) -> Self {
        let bytes = bytes.into();
        let digest = digest(&bytes);
        Self { bytes, content_type, digest, cache_control: "no-cache", coding: Coding::Plain }
    }

    /// Marks the file as immutable, for a URL that changes with its content.
    pub(crate) fn immutable(self) -> Self {
        Self { cache_control: "public, max-age=31536000, immutable", ..self }
    }

    /// Marks the bytes as compressed by gzip. They are sent compressed to every client, because all browsers support
    /// it.
    pub(crate) fn gzipped(self) -> Self {
        Self { coding: Coding::Compressed, ..self }
    }

    /// Lets the file be compressed by gzip for clients that accept it.
    pub(crate) fn compressible(self) -> Self {
        Self { coding: Coding::Offered(OnceLock::new()), ..self }
    }

    /// Returns the file, or 304 if the client has it.
    pub(crate) fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let compressed = self.compressed(request);
        // Another coding is another representation, which needs a tag of its own.
        let suffix = if compressed.is_some() { "-gzip" } else { "" };
        let etag = format!("\"{}{suffix}\"", self.digest);
        let known =
            request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let unchanged = known
            .split(',')
            .any(|tag| matches!(tag.trim(), tag if tag == "*" || tag.trim_start_matches("W/") == etag));
        let mut response = if unchanged { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header((ETAG, etag)).insert_header((CACHE_CONTROL, self.cache_control));
        if matches!(self.coding, Coding::Offered(_)) {
            response.insert_header((VARY, "accept-encoding"));
        }
        if unchanged {
            return response.finish();
        }
        if compressed.is_some() || matches!(self.coding, Coding::Compressed) {
            response.insert_header((CONTENT_ENCODING, "gzip"));
        }
        response.content_type(self.content_type).body(compressed.unwrap_or_else(|| self.bytes.clone()))
    }

    /// Returns the bytes compressed by gzip, if the file offers this and the client prefers it.
    fn compressed(&self, request: &HttpRequest) -> Option<Bytes> {
        let Coding::Offered(place) = &self.coding else { return None };
        if !gzip::is_accepted(request) {
            return None;
        }
        if let Some(bytes) = place.get() {
            return Some(bytes.clone());
        }
        let bytes = gzip::compressed(&self.bytes, Compression::default())?;
        Some(place.get_or_init(|| bytes).clone())
    }
}

/// Returns a short digest of a content, for URLs and ETags.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    URL_SAFE_NO_PAD.encode(digest.as_ref().get(..12).unwrap_or_default())
}
