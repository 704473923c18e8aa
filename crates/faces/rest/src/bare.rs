//! What actix refuses before there is a request: its dispatcher answers by itself, without a body and without a hook for
//! one. [`Connection`] stands between it and the socket, holds such an answer back, and a full one goes out instead.

use crate::HEADER_BYTES;
use actix_http::error::{DispatchError, ParseError};
use actix_web::http::StatusCode;
use actix_web::http::header::HttpDate;
use actix_web::rt::net::TcpStream;
use model::{Error, RequestId};
use operation::{Pipeline, error_reply};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

/// How long a caller may take for its last answer, and to stop sending what nobody reads.
const LINGER: Duration = Duration::from_secs(1);
/// No answer of the dispatcher's own is longer.
const LONGEST: usize = 200;

/// A caller's connection, as the dispatcher sees it.
#[derive(Clone)]
pub(crate) struct Connection(Rc<RefCell<Wire>>);

struct Wire {
    stream: TcpStream,
    /// The end of what the dispatcher wrote, as long as that may be an answer of its own.
    held: Vec<u8>,
    has_read: bool,
    has_written: bool,
    /// The caller sends no more.
    is_at_end: bool,
    /// The dispatcher is done with it.
    is_shut: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(Rc::new(RefCell::new(Wire {
            stream,
            held: Vec::new(),
            has_read: false,
            has_written: false,
            is_at_end: false,
            is_shut: false,
        })))
    }

    /// Drives `dispatcher`, which has the other end of this connection, and completes its last answer.
    pub(crate) async fn serve(
        mut self,
        dispatcher: impl Future<Output = Result<(), DispatchError>>,
        pipeline: &Pipeline,
    ) -> Result<(), DispatchError> {
        let ended = {
            let mut dispatcher = pin!(dispatcher);
            poll_fn(|context| {
                let ended = dispatcher.as_mut().poll(context);
                if ended.is_pending() {
                    // After an answer of its own the dispatcher ends at once, so this was none.
                    let _ = self.0.borrow_mut().release(context);
                }
                ended
            })
            .await
        };
        let error = self.0.borrow().unanswered(&ended);
        if let Some(error) = error {
            self.0.borrow_mut().held = full_answer(&error, pipeline);
        }
        if !self.0.borrow().held.is_empty() {
            // Whoever does not take it in time has gone.
            let _ = timeout(LINGER, self.end()).await;
        }
        ended
    }

    /// Writes what is held back and ends the connection. What the caller still sends is read, because closing before that
    /// would take the answer away from it.
    async fn end(&mut self) -> io::Result<()> {
        poll_fn(|context| self.0.borrow_mut().release(context)).await?;
        self.shutdown().await?;
        let mut rest = [0; 4096];
        while self.read(&mut rest).await? > 0 {}
        Ok(())
    }
}

impl Wire {
    /// What a caller is to be told whose request the dispatcher gave up by itself.
    fn unanswered(&self, ended: &Result<(), DispatchError>) -> Option<Error> {
        let is_held = !self.held.is_empty();
        match ended {
            Err(DispatchError::Parse(error)) if is_held => Some(refusal(error)),
            // The first bytes that go out are a head, and not part of a body that looks like one.
            Ok(()) if self.is_silent() && is_held => Some(Error::invalid("head", "was not received in time")),
            // It hangs up on a body whose chunks it cannot read, where the request has no answer yet.
            Ok(()) if self.is_silent() && !self.is_shut => {
                Some(Error::invalid("body", "must have valid HTTP/1.1 chunks"))
            }
            Ok(()) if self.is_silent() && self.is_at_end => Some(Error::invalid("head", "must be complete")),
            _ => None,
        }
    }

    /// Whether something came, and nothing went out.
    fn is_silent(&self) -> bool {
        self.has_read && !self.has_written
    }

