//! From the arguments of a tool to the input of its operation.

use super::catalog::OperationTool;
use super::parts::{Argument, BodyKind, MOST_BYTES, Place};
use super::texts::Arguments;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use input::nearest;
use model::{Error, FieldError, Result};
use operation::{CallBody, CallInput, Paging};
use serde_json::Value;
use serde_json::value::RawValue;

/// The most unknown arguments that an error names.
const MOST_ERRORS: usize = 20;
/// Separates the parts of a form. It ends with a digest of the file, so that no file contains it by accident.
const BOUNDARY: &str = "svc-mcp-";

impl OperationTool {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// `validation_error` for unknown arguments, missing parameters of the path, and values that no parameter can have.
    pub(super) fn input(&self, mut arguments: Arguments) -> Result<CallInput> {
        self.refuse_unknown(&arguments)?;
        let mut input = CallInput::default();
        let (mut body, mut whole, mut bytes, mut media_type) = (Arguments::default(), None, None, None);
        for Argument { name, place } in &self.arguments {
            let Some(value) = arguments.take(name) else { continue };
            match place {
                Place::Path(parameter) => input.path.push((parameter, scalar(name, &value)?)),
                Place::Query(parameter) => query(parameter, &value, &mut input.query)?,
                Place::Body(field) => body.insert(field, value),
                Place::WholeBody => whole = Some(value),
                Place::Bytes => bytes = Some(decoded(name, &value)?),
                Place::MediaType => media_type = Some(scalar(name, &value)?),
                Place::IfMatch => input.if_match = Some(scalar(name, &value)?),
                Place::IdempotencyKey => input.idempotency_key = Some(scalar(name, &value)?),
            }
        }
        let given = |parameter: &str| input.path.iter().any(|(name, _)| *name == parameter);
        let missing = self
            .arguments
            .iter()
            .find(|argument| matches!(argument.place, Place::Path(parameter) if !given(parameter)));
        if let Some(missing) = missing {
            return Err(Error::invalid(&missing.name, "is required"));
        }
        self.ask_for_pages(&mut input.query);
        // The protocol reports progress and stops waiting by the events of the work.
        let is_background = body.text("background") == Some("true");
        if self.can_stream && !is_background && body.text("stream").is_none() {
            body.set("stream", &true.into());
        }
        let needs_bytes = || Error::invalid("content_base64", "is required");
        input.body = match self.body {
            BodyKind::None => CallBody::None,
            BodyKind::Json => CallBody::Json(
                whole.map_or_else(|| body.print(), |whole: Box<RawValue>| whole.get().to_owned()),
            ),
            BodyKind::Octets => {
                CallBody::Bytes("application/octet-stream".to_owned(), bytes.ok_or_else(needs_bytes)?)
            }
            BodyKind::Form => form(&body, media_type.as_deref(), &bytes.ok_or_else(needs_bytes)?)?,
        };
        Ok(input)
    }

    /// Lists that return all rows by default come in pages here: a model has a small memory.
    fn ask_for_pages(&self, query: &mut Vec<(String, String)>) {
        if self.meta.paging == Some(Paging::OptIn) && query.iter().all(|(name, _)| name != "paginate") {
            query.push(("paginate".to_owned(), "true".to_owned()));
        }
    }

    fn refuse_unknown(&self, arguments: &Arguments) -> Result<()> {
        let known = || self.arguments.iter().map(|argument| argument.name.as_str());
        let unknown = arguments.names().filter(|name| known().all(|known| known != *name));
        let errors = unknown.take(MOST_ERRORS).map(|name| {
            let shown: String = name.chars().filter(|letter| *letter != '\0').take(80).collect();
            let near = nearest(&shown, known()).map(|near| format!("; did you mean `{near}`?"));
            let hint = near.unwrap_or_default();
            let shown = if shown.is_empty() { "arguments" } else { &shown };
            FieldError::new(shown, format_args!("is not an argument of `{}`{hint}", self.meta.id))
        });
        Error::all_invalid(errors.collect()).map_or(Ok(()), Err)
    }
}

