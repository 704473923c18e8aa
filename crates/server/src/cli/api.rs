//! `svc api`: one request to the API, and its response.

use super::client::{Target, failure};
use super::output;
use crate::values::{header, method, query_pair};
use anyhow::{Context, bail};
use clap::Args;
use egress::{HeaderMap, Limits, Method, Streaming};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Read as _;
use std::time::Duration;

/// A stream of events may last as long as its reader.
const LONGEST: Duration = Duration::from_hours(24);

#[derive(Args)]
pub(super) struct Api {
    /// `GET`, `POST`, `PATCH`, `PUT` or `DELETE`.
    #[arg(value_parser = method)]
    method: Method,
    /// The path, with or without `/api/v1`, such as `/runs`.
    path: String,
    /// The body: JSON text, `@FILE`, or `-` for standard input.
    #[arg(short, long, value_name = "BODY", allow_hyphen_values = true)]
    data: Option<String>,
    /// A query parameter. Can be given several times.
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = query_pair)]
    query: Vec<(String, String)>,
    /// A header. Can be given several times.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// Print the status and the headers too.
    #[arg(short, long)]
    include: bool,
    #[command(flatten)]
    target: Target,
}

/// Sends the request and prints the response while it arrives. JSON on a terminal is indented.
pub(super) async fn call(arguments: Api) -> anyhow::Result<()> {
    let client = arguments.target.client()?;
    let limits = Limits { total: LONGEST, max_response_bytes: usize::MAX, ..Limits::default() };
    let mut request = client.request(arguments.method, &arguments.path, &arguments.query)?.limits(limits);
    if let Some(data) = &arguments.data {
        request = request.body(body(data)?);
        if !arguments.header.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            request = request.header("content-type", "application/json");
        }
    }
    for (name, value) in arguments.header {
        request = request.header(name, value);
    }
    let response = client.connector.stream(request).await;
    let response = response.with_context(|| format!("{} does not answer", client.base()))?;
    let head = if arguments.include { head(&response) } else { String::new() };
    if response.status >= 400 {
        let response = response.collect().await.context("the response broke off")?;
        let body = indented(&response.body).unwrap_or_else(|| String::from_utf8_lossy(&response.body).into());
        output::aside(format!("{head}{body}").trim_end());
        bail!(failure(&response));
    }
    output::text(&head)?;
    print(response).await
}

async fn print(mut response: Streaming) -> anyhow::Result<()> {
    let broken = "the response broke off";
    if output::is_terminal() && is_json(&response.headers) {
        let body = response.collect().await.context(broken)?.body;
        match indented(&body) {
            Some(text) => output::text(&text)?,
            None => output::bytes(&body)?,
        }
        return Ok(());
    }
    while let Some(chunk) = response.chunk().await.context(broken)? {
        output::bytes(&chunk)?;
    }
    Ok(())
}

fn body(data: &str) -> anyhow::Result<Vec<u8>> {
    match (data, data.strip_prefix('@')) {
        ("-" | "@-", _) => {
            let mut body = Vec::new();
            std::io::stdin().read_to_end(&mut body).context("reading standard input")?;
            Ok(body)
        }
        (_, Some(file)) => std::fs::read(file).with_context(|| format!("reading {file}")),
        (text, None) => Ok(text.as_bytes().to_vec()),
    }
}

/// The status and the headers, and the empty line after them.
fn head(response: &Streaming) -> String {
    let mut head = format!("HTTP {}\n", response.status);
    for (name, value) in &response.headers {
        // Writing to a text cannot fail.
        let _ = writeln!(head, "{name}: {}", String::from_utf8_lossy(value.as_bytes()));
    }
    head.push('\n');
    head
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn indented(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<Value>(body).ok().map(|value| output::pretty(&value))
}
