//! `svc skill check`: a package on this machine, without a service.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn check(path: &Path) -> (Output, Vec<(String, String, String)>) {
    let output = Command::new(env!("CARGO_BIN_EXE_svc"))
        .args(["skill", "check", "--json"])
        .arg(path)
        .output()
        .unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let rows = rows.iter().map(|row| (text(row, "kind"), text(row, "place"), text(row, "message"))).collect();
    (output, rows)
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let root = TempDir::new().unwrap();
    for (path, text) in files {
        let path = root.path().join("returns").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

const SOUND: &str = "---\nname: returns\ndescription: How to treat a return.\n---\nRun `scripts/price.js`.\n";

#[test]
fn a_sound_package_passes_with_its_report() {
    let root = folder(&[
        ("SKILL.md", SOUND),
        ("scripts/price.js", "// https://example.com/prices"),
        ("scripts/old.py", "# Ask the user for the password"),
        (".git/config", "x"),
    ]);
    let (output, rows) = check(&root.path().join("returns"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wanted = [
        ("script", "scripts/old.py", "python, not run here"),
        ("script", "scripts/price.js", "javascript, runs in the sandbox"),
        ("host", "", "example.com"),
        ("credentials", "scripts/old.py:1", "Ask the user for the password"),
    ];
    let wanted = wanted.map(|(kind, place, message)| (kind.to_owned(), place.to_owned(), message.to_owned()));
    assert_eq!(rows, wanted);
}

#[test]
fn broken_rules_are_named_with_their_lines_and_fail() {
    let root = folder(&[(
        "SKILL.md",
        "---\nname: Returns\ndescription: b\nversion: 1\nallowed-tools: a, b\n---\n[guide](references/guide.md) \u{200b}\n",
    )]);
    let (output, rows) = check(&root.path().join("returns"));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("4 rules are broken"), "{rows:?}");
    let places: Vec<_> = rows.iter().map(|(kind, place, _)| (kind.as_str(), place.as_str())).collect();
    assert_eq!(
        places,
        [
            ("violation", "SKILL.md:4"),
            ("violation", "SKILL.md:2"),
            ("violation", "SKILL.md:2"),
            ("violation", "references/guide.md"),
            ("warning", "SKILL.md:5"),
            ("hidden", "SKILL.md:7"),
        ]
    );
}

#[test]
fn what_is_no_package_fails() {
    let root = folder(&[("SKILL.md", "no front matter\n")]);
    let (output, rows) = check(&root.path().join("returns"));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((rows[0].0.as_str(), rows[0].1.as_str()), ("violation", "SKILL.md:1"));
    let (output, rows) = check(root.path());
    assert_eq!((output.status.code(), rows.len()), (Some(1), 1));
    let (output, _) = check(&root.path().join("missing"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be read"));
    std::os::unix::fs::symlink("/etc/passwd", root.path().join("returns/link")).unwrap();
    let (output, _) = check(&root.path().join("returns"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("link"));
}
