//! Single requests, for the setup of measurements.

use crate::load::{head_length, is_chunked};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server and the credentials for it.
pub struct Server {
    /// The address on which it listens.
    pub address: String,
    /// The bearer token for `Authorization`, or an empty text.
    pub token: String,
}

impl Server {
    /// Sends a request and returns the JSON of the response, or `null` for an empty body. A status other than 2xx is
    /// an error.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let (head, answer) = self.exchange(method, path, &body)?;
        let status = head.get(9..12).unwrap_or_default();
        ensure!(status.starts_with('2'), "{method} {path}: {head}\n{answer}");
        if answer.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&answer)?) }
    }

    /// Sends a request and returns the head and the body of the response. HTTP/1.0 avoids chunked bodies.
    pub fn exchange(&self, method: &str, path: &str, body: &str) -> Result<(String, String)> {
        let mut stream = self.send(method, path, body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let head = head_length(&answer).context("no answer")?;
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        Ok((text(answer.get(..head)), text(answer.get(head..))))
    }

    /// Reads a long response without keeping it in memory. Returns the bytes and the lines of its body.
    pub fn read_through(&self, path: &str) -> Result<(u64, u64)> {
        let mut stream = BufReader::with_capacity(1 << 18, self.send("GET", path, "")?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(stream.read_line(&mut head)? > 0, "GET {path}: no answer");
        }
        ensure!(head.get(9..12) == Some("200"), "GET {path}: {head}");
        if !is_chunked(head.as_bytes()) {
            return count(&mut stream);
        }
        let (mut bytes, mut lines) = (0, 0);
        loop {
            let mut size = String::new();
            stream.read_line(&mut size)?;
            let size =
                u64::from_str_radix(size.trim(), 16).with_context(|| format!("GET {path}: it broke off"))?;
            if size == 0 {
                return Ok((bytes, lines));
            }
            let (read, ends) = count(&mut stream.by_ref().take(size))?;
            (bytes, lines) = (bytes + read, lines + ends);
            stream.read_line(&mut String::new())?;
        }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Result<TcpStream> {
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
        Ok(stream)
    }
}

/// Reads to the end. Returns the number of bytes and of lines.
fn count(reader: &mut impl BufRead) -> Result<(u64, u64)> {
    let (mut bytes, mut lines) = (0, 0);
    loop {
        let read = reader.fill_buf()?;
        let length = read.len();
        if length == 0 {
            return Ok((bytes, lines));
        }
        bytes += length as u64;
        lines += read.iter().filter(|byte| **byte == b'\n').count() as u64;
        reader.consume(length);
    }
}