    /// Writes what is held back.
    fn release(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.held))?;
            self.has_written = true;
            self.held.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = &mut *self.0.borrow_mut();
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut wire.stream).poll_read(context, buffer));
        let has_come = buffer.filled().len() > before;
        wire.has_read |= has_come;
        wire.is_at_end |= !has_come;
        Poll::Ready(read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wire = &mut *self.0.borrow_mut();
        ready!(wire.release(context))?;
        let (first, last) = bytes.split_at(bare_answer(bytes).unwrap_or(bytes.len()));
        let mut written = 0;
        if !first.is_empty() {
            written = ready!(Pin::new(&mut wire.stream).poll_write(context, first))?;
            wire.has_written = true;
        }
        if written == first.len() {
            wire.held.extend_from_slice(last);
            written = bytes.len();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = &mut *self.0.borrow_mut();
        wire.is_shut = true;
        // There may be a last answer.
        if wire.is_silent() || !wire.held.is_empty() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut wire.stream).poll_shutdown(context)
    }
}

/// Where an answer of the dispatcher's own begins that `bytes` end with: a refusal, with no header that a handler's answer
/// would have.
fn bare_answer(bytes: &[u8]) -> Option<usize> {
    let head = bytes.strip_suffix(b"\r\n\r\n")?;
    let near = head.len().saturating_sub(LONGEST);
    let start = near + head.get(near..)?.windows(7).rposition(|window| window == b"HTTP/1.")?;
    let mut lines = std::str::from_utf8(head.get(start..)?).ok()?.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?;
    let is_bare = matches!(status, "400" | "408" | "431")
        && lines.next()? == "content-length: 0"
        && lines.all(|line| line.starts_with("connection: ") || line.starts_with("date: "));
    is_bare.then_some(start)
}

fn refusal(error: &ParseError) -> Error {
    match error {
        ParseError::TooLarge => {
            Error::invalid("headers", format_args!("must have at most 96 lines and {HEADER_BYTES} bytes"))
        }
        ParseError::Uri(_) => Error::invalid("path", "must be a path and a query as RFC 3986 defines them"),
        ParseError::Method => Error::invalid("method", "must be a method of HTTP"),
        ParseError::Version => Error::invalid("version", "must be HTTP/1.1 or HTTP/1.0"),
        // The parser has one error for all of these.
        _ => Error::invalid(
            "head",
            "must be a request line and headers as HTTP/1.1 defines them: no bytes that it forbids, one `Host`, and \
             one `Content-Length` or `Transfer-Encoding: chunked`",
        ),
    }
}

fn full_answer(error: &Error, pipeline: &Pipeline) -> Vec<u8> {
    let now = pipeline.db.now();
    let request = RequestId::new(now, &*pipeline.db.random());
    tracing::debug!(request_id = %request, %error, "what came was no request");
    let (status, body) = error_reply(error, &request);
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let since = Duration::from_secs(u64::try_from(now.seconds()).unwrap_or_default());
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-length: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-request-id: {request}\r\ndate: {}\r\n\r\n",
        reason.unwrap_or_default(),
        body.len(),
        HttpDate::from(SystemTime::UNIX_EPOCH + since),
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_of_the_dispatchers_own_is_bare() {
        let bare = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\
                    date: Sun, 22 Nov 2026 03:00:00 GMT\r\n\r\n";
        assert_eq!(bare_answer(bare.as_bytes()), Some(0));
        assert_eq!(bare_answer(bare.replace("connection: close\r\n", "").as_bytes()), Some(0));
        assert_eq!(bare_answer(bare.replace("400", "431").as_bytes()), Some(0));
        let after = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{{}}{bare}");
        assert_eq!(bare_answer(after.as_bytes()), Some(after.len() - bare.len()));

        assert_eq!(bare_answer(b""), None);
        assert_eq!(bare_answer(bare.replace("400", "404").as_bytes()), None);
        assert_eq!(bare_answer(bare.replace("h: 0", "h: 9").as_bytes()), None);
        assert_eq!(bare_answer(bare.replace("date", "x-request-id: req_1\r\ndate").as_bytes()), None);
        assert_eq!(bare_answer(format!("{bare}x").as_bytes()), None);
    }
}
