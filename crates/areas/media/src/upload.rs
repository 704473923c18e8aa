//! The operations that create files: an upload in one request, or a download from a URL.

use super::events::{Change, publish};
use super::model::{FetchRequest, UploadForm};
use auth::idempotency;
use egress::{Connector, Limits, Request, Streaming};
use files::{File, FileRow, Files, MOST_BYTES, NewFile, Stored, safe_name};
use futures::{Stream, stream};
use model::{Code, Error, Result};
use operation::{Answer, Body, Created, Cx, Disposition, Multipart, State, operation};
use percent_encoding::percent_decode_str;
use serde_json::json;
use std::time::Duration;
use store::Tx;

/// Timeout of a download.
const FETCH: Duration = Duration::from_secs(120);

/// The maximum number of redirects.
const MOST_REDIRECTS: u8 = 3;

/// Upload a file (multipart)
///
/// Stores the part `file` of a form and returns the file. The media type is detected from the content. The fields can
/// stand before or after the file. A resend with the same `Idempotency-Key` returns the first file; the content is not
/// compared.
#[operation(post "/files", scope = "files:write", body_mib = 101)]
pub(super) async fn upload_file(
    cx: &Cx,
    form: Multipart<UploadForm>,
    State(files): State<Files>,
) -> Result<Created<File>> {
    let mut form = form;
    let part = form.next_file().await?.ok_or_else(|| Error::invalid("file", "is required"))?;
    let (sent_as, declared_type) = (part.name.clone(), part.media_type.clone());
    let mut stored = files.put(&cx.db, new_file(cx), part.bytes()).await?;
    if form.next_file().await?.is_some() {
        return Err(Error::invalid("file", "must be sent once"));
    }
    stored.details = form.fields()?.description()?.details(sent_as.as_deref(), declared_type);
    commit(cx, files, move |tx| Ok((files::finish(tx, &stored)?, true))).await
}

/// Fetch a file from a public URL
///
/// Downloads the file, up to 100 MiB and three redirects, and stores it like an upload. Without `name` it is called as the
/// response's `Content-Disposition` says, or as the end of the URL's path. A response with `Content-Encoding` is decoded. A private or local address is a 400
/// `url_not_allowed`. If there is no response with status 200, or it ends early, the response is 400 `fetch_failed`.
#[operation(post "/files/from-url", scope = "files:write")]
pub(super) async fn import_file_from_url(
    cx: &Cx,
    Body(request): Body<FetchRequest>,
    State(files): State<Files>,
    State(connector): State<Connector>,
) -> Result<Created<File>> {
    let limits = Limits {
        total: FETCH,
        max_response_bytes: usize::try_from(MOST_BYTES).unwrap_or(usize::MAX),
        max_redirects: MOST_REDIRECTS,
        ..Limits::default()
    };
    let response = connector.stream(Request::get(&request.url).limits(limits)).await.map_err(refusal)?;
    if response.status != 200 {
        let message = format!("The server answered with status {}.", response.status);
        return Err(fetch_failed(message, json!({ "status": response.status })));
    }
    let declared_type = response.headers.get("content-type").and_then(|value| value.to_str().ok());
    let declared_type =
        declared_type.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_owned());
    let sent_as = name_of(&response, declared_type.as_deref().unwrap_or_default());
    let mut stored: Stored = files.put(&cx.db, new_file(cx), chunks(response)).await?;
    stored.details = request.description().details(Some(&sent_as), declared_type);
    commit(cx, files, move |tx| Ok((files::finish(tx, &stored)?, true))).await
}

/// Returns the name of a downloaded file: from `Content-Disposition`, or the last segment of the path that is not
/// empty. A name without an extension gets that of the declared type, as in browsers, because the type of text is
/// detected by its extension.
fn name_of(response: &Streaming, declared_type: &str) -> String {
    let disposition = response.headers.get("content-disposition");
    let named = disposition.and_then(|header| Disposition::of_answer(header.as_bytes()).file_name);
    let name = named.unwrap_or_else(|| {
        let mut segments = response.final_url.path_segments().into_iter().flatten();
        let last = segments.rfind(|segment| !segment.is_empty()).unwrap_or_default();
        percent_decode_str(last).decode_utf8_lossy().into_owned()
    });
    let name = safe_name(&name);
    match extension(declared_type) {
        Some(extension) if !name.contains('.') => format!("{name}.{extension}"),
        _ => name,
    }
}

/// Returns the usual extension of a text type.
fn extension(mime_type: &str) -> Option<&'static str> {
    Some(match mime_type.to_ascii_lowercase().as_str() {
        "text/csv" | "application/csv" => "csv",
        "text/tab-separated-values" => "tsv",
        "text/markdown" => "md",
        "text/calendar" => "ics",
        "text/vcard" => "vcf",
        "application/json" => "json",
        "application/x-ndjson" => "ndjson",
        _ => return None,
    })
}

fn chunks(response: Streaming) -> impl Stream<Item = Result<bytes::Bytes>> + Send {
    stream::try_unfold(response, |mut response| async move {
        Ok(response.chunk().await.map_err(refusal)?.map(|chunk| (chunk, response)))
    })
}

/// Converts the error of a download.
fn refusal(error: egress::Error) -> Error {
    if error.is_refusal() {
        let message = format!("The URL is not allowed: {error}.");
        return Error::new(Code::UrlNotAllowed, message).param("url");
    }
    if let egress::Error::TooLarge { .. } = error {
        let message = format!("The file exceeds the limit of {} MiB.", MOST_BYTES >> 20);
        return Error::new(Code::FileTooLarge, message).param("url");
    }
    fetch_failed(format!("The file could not be fetched: {error}."), json!({ "reason": error.kind() }))
}

fn fetch_failed(message: String, details: serde_json::Value) -> Error {
    Error::new(Code::FetchFailed, message).param("url").with("details", details)
}

fn new_file(cx: &Cx) -> NewFile {
    NewFile {
        name: String::new(),
        most_bytes: MOST_BYTES,
        workspace: cx.caller.workspace_id(),
        uploaded_by: cx.caller.cause().actor,
    }
}

/// Creates a file from stored bytes. `finish` returns its row and whether it is new. The same transaction stores the
/// response for the request's `Idempotency-Key`.
///
/// # Errors
/// Errors of `finish`.
pub(super) async fn commit(
    cx: &Cx,
    files: std::sync::Arc<Files>,
    finish: impl Fn(&mut Tx) -> Result<(FileRow, bool)> + Send + 'static,
) -> Result<Created<File>> {
    let (caller, claim) = (cx.caller.clone(), cx.claim.clone());
    let file = cx.db.write(move |tx| {
        let (row, is_new) = finish(tx)?;
        let file = if is_new {
            publish(tx, &caller, &files, &row, Change::Created)?
        } else {
            files.show(&row, tx.now())?
        };
        if let Some(claim) = &claim {
            let reply = Created(file.clone()).reply()?;
            idempotency::finish(tx, claim, reply.status, reply.text()?, &reply.headers)?;
        }
        Ok(file)
    });
    let file = file.await?;
    if cx.claim.is_some() {
        cx.mark_answered();
    }
    Ok(Created(file))
}
