//! Transcripts of voice notes.

use bytes::Bytes;
use egress::{Connector, Limits, Request};
use input::numbers;
use model::{Error, Result};
use operation::BoxFuture;
use ring::digest;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// How long a transcript may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes down what is said in a sound.
pub trait Transcriber: Send + Sync {
    /// The words. The future fails where another attempt may succeed.
    fn transcribe(&self, audio: Bytes, mime_type: String) -> BoxFuture<Result<String>>;
}

/// Where a server with OpenAI's transcription API is.
#[derive(Clone)]
pub struct TranscriberSettings {
    /// Such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// Sent as a bearer token, where the server wants one.
    pub api_key: Option<String>,
    /// The server's name for the model, such as `whisper-1`.
    pub model: String,
}

impl fmt::Debug for TranscriberSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TranscriberSettings")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// A transcriber that asks a server with OpenAI's transcription API.
#[derive(Debug, Clone)]
pub struct OpenAiTranscriber {
    settings: TranscriberSettings,
    connector: Connector,
}

impl OpenAiTranscriber {
    /// A transcriber that reaches its server through `connector`, whose policy must allow it.
    #[must_use]
    pub fn new(settings: TranscriberSettings, connector: Connector) -> Self {
        Self { settings, connector }
    }
}

impl Transcriber for OpenAiTranscriber {
    fn transcribe(&self, audio: Bytes, mime_type: String) -> BoxFuture<Result<String>> {
        let this = self.clone();
        Box::pin(async move {
            let url = format!("{}/audio/transcriptions", this.settings.base_url.trim_end_matches('/'));
            let (boundary, form) = form(&this.settings.model, &mime_type, &audio);
            let limits = Limits { total: PATIENCE, ..Limits::default() };
            let mut request = Request::post(url, form)
                .header("content-type", format!("multipart/form-data; boundary={boundary}"))
                .limits(limits);
            if let Some(key) = &this.settings.api_key {
                request = request.header("authorization", format!("Bearer {key}"));
            }
            let response = this.connector.send(request).await.map_err(Error::internal)?;
            if response.status != 200 {
                return Err(Error::internal(format!("the transcriber answered {}", response.status)));
            }
            words(&response.body)
        })
    }
}

/// The words of a transcript: of a sound in which nobody speaks, some servers say `null`.
fn words(body: &[u8]) -> Result<String> {
    let transcript = numbers::lossless(body).map_err(Error::internal)?;
    match transcript.get("text") {
        Some(Value::String(text)) => Ok(text.trim().to_owned()),
        Some(Value::Null) => Ok(String::new()),
        _ => Err(Error::internal("the transcriber's answer has no text")),
    }
}

/// A form with the sound, and the boundary of its parts: the sound's own hash, which it cannot contain.
fn form(model: &str, mime_type: &str, audio: &[u8]) -> (String, Vec<u8>) {
    let hash = digest::digest(&digest::SHA256, audio);
    let boundary: String = hash.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let mime_type: String = mime_type.chars().filter(|letter| !letter.is_control()).collect();
    let extension = match mime_type.split(';').next() {
        Some("audio/mpeg") => "mp3",
        Some("audio/mp4" | "audio/aac") => "m4a",
        Some("audio/wav" | "audio/x-wav") => "wav",
        _ => "ogg",
    };
    let mut form = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n--{boundary}\r\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"voice.{extension}\"\r\n\
         Content-Type: {mime_type}\r\n\r\n"
    )
    .into_bytes();
    form.extend_from_slice(audio);
    form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (boundary, form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        for (body, said) in [
            (&br#"{"text":" Hello. ","duration":1.5}"#[..], Some("Hello.")),
            (br#"{"text":"Hello \ud83d"}"#, Some("Hello \u{fffd}")),
            (br#"{"text":null}"#, Some("")),
            (br#"{"words":[]}"#, None),
            (b"<html>", None),
        ] {
            assert_eq!(words(body).ok().as_deref(), said);
        }
    }
}
