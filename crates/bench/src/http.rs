//! Single requests, for setting up what is measured.

use crate::load::head_length;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server to be asked.
pub struct Server {
    /// Where it listens.
    pub address: String,
    /// The bearer of `Authorization`, where there is one.
    pub token: String,
}

impl Server {
    /// Sends a request and gives the whole answer's head and body; the body is JSON or nothing.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let (head, answer) = self.exchange(method, path, &body)?;
        let status = head.get(9..12).unwrap_or_default();
        ensure!(status.starts_with('2'), "{method} {path}: {head}\n{answer}");
        if answer.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&answer)?) }
    }

    /// Sends a request and gives the answer's head and body. HTTP/1.0, so that no body comes in chunks.
    pub fn exchange(&self, method: &str, path: &str, body: &str) -> Result<(String, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(600)))?;
        let authorization = match self.token.as_str() {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nhost: {}\r\n{authorization}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let head = head_length(&answer).context("no answer")?;
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        Ok((text(answer.get(..head)), text(answer.get(head..))))
    }
}
