//! Raw requests, for input that no client library would send.

use crate::{Answer, TestApp};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

impl TestApp {
    /// Sends bytes and reads the response until the service closes the connection. The request must contain
    /// `connection: close`.
    pub async fn raw(&self, request: &[u8]) -> Answer {
        read_answer(&self.raw_bytes(request).await)
    }

    /// Sends bytes and returns all received bytes.
    pub async fn raw_bytes(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        // The service may respond and close before it has read everything.
        let _ = stream.write_all(request).await;
        read_all(&mut stream).await
    }

    /// Opens a connection to the service.
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.origin.strip_prefix("http://").unwrap()).await.expect("the service listens")
    }
}

/// Reads until the service closes the connection.
pub async fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        bytes.extend_from_slice(chunk.get(..read).unwrap());
    }
    bytes
}

/// Parses a response.
pub fn read_answer(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status line");
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let body_value = serde_json::from_str(body).unwrap_or(Value::Null);
    Answer { status, headers, text: body.to_owned(), body: body_value }
}
