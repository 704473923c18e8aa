//! A small HTTP/1.1 server that records requests, a listener that counts connections, and a resolver with scripted
//! answers.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use egress::{Connector, Policy, Resolver};
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// One request as the server received it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// The server's response to a request.
pub enum Answer {
    /// Writes these bytes and keeps the connection open for the next request.
    Bytes(Vec<u8>),
    /// Writes these bytes and closes the connection.
    Close(Vec<u8>),
    /// Writes these bytes, then nothing more, and keeps the connection open.
    Hang(Vec<u8>),
    /// Writes the first part, then the second part repeatedly until the client disconnects.
    Endless(Vec<u8>, Vec<u8>),
}

pub fn ok(body: &str) -> Answer {
    Answer::Bytes(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

pub fn redirect(status: u16, location: &str) -> Answer {
    let head = format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    Answer::Bytes(head.into_bytes())
}

type Handler = dyn Fn(&Seen) -> Answer + Send + Sync;

pub struct Server {
    pub address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
    pub received: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub async fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1", answer).await
    }

    pub async fn at(ip: &str, answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::new(Notify::new());
        let answer: Arc<Handler> = Arc::new(answer);
        let (count, record, notify) = (Arc::clone(&accepted), Arc::clone(&seen), Arc::clone(&received));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&answer), Arc::clone(&record), Arc::clone(&notify)));
            }
        });
        Self { address, accepted, seen, received, task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn rule(&self) -> String {
        self.address.to_string()
    }

    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn last(&self) -> Seen {
        self.seen().pop().unwrap()
    }

    /// Returns a connector that may reach this server, by its address only.
    pub fn connector(&self) -> Connector {
        Connector::new(Policy::allowing([self.rule().as_str()]).unwrap()).unwrap()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Arc<Handler>,
    record: Arc<Mutex<Vec<Seen>>>,
    notify: Arc<Notify>,
) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let seen = read_request(&mut stream, &mut buffer).await?;
        let reply = answer(&seen);
        record.lock().unwrap().push(seen);
        notify.notify_one();
        match reply {
            Answer::Bytes(bytes) => stream.write_all(&bytes).await.ok()?,
            Answer::Close(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                return stream.shutdown().await.ok();
            }
            Answer::Hang(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                std::future::pending::<()>().await;
            }
            Answer::Endless(head, part) => {
                stream.write_all(&head).await.ok()?;
                loop {
                    stream.write_all(&part).await.ok()?;
                }
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer.drain(..end).collect()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(n, _)| n == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
    while buffer.len() < length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    Some(Seen { method, target, headers, body: buffer.drain(..length).collect() })
}

/// A listener that never accepts. The kernel completes connections anyway and keeps them in the backlog, so none is
/// missed between an attempt and the check.
pub struct Trap {
    listeners: Vec<StdListener>,
    pub port: u16,
}

impl Trap {
    /// Listens on all addresses of the machine.
    pub fn everywhere() -> Self {
        let both = StdListener::bind((Ipv6Addr::UNSPECIFIED, 0));
        Self::over(both.or_else(|_| StdListener::bind("0.0.0.0:0")).unwrap())
    }

    /// Listens on this address. Returns `None` if the port is taken.
    pub fn at(ip: &str, port: u16) -> Option<Self> {
        StdListener::bind((ip, port)).ok().map(Self::over)
    }

    fn over(listener: StdListener) -> Self {
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { listeners: vec![listener], port }
    }

    /// Returns the number of connections since the last call.
    pub fn captured(&self) -> usize {
        let mut intercepted = 0;
        for listener in &self.listeners {
            loop {
                match listener.accept() {
                    Ok(_) => intercepted += 1,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) => panic!("{e}"),
                }
            }
        }
        intercepted
    }
}

/// A resolver that returns a name's answers in turn and repeats the last one. It counts the lookups.
#[derive(Default)]
pub struct Script {
    answers: HashMap<String, Vec<Vec<IpAddr>>>,
    lookups: Mutex<HashMap<String, usize>>,
}

impl Script {
    /// Adds an answer for a name: addresses separated by spaces.
    pub fn on(mut self, name: &str, answer: &str) -> Self {
        let answer = answer.split_whitespace().map(|a| a.parse().unwrap()).collect();
        self.answers.entry(name.to_owned()).or_default().push(answer);
        self
    }

    pub fn lookups(&self, name: &str) -> usize {
        self.lookups.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    pub fn connector(self: &Arc<Self>, rules: &[&str]) -> Connector {
        let policy = Policy::allowing(rules.iter().copied()).unwrap();
        Connector::with_resolver(policy, Arc::clone(self) as Arc<dyn Resolver>).unwrap()
    }
}

impl Resolver for Script {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut lookups = self.lookups.lock().unwrap();
        let turn = lookups.entry(host.to_owned()).or_insert(0);
        let answer = self.answers.get(host).and_then(|all| all.get(*turn).or_else(|| all.last())).cloned();
        *turn += 1;
        Box::pin(async move { answer.ok_or_else(|| io::Error::from(ErrorKind::NotFound)) })
    }
}
