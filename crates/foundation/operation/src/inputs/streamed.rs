//! Bodies that an operation reads while they arrive, such as files, which may be too large for memory.

use crate::answers::disposition::Disposition;
use crate::declaration::validate::FormChecks;
use crate::inputs::arriving::{BodyChunks, StreamedBody};
use crate::{Describe, FromInput, Input};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use model::{Error, Result};
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// The maximum number of bytes in the fields of a form other than the file.
const MOST_TEXT: usize = 64 << 10;

/// The number of bytes of a form after which reading pauses. A pause after each chunk of a connection would cost more
/// than the processing of the bytes.
const PACE: usize = 256 << 10;

/// The maximum number of fields in a form.
const MOST_FIELDS: usize = 50;

fn body<'a>(input: &'a Input<'_>) -> Result<&'a StreamedBody> {
    input.stream.ok_or_else(|| Error::internal("the interface does not stream bodies"))
}

/// A body of bytes.
pub struct Octets(pub BodyChunks);

impl FromInput for Octets {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        body(input)?.take().map(Self)
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.streamed_body::<Binary>("application/octet-stream");
    }
}

/// The schema of binary data.
struct Binary;

impl PartialSchema for Binary {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::Binary);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build().into()
    }
}

impl ToSchema for Binary {}

/// A `multipart/form-data` body with one file. `T` describes it. The field `file` of `T` is the file, which is read
/// separately from the other fields.
pub struct Multipart<T> {
    form: multer::Multipart<'static>,
    fields: Vec<(String, String)>,
    text_bytes: usize,
    checks: FormChecks,
    read: PhantomData<fn() -> T>,
}

/// The file of a form.
pub struct FilePart {
    /// The sender's name of the file.
    pub name: Option<String>,
    /// The media type that the sender declared.
    pub media_type: Option<String>,
    field: multer::Field<'static>,
}

impl FilePart {
    /// Returns the bytes of the file.
    pub fn bytes(self) -> impl Stream<Item = Result<Bytes>> + Send {
        self.field.map(|chunk| chunk.map_err(refusal))
    }
}

impl<T: DeserializeOwned + ToSchema> FromInput for Multipart<T> {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        let body = body(input)?;
        let boundary = multer::parse_boundary(&body.content_type)
            .map_err(|_| Error::invalid("Content-Type", "must have a boundary"))?;
        let chunks = Paced::new(body.take()?).map(|chunk| chunk.map_err(Refused));
        Ok(Self {
            form: multer::Multipart::new(chunks, boundary),
            fields: Vec::new(),
            text_bytes: 0,
            checks: input.form_checks(),
            read: PhantomData,
        })
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.streamed_body::<T>("multipart/form-data");
    }
}

impl<T: DeserializeOwned> Multipart<T> {
    /// Returns the next file of the form, and keeps the fields before it. The file must be read to its end before the
    /// next call.
    ///
    /// # Errors
    /// `validation_error` for a malformed form.
    pub async fn next_file(&mut self) -> Result<Option<FilePart>> {
        while let Some(mut field) = self.form.next_field().await.map_err(refusal)? {
            let disposition = field.headers().get("content-disposition");
            let disposition =
                disposition.map(|header| Disposition::of_part(header.as_bytes())).unwrap_or_default();
            let Some(name) = disposition.name else {
                return Err(Error::invalid("body", "has a part without a name"));
            };
            if name == "file" {
                self.fields.push((name, String::new()));
                return Ok(Some(FilePart {
                    name: disposition.file_name,
                    media_type: field.content_type().map(ToString::to_string),
                    field,
                }));
            }
            if self.fields.len() >= MOST_FIELDS {
                return Err(Error::invalid(
                    "body",
                    format_args!("must not have more than {MOST_FIELDS} fields"),
                ));
            }
            let mut bytes = Vec::new();
            while let Some(chunk) = field.chunk().await.map_err(refusal)? {
                self.text_bytes += chunk.len();
                if self.text_bytes > MOST_TEXT {
                    return Err(Error::invalid(name, "is too long; send the file as the field `file`"));
                }
                bytes.extend_from_slice(&chunk);
            }
            let text = String::from_utf8(bytes).map_err(|_| Error::invalid(&name, "must be UTF-8"))?;
            self.fields.push((name, text));
        }
        Ok(None)
    }

    /// Returns the fields that were read.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn fields(&self) -> Result<T> {
        self.checks.read(&self.fields)
    }
}

/// Chunks with artificial pauses, at which no further chunk seems to be available. The form parser reads all
/// available chunks into memory before it returns any of them. Of a file that arrives faster than it is stored, that
/// would be the whole file.
struct Paced {
    chunks: BodyChunks,
    /// The number of bytes since the last pause.
    given: usize,
}

impl Paced {
    fn new(chunks: BodyChunks) -> Self {
        Self { chunks, given: 0 }
    }
}

impl Stream for Paced {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.given >= PACE {
            self.given = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = ready!(self.chunks.as_mut().poll_next(cx));
        if let Some(Ok(chunk)) = &next {
            self.given += chunk.len();
        }
        Poll::Ready(next)
    }
}

/// An error of the body, wrapped so that it passes through the form parser.
#[derive(Debug)]
struct Refused(Error);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Refused {}

fn refusal(error: multer::Error) -> Error {
    match error {
        multer::Error::StreamReadFailed(cause) => match cause.downcast::<Refused>() {
            Ok(refused) => refused.0,
            Err(cause) => Error::internal(cause),
        },
        malformed => Error::invalid("body", format_args!("is not a valid form: {malformed}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use std::iter;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn of_a_file_that_is_there_as_a_whole_little_is_in_memory_at_a_time() {
        const CHUNK: usize = 64 << 10;
        const CHUNKS: usize = 100;
        let head = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
        let body = iter::once(head.to_owned()).chain(iter::repeat_n("a".repeat(CHUNK), CHUNKS));
        let body = body.chain(iter::once("\r\n--x--\r\n".to_owned()));
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = taken.clone();
        let body = stream::iter(body).map(move |chunk| {
            counter.fetch_add(chunk.len(), Ordering::Relaxed);
            Ok(Bytes::from(chunk))
        });
        let chunks = Paced::new(Box::pin(body)).map(|chunk| chunk.map_err(Refused));
        let mut form = multer::Multipart::new(chunks, "x");
        let mut file = form.next_field().await.unwrap().unwrap();
        let mut read = 0;
        while let Some(chunk) = file.chunk().await.unwrap() {
            read += chunk.len();
            let ahead = taken.load(Ordering::Relaxed) - read;
            assert!(ahead <= PACE + 2 * CHUNK, "{ahead} bytes are in memory");
        }
        assert_eq!(read, CHUNKS * CHUNK);
    }
}
