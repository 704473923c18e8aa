//! The two eras of the protocol on one address, told apart for each request.
//!
//! Revisions up to 2025-11-25 begin with `initialize`. Since 2026-07-28 every request names its revision and the
//! client's capabilities in `_meta`, and repeats revision, method and name in headers, so that proxies can route it.

use crate::message::{HEADER_MISMATCH, INVALID_PARAMS, Params, Request, RpcError, UNSUPPORTED_VERSION};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The revisions that begin with `initialize`, the newest last.
pub(crate) const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", NEWEST_LEGACY];
/// The revision that `initialize` is answered with if the client asks for one that is not known or has no `initialize`.
pub(crate) const NEWEST_LEGACY: &str = "2025-11-25";
/// The revision without sessions.
pub(crate) const MODERN: &str = "2026-07-28";
/// The extension of tasks.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// The era of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Up to 2025-11-25.
    Legacy,
    /// Since 2026-07-28.
    Modern {
        /// Whether the client understands tasks.
        tasks: bool,
    },
}

/// Returns all values of a header by its name in lower case; `None` for one that is not text.
pub(crate) type Headers<'a> = &'a dyn Fn(&str) -> Vec<Option<&'a str>>;

impl Era {
    pub(crate) fn is_modern(self) -> bool {
        matches!(self, Self::Modern { .. })
    }

    /// Returns whether the client understands tasks.
    pub(crate) fn has_tasks(self) -> bool {
        self == Self::Modern { tasks: true }
    }

    /// Returns the era of a request, after checking its headers and `_meta`.
    ///
    /// # Errors
    /// 400 with −32602, −32020 or −32022.
    pub(crate) fn of(request: &Request, headers: Headers<'_>) -> Result<Self, RpcError> {
        let meta = request.params.get("_meta");
        let in_body = meta.and_then(|meta| meta.get(VERSION_KEY));
        let in_header = single(headers, VERSION_HEADER)?;
        let is_modern = in_body.is_some()
            || request.method == "server/discover"
            || (request.method != "initialize" && in_header == Some(MODERN));
        if is_modern {
            return Self::modern(request, in_body, in_header, headers);
        }
        // `initialize` negotiates the revision; the header comes only afterwards.
        if request.method != "initialize"
            && let Some(version) = in_header.filter(|version| !LEGACY.contains(version))
        {
            return Err(unsupported(version));
        }
        if let Some(method) = single(headers, METHOD_HEADER)? {
            expect_same("Mcp-Method", method, &request.method)?;
        }
        Ok(Self::Legacy)
    }

    fn modern(
        request: &Request,
        in_body: Option<&Value>,
        in_header: Option<&str>,
        headers: Headers<'_>,
    ) -> Result<Self, RpcError> {
        let missing = |what| RpcError::new(400, INVALID_PARAMS, format!("`params._meta` needs `{what}`."));
        let Some(Value::String(version)) = in_body else { return Err(missing(VERSION_KEY)) };
        let capabilities = request.params.get("_meta").and_then(|meta| meta.get(CAPABILITIES_KEY));
        let Some(Value::Object(capabilities)) = capabilities else { return Err(missing(CAPABILITIES_KEY)) };
        expect_same("MCP-Protocol-Version", expect(in_header, "MCP-Protocol-Version")?, version)?;
        if version != MODERN {
            return Err(unsupported(version));
        }
        expect_same("Mcp-Method", expect(single(headers, METHOD_HEADER)?, "Mcp-Method")?, &request.method)?;
        if let Some(name) = named(&request.method, &request.params) {
            let sent = expect(single(headers, NAME_HEADER)?, "Mcp-Name")?;
            let sent = decoded(sent).ok_or_else(|| mismatch("`Mcp-Name` is not valid base64."))?;
            expect_same("Mcp-Name", &sent, name)?;
        }
        let extensions = capabilities.get("extensions");
        Ok(Self::Modern { tasks: extensions.is_some_and(|extensions| extensions.get(TASKS).is_some()) })
    }
}

/// Checks the header of a message that wants no response: an unknown revision is refused there too.
///
/// # Errors
/// 400 with −32022.
pub(crate) fn check_other(headers: Headers<'_>) -> Result<(), RpcError> {
    match single(headers, VERSION_HEADER)? {
        Some(version) if version != MODERN && !LEGACY.contains(&version) => Err(unsupported(version)),
        _ => Ok(()),
    }
}

/// Returns the revision that `initialize` is answered with.
pub(crate) fn negotiated(params: &Params) -> &'static str {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    LEGACY.into_iter().find(|known| Some(*known) == wanted).unwrap_or(NEWEST_LEGACY)
}

/// Returns the value that `Mcp-Name` repeats.
fn named<'a>(method: &str, params: &'a Params) -> Option<&'a str> {
    let parameter = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params.get(parameter)?.as_str()
}

fn single<'a>(headers: Headers<'a>, name: &str) -> Result<Option<&'a str>, RpcError> {
    match headers(name).as_slice() {
        [] => Ok(None),
        [Some(value)] => Ok(Some(value.trim())),
        [None] => Err(mismatch(format!("`{name}` is not text."))),
        _ => Err(mismatch(format!("`{name}` must be sent once."))),
    }
}

fn expect<'a>(sent: Option<&'a str>, name: &str) -> Result<&'a str, RpcError> {
    sent.ok_or_else(|| mismatch(format!("The header `{name}` is missing.")))
}

fn expect_same(name: &str, header: &str, body: &str) -> Result<(), RpcError> {
    if header == body {
        return Ok(());
    }
    Err(mismatch(format!("The header `{name}` differs from the body.")))
}

fn mismatch(message: impl Into<String>) -> RpcError {
    RpcError::new(400, HEADER_MISMATCH, message)
}

fn unsupported(version: &str) -> RpcError {
    let mut error = RpcError::new(400, UNSUPPORTED_VERSION, "The protocol version is not supported.");
    error.data = Some(json!({ "supported": supported(), "requested": version }));
    error
}

/// Returns all revisions, the newest first.
pub(crate) fn supported() -> Vec<&'static str> {
    [MODERN].into_iter().chain(LEGACY.into_iter().rev()).collect()
}

/// Decodes `=?base64?…?=`, in which clients send names that a header cannot have.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|inner| inner.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}
