//! A model server that answers every prompt at once. It implements only as much HTTP as the service's client needs.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The text of its answers.
pub const TEXT: &str = "Hello! How can I help you today?";
/// The input and output tokens that it reports.
pub const TOKENS: (i64, i64) = (40, 10);

pub async fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", json!({ "address": listener.local_addr()?.to_string() }));
    let body = json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "stub",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": TEXT }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": TOKENS.0, "completion_tokens": TOKENS.1, "total_tokens": TOKENS.0 + TOKENS.1 },
    })
    .to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer: &'static [u8] = Box::leak(answer.into_bytes().into_boxed_slice());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::task::spawn_local(converse(stream, answer));
    }
}

async fn converse(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        while let Some(end) = request_end(&buffer) {
            buffer.drain(..end);
            stream.write_all(answer).await?;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// Returns the end of the first request in `bytes`, if it is complete.
pub fn request_end(bytes: &[u8]) -> Option<usize> {
    let head = crate::load::head_length(bytes)?;
    let end = head + crate::load::content_length(bytes.get(..head)?);
    (bytes.len() >= end).then_some(end)
}
