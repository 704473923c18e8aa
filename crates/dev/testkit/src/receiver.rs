//! An endpoint that receives webhook deliveries.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The response of the endpoint to a delivery.
#[derive(Debug, Clone)]
pub enum Answering {
    /// Responds with this status and these headers.
    Status(u16, Vec<(String, String)>),
    /// Responds with this status, these headers and this body.
    Body(u16, Vec<(String, String)>, String),
    /// Responds with 200 after a delay.
    Slow(Duration),
    /// Closes the connection without a response.
    HangUp,
    /// Keeps the connection open without a response.
    Silent,
}

impl Answering {
    /// Returns a response with only a status.
    pub fn status(status: u16) -> Self {
        Self::Status(status, Vec::new())
    }

    /// Returns a response with JSON.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::Body(status, vec![("content-type".to_owned(), "application/json".to_owned())], body.to_string())
    }

    /// Returns a response with one header.
    pub fn with(status: u16, name: &str, value: &str) -> Self {
        Self::Status(status, vec![(name.to_owned(), value.to_owned())])
    }
}

/// A received delivery.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The path that it was posted to.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the response was 2xx.
    pub accepted: bool,
}

impl Delivered {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

type Rule = dyn Fn(&Delivered) -> Answering + Send + Sync;

/// An HTTP server that records deliveries and responds according to a rule. It supports just enough HTTP/1.1 for the
/// service's client.
#[derive(Clone)]
pub struct Receiver {
    /// The address that it listens on.
    pub address: SocketAddr,
    delivered: Arc<Mutex<Vec<Delivered>>>,
    rule: Arc<Mutex<Arc<Rule>>>,
}

impl Receiver {
    /// Starts on a free port and responds with 200.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let rule: Arc<Rule> = Arc::new(|_: &Delivered| Answering::status(200));
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            delivered: Arc::default(),
            rule: Arc::new(Mutex::new(rule)),
        };
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let receiver = serving.clone();
                tokio::spawn(async move { receiver.serve(stream).await });
            }
        });
        receiver
    }

    /// Returns its URL with this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the rule for responses.
    pub fn answer(&self, rule: impl Fn(&Delivered) -> Answering + Send + Sync + 'static) {
        *self.rule.lock().unwrap() = Arc::new(rule);
    }

    /// Sets the status of responses.
    pub fn answer_status(&self, status: u16) {
        self.answer(move |_| Answering::status(status));
    }

    /// Returns the deliveries so far.
    pub fn delivered(&self) -> Vec<Delivered> {
        self.delivered.lock().unwrap().clone()
    }

    /// Returns the number of deliveries so far.
    pub fn count(&self) -> usize {
        self.delivered.lock().unwrap().len()
    }

    /// Removes the recorded deliveries.
    pub fn forget(&self) {
        self.delivered.lock().unwrap().clear();
    }

    async fn serve(&self, mut stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut bytes = Vec::new();
        while let Some(mut request) = read_request(&mut stream, &mut bytes).await {
            let rule = self.rule.lock().unwrap().clone();
            let answering = rule(&request);
            request.accepted = match &answering {
                Answering::Status(status, _) | Answering::Body(status, ..) => (200..300).contains(status),
                Answering::Slow(_) => true,
                Answering::HangUp | Answering::Silent => false,
            };
            self.delivered.lock().unwrap().push(request);
            let (status, headers, body) = match answering {
                Answering::Status(status, headers) => (status, headers, "ok".to_owned()),
                Answering::Body(status, headers, body) => (status, headers, body),
                Answering::Slow(wait) => {
                    tokio::time::sleep(wait).await;
                    (200, Vec::new(), "ok".to_owned())
                }
                Answering::HangUp => return,
                Answering::Silent => std::future::pending().await,
            };
            let headers: String =
                headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let length = body.len();
            let answer = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}");
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Reads one request. Bytes after it stay in `bytes`.
async fn read_request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Delivered> {
    let mut chunk = [0; 16 * 1024];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < end + length {
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
    }
    let body = bytes[end..end + length].to_vec();
    bytes.drain(..end + length);
    Some(Delivered { path, headers, body, accepted: false })
}
