//! Compression for clients that accept it.

use actix_web::HttpRequest;
use actix_web::http::header::{AcceptEncoding, Encoding, Header};
use actix_web::web::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Returns whether the client accepts gzip, and prefers it to bytes as they are.
pub(crate) fn is_accepted(request: &HttpRequest) -> bool {
    let offered = [Encoding::gzip(), Encoding::identity()];
    let accepted = AcceptEncoding::parse(request).ok();
    accepted
        .and_then(|accepted| accepted.negotiate(offered.iter()))
        .is_some_and(|one| one == Encoding::gzip())
}

/// Compresses bytes. Returns `None` if that fails.
pub(crate) fn compressed(bytes: &[u8], level: Compression) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}
