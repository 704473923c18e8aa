//! The routes that serve files and exports: `/f/…` for permanent links, and `/d/…` for signed links with an expiry.

use super::links::{Link, Refused};
use super::range::{self, Part};
use super::row::{self, FileKind, FileRow};
use super::storage::Files;
use model::{Code, Error, Result};
use operation::{BoxFuture, RawAnswer, RawRequest, RawRoute};
use serde_json::{Value, json};
use std::sync::Arc;
use store::Db;

/// Lifetime of the signed link that a permanent link redirects to.
const REDIRECT_SECONDS: i64 = 300;

/// The route `/f/…` of permanent links. Redirects to a signed link that is valid for five minutes.
pub struct PermanentRoute {
    /// The database.
    pub db: Db,
    /// The files.
    pub files: Arc<Files>,
}

impl RawRoute for PermanentRoute {
    fn prefix(&self) -> &'static str {
        "/f/"
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let (db, files) = (self.db.clone(), self.files.clone());
        Box::pin(async move {
            if !is_read(&request) {
                return method_not_allowed();
            }
            let token = request.rest;
            let found = db.read(move |read| row::by_token(read, &token)).await;
            match found {
                Ok(Some(row)) if row.is_ready() => {
                    let url = files.signed_url(&row, db.now().plus_seconds(REDIRECT_SECONDS));
                    RawAnswer::status(302).header("location", url).header("cache-control", "no-store")
                }
                Ok(Some(row)) if row.trashed_at.is_some() => deleted(),
                Ok(_) => not_found(),
                Err(error) => failed(&error),
            }
        })
    }
}

/// Generates the content of a signed link when it is requested.
pub trait Generator: Send + Sync {
    /// Responds to a request for `what`, the value passed to [`Files::link`].
    fn send(&self, what: Value, request: RawRequest) -> BoxFuture<Result<RawAnswer>>;
}

/// The route `/d/…` of signed links to files and exports.
pub struct DownloadRoute {
    /// The database.
    pub db: Db,
    /// The files.
    pub files: Arc<Files>,
    /// Generates the content of links that are not stored files.
    pub generator: Arc<dyn Generator>,
}

impl RawRoute for DownloadRoute {
    fn prefix(&self) -> &'static str {
        "/d/"
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let (db, files, generator) = (self.db.clone(), self.files.clone(), self.generator.clone());
        Box::pin(async move {
            if !is_read(&request) {
                return method_not_allowed();
            }
            let answer = match files.read_link(&request.rest, db.now()) {
                Err(Refused::Unknown) => return not_found(),
                Err(Refused::Expired) => return gone("The link has expired. Ask for a new one."),
                Ok(Link::File { workspace, id }) => {
                    match db.read(move |read| row::find(read, workspace, id)).await {
                        Ok(Some(row)) if row.is_ready() => send(&files, &row, &request).await,
                        Ok(Some(row)) if row.trashed_at.is_some() => Ok(deleted()),
                        Ok(_) => Ok(not_found()),
                        Err(error) => Err(error),
                    }
                }
                Ok(Link::Generated(what)) => generator.send(what, request).await,
            };
            answer.unwrap_or_else(|error| failed(&error))
        })
    }
}

/// Sends a file, or the requested range of it.
async fn send(files: &Files, row: &FileRow, request: &RawRequest) -> Result<RawAnswer> {
    let tag = format!("\"{}\"", row.sha256);
    let size = u64::try_from(row.size).unwrap_or_default();
    let headers = |answer: RawAnswer| {
        guarded(answer)
            .header("etag", tag.clone())
            .header("accept-ranges", "bytes")
            .header("cache-control", "private, max-age=300")
            .header("content-disposition", disposition(row))
    };
    if request.header("if-none-match").is_some_and(|header| range::names(header, &tag)) {
        return Ok(headers(RawAnswer::status(304)));
    }
    // If the file has changed since the client read its first part, send all of it instead of the range.
    let unchanged = request.header("if-range").is_none_or(|header| range::names(header, &tag));
    let part = if unchanged { range::part(request.header("range"), size) } else { Part::Whole };
    let (status, bytes) = match part {
        Part::Whole => (200, 0..size),
        Part::Of(range) => (206, range),
        Part::Outside => {
            return Ok(headers(RawAnswer::status(416)).header("content-range", format!("bytes */{size}")));
        }
    };
    let mut answer = headers(RawAnswer::status(status));
    if status == 206 {
        let last = bytes.end.saturating_sub(1);
        answer = answer.header("content-range", format!("bytes {}-{last}/{size}", bytes.start));
    }
    if bytes.is_empty() {
        return Ok(answer.body(&row.mime_type, Vec::new()));
    }
    answer = answer.header("content-length", (bytes.end - bytes.start).to_string());
    let range = (status == 206).then_some(bytes);
    Ok(answer.chunks(&row.mime_type, files.read(row, range).await?))
}

/// Displays types that a browser can show safely, and downloads all others: an HTML or SVG file could run scripts in
/// the service's origin.
fn disposition(row: &FileRow) -> String {
    let shown = row.mime_type == "application/pdf"
        || (row.mime_type != "image/svg+xml"
            && matches!(FileKind::of(&row.mime_type), FileKind::Image | FileKind::Video | FileKind::Audio));
    attachment(if shown { "inline" } else { "attachment" }, &row.name)
}

/// Returns a `Content-Disposition` header for any name (RFC 6266).
pub fn attachment(kind: &str, name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|letter| {
            let fits = letter.is_ascii_alphanumeric() || " -_.()".contains(letter);
            if fits { letter } else { '_' }
        })
        .collect();
    let mut encoded = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

/// Adds headers that prevent a browser from running uploaded content as a page of the service.
pub fn guarded(answer: RawAnswer) -> RawAnswer {
    answer
        .header("x-content-type-options", "nosniff")
        .header("content-security-policy", "default-src 'none'; sandbox")
}

fn is_read(request: &RawRequest) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD")
}

fn text(status: u16, message: &str) -> RawAnswer {
    RawAnswer::status(status).body("text/plain; charset=utf-8", message.to_owned())
}

fn method_not_allowed() -> RawAnswer {
    text(405, "Only GET and HEAD.").header("allow", "GET, HEAD")
}

fn not_found() -> RawAnswer {
    text(404, "There is nothing at this address.")
}

fn gone(message: &str) -> RawAnswer {
    text(410, message)
}

/// Returns the response for a deleted file. It is JSON, because programs store permanent links too.
fn deleted() -> RawAnswer {
    let error = Error::new(Code::FileDeleted, "The file was deleted.");
    let body = json!({ "success": false, "error": error.body() });
    RawAnswer::status(410).body("application/json", body.to_string())
}

fn failed(error: &model::Error) -> RawAnswer {
    let status = error.code().status();
    if status >= 500 {
        tracing::error!(?error, "a download failed");
    }
    let answer = text(status, error.message());
    match error.retry_after_seconds() {
        Some(seconds) => answer.header("retry-after", seconds.to_string()),
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_safe_in_a_header() {
        assert_eq!(
            attachment("attachment", "Preise\r\n\"ä\".csv"),
            "attachment; filename=\"Preise_____.csv\"; filename*=UTF-8''Preise%0D%0A%22%C3%A4%22.csv"
        );
    }
}