/// Returns a value as the text that a path or query has.
fn scalar(name: &str, text: &RawValue) -> Result<String> {
    match serde_json::from_str(text.get()) {
        Ok(Value::String(text)) => Ok(text),
        Ok(Value::Number(_) | Value::Bool(_)) => Ok(text.get().to_owned()),
        _ => Err(Error::invalid(name, "must be a text, number or boolean")),
    }
}

/// Returns the values of a list, or `None` for anything else.
fn list(text: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text.get()).ok()
}

/// Adds a parameter of the query. `null` is one that is not sent.
fn query(name: &str, text: &RawValue, pairs: &mut Vec<(String, String)>) -> Result<()> {
    if text.get() == "null" {
        return Ok(());
    }
    if let Some(values) = list(text) {
        let texts: Result<Vec<String>> = values.into_iter().map(|value| scalar(name, value)).collect();
        pairs.push((name.to_owned(), texts?.join(",")));
        return Ok(());
    }
    let Some(conditions) = Arguments::parse(text.get()) else {
        pairs.push((name.to_owned(), scalar(name, text)?));
        return Ok(());
    };
    for (field, condition) in conditions.texts() {
        nested(&format!("{name}[{field}]"), condition, pairs, 0)?;
    }
    Ok(())
}

/// Adds a condition: a value, operators with values, or a list.
fn nested(name: &str, text: &RawValue, pairs: &mut Vec<(String, String)>, depth: usize) -> Result<()> {
    if let Some(operators) = Arguments::parse(text.get()).filter(|_| depth == 0) {
        for (operator, value) in operators.texts() {
            nested(&format!("{name}[{operator}]"), value, pairs, depth + 1)?;
        }
    } else if let Some(values) = list(text) {
        for value in values {
            pairs.push((format!("{name}[]"), scalar(name, value)?));
        }
    } else {
        pairs.push((name.to_owned(), scalar(name, text)?));
    }
    Ok(())
}

fn decoded(name: &str, text: &RawValue) -> Result<Bytes> {
    let text: String =
        serde_json::from_str(text.get()).map_err(|_| Error::invalid(name, "must be a text in Base64"))?;
    if text.len() > MOST_BYTES.div_ceil(3) * 4 {
        let message = "must not be larger than 1 MiB; call `createUpload` and send the parts to the REST interface, or let `importFileFromUrl` fetch the file";
        return Err(Error::invalid(name, message));
    }
    let bytes = STANDARD.decode(text).map_err(|_| Error::invalid(name, "must be Base64 with padding"))?;
    Ok(bytes.into())
}

/// Makes the form of an upload.
fn form(fields: &Arguments, media_type: Option<&str>, file: &[u8]) -> Result<CallBody> {
    // The same call has the same form.
    let boundary = format!("{BOUNDARY}{:016x}{:x}", fingerprint(file), file.len());
    let media_type = media_type.unwrap_or("application/octet-stream");
    if media_type.contains(['\r', '\n']) {
        return Err(Error::invalid("media_type", "must be a media type"));
    }
    let mut body = Vec::with_capacity(file.len() + 1024);
    for (name, value) in fields.texts().filter(|(_, value)| value.get() != "null") {
        let text = match list(value) {
            Some(values) => {
                values.into_iter().map(|value| scalar(name, value)).collect::<Result<Vec<_>>>()?.join(",")
            }
            None if value.get().starts_with('{') => value.get().to_owned(),
            None => scalar(name, value)?,
        };
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(text.as_bytes());
        body.extend_from_slice(b"\r\n");
    }
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\nContent-Type: {media_type}\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(file);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    Ok(CallBody::Bytes(format!("multipart/form-data; boundary={boundary}"), body.into()))
}

/// FNV-1a. It only makes a boundary that a file does not contain.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
