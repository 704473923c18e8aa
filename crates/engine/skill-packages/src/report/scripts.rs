//! The scripts of a package.

/// A script of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The path.
    pub path: String,
    /// The language.
    pub kind: ScriptKind,
    /// Whether the sandbox can run it: JavaScript in `scripts/`.
    pub runs: bool,
}

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptKind {
    /// JavaScript.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// Python.
    Python,
    /// A shell.
    Shell,
    /// PowerShell or a batch file.
    Windows,
    /// Another language.
    Other,
}

impl ScriptKind {
    /// The name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::Python => "python",
            Self::Shell => "shell",
            Self::Windows => "windows",
            Self::Other => "other",
        }
    }
}

/// The script that a file is, by its ending, its first line or its folder.
pub(super) fn script(path: &str, bytes: &[u8]) -> Option<Script> {
    let kind = kind(path, bytes)?;
    let runs = kind == ScriptKind::JavaScript && path.starts_with("scripts/");
    Some(Script { path: path.to_owned(), kind, runs })
}

fn kind(path: &str, bytes: &[u8]) -> Option<ScriptKind> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref().unwrap_or_default() {
        "js" | "mjs" => return Some(ScriptKind::JavaScript),
        "ts" | "mts" | "tsx" => return Some(ScriptKind::TypeScript),
        "py" => return Some(ScriptKind::Python),
        "sh" | "bash" | "zsh" => return Some(ScriptKind::Shell),
        "ps1" | "bat" | "cmd" | "vbs" => return Some(ScriptKind::Windows),
        "cjs" | "rb" | "pl" | "php" | "lua" | "go" | "rs" | "exe" | "dll" | "so" | "jar" | "wasm" => {
            return Some(ScriptKind::Other);
        }
        _ => {}
    }
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first.get(..80).unwrap_or(first)).into_owned();
    if first.starts_with("#!") {
        return Some(match first {
            first if first.contains("python") => ScriptKind::Python,
            first if first.contains("sh") => ScriptKind::Shell,
            _ => ScriptKind::Other,
        });
    }
    let is_program = bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"MZ");
    is_program.then_some(ScriptKind::Other)
}
