//! A browser without scripts: it keeps cookies, says where its requests come from, and sends forms.

use serde_json::Value;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use testkit::TestApp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// An answer.
#[derive(Debug, Clone)]
pub struct Page {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub text: String,
}

impl Page {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// All cookies that are set, as they are written in the header.
    pub fn set_cookies(&self) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(name, _)| name == "set-cookie")
            .map(|(_, value)| value.as_str())
            .collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The form token of the first form of the page.
    pub fn token(&self) -> Option<&str> {
        let (_, rest) = self.text.split_once("name=\"form_token\" value=\"")?;
        rest.split('"').next()
    }

    #[track_caller]
    pub fn expect(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{:?}\n{}", self.headers, self.text);
        self
    }

    #[track_caller]
    pub fn expect_redirect(&self, to: &str) -> &Self {
        assert_eq!((self.status, self.header("location")), (303, Some(to)), "{}", self.text);
        self
    }

    #[track_caller]
    pub fn expect_text(&self, text: &str) -> &Self {
        assert!(self.text.contains(text), "{text:?} is not in {}", self.text);
        self
    }
}

/// A browser at an address of this machine.
#[derive(Debug, Clone)]
pub struct Browser {
    service: String,
    address: Ipv4Addr,
    pub cookies: BTreeMap<String, String>,
    /// The headers of every request.
    pub headers: Vec<(String, String)>,
}

impl Browser {
    pub fn new(app: &TestApp) -> Self {
        Self::at(app, Ipv4Addr::LOCALHOST)
    }

    pub fn at(app: &TestApp, address: Ipv4Addr) -> Self {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Self {
            service: app.origin.strip_prefix("http://").unwrap().to_owned(),
            address,
            cookies: BTreeMap::new(),
            headers: vec![
                header("host", "svc.example"),
                header("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Chrome/148.0 Safari/537.36"),
                header("sec-fetch-site", "same-origin"),
            ],
        }
    }

    /// The same browser with another value of a header, or without it.
    pub fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut other = self.clone();
        other.headers.retain(|(header, _)| header != name);
        other.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        other
    }

    pub async fn connect(&self) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((self.address, 0).into()).unwrap();
        socket.connect(self.service.parse().unwrap()).await.unwrap()
    }

    /// Sends a request on a connection that stays open. Keeps the cookies of the answer.
    pub async fn send_on(
        &mut self,
        stream: &mut TcpStream,
        (method, path): (&str, &str),
        content_type: &str,
        body: &[u8],
    ) -> Page {
        let mut head = format!("{method} {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.cookies.is_empty() {
            let pairs: Vec<String> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            head += &format!("cookie: {}\r\n", pairs.join("; "));
        }
        if !content_type.is_empty() {
            head += &format!("content-type: {content_type}\r\n");
        }
        // The service may answer before it has read everything.
        let _ = stream.write_all(&[head.as_bytes(), b"\r\n", body].concat()).await;
        let page = read(stream, method == "HEAD").await;
        self.keep(&page);
        page
    }

    pub async fn send(&mut self, request: (&str, &str), content_type: &str, body: &[u8]) -> Page {
        let mut stream = self.connect().await;
        self.send_on(&mut stream, request, content_type, body).await
    }

    fn keep(&mut self, page: &Page) {
        for cookie in page.set_cookies() {
            let (pair, rules) = cookie.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if rules.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    pub async fn get(&mut self, path: &str) -> Page {
        self.send(("GET", path), "", b"").await
    }

    /// Sends a form with exactly these fields.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        self.send(("POST", path), "application/x-www-form-urlencoded", form(fields).as_bytes()).await
    }

    /// Opens `page`, fills in its form and sends it to `path`.
    pub async fn fill(&mut self, page: &str, path: &str, fields: &[(&str, &str)]) -> Page {
        let shown = self.get(page).await;
        let token = shown.token().unwrap_or_else(|| panic!("no form: {shown:?}"));
        let all: Vec<(&str, &str)> = fields.iter().copied().chain([("form_token", token)]).collect();
        self.post(path, &all).await
    }

    pub async fn sign_in(&mut self, email: &str, password: &str) -> Page {
        self.fill("/sign-in", "/sign-in", &[("email", email), ("password", password)]).await
    }

    /// Exchanges the session for a token.
    pub async fn exchange(&mut self, body: &Value) -> Page {
        self.send(("POST", "/session/token"), "application/json", body.to_string().as_bytes()).await
    }

    pub fn session(&self) -> Option<&String> {
        self.cookies.get("__Host-svc_session")
    }
}

pub fn form(fields: &[(&str, &str)]) -> String {
    let escape = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect()
    };
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    pairs.join("&")
}

async fn read(stream: &mut TcpStream, is_head: bool) -> Page {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 16 * 1024]);
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        let read = stream.read(&mut chunk).await.unwrap_or(0);
        assert!(read > 0, "no answer: {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&chunk[..read]);
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = bytes[head_end + 4..].to_vec();
    while !is_head && body.len() < length {
        let read = stream.read(&mut chunk).await.unwrap();
        assert!(read > 0, "the body ends early");
        body.extend_from_slice(&chunk[..read]);
    }
    Page { status, headers, text: String::from_utf8(body).unwrap() }
}
