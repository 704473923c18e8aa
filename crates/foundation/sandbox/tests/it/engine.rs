//! The engine's own tests, which come in the source of the crate `rquickjs-sys`: as programs of the sandbox. They are modules in strict
//! mode here, without `eval`, and without what only the engine's shell has, so some cannot pass; those are named.

use crate::support::sandbox;
use sandbox::{Call, Failure, Key, NoHost, Program};
use std::path::PathBuf;
use std::time::Duration;

/// The folder of the tests, if the source of the crate is on this machine.
fn folder() -> Option<PathBuf> {
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = std::fs::read_dir(cargo.join("registry/src")).ok()?;
    let crates =
        registries.flatten().filter_map(|one| std::fs::read_dir(one.path()).ok()).flatten().flatten();
    let mut found: Vec<_> = crates
        .filter(|one| one.file_name().to_string_lossy().starts_with("rquickjs-sys-0.14"))
        .map(|one| one.path().join("quickjs/tests"))
        .filter(|tests| tests.is_dir())
        .collect();
    found.sort();
    found.pop()
}

/// The source without the import of the assertions, which stand before it instead. `None` for a test that imports more.
fn program(source: &str, asserts: &str) -> Option<String> {
    let own = |line: &&str| !(line.starts_with("import") && line.contains("assert.js"));
    let source: Vec<&str> = source.lines().filter(own).collect();
    if source
        .iter()
        .any(|line| line.starts_with("import ") || line.contains("import(") || line.starts_with("export "))
    {
        return None;
    }
    let asserts =
        ["assert", "assertThrows", "assertArrayEquals"].iter().fold(asserts.to_owned(), |source, name| {
            // As properties, because some tests have functions of these names themselves.
            source.replace(&format!("export function {name}("), &format!(";globalThis.{name} = function ("))
        });
    let print = ";const print = () => undefined;";
    // On one line, so that the lines of the test keep their numbers but for one.
    Some(format!("{}{print}\n{}\nexport default () => true", one_line(&asserts), source.join("\n")))
}

fn one_line(source: &str) -> String {
    source.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join(" ")
}

/// Tests that cannot pass here, and what they need.
const KNOWN: &[(&str, &str)] = &[
    ("bug1352.js", "FinalizationRegistry"),
    ("bug1354.js", "to throw a SyntaxError, which it does"),
    ("bug1498.js", "eval"),
    ("bug1564.js", "gc"),
    ("bug1661.js", "gc"),
    ("bug648.js", "FinalizationRegistry"),
    ("bug652.js", "WeakRef"),
    ("bug775.js", "to go on after the stack overflows, which ends a process here"),
    ("bug776.js", "to go on after the stack overflows, which ends a process here"),
    ("bug858.js", "the name of its own file in stacks"),
    ("fixture_throwing_module.js", "to be imported: it throws"),
    ("function_source.js", "eval"),
    ("global-reference-column.js", "eval"),
    ("parse-error-column.js", "eval"),
    ("test_base64.js", "DOMException"),
    ("test_closure.js", "sloppy mode"),
    ("test_domexception.js", "DOMException"),
    ("test_for_of_line_numbers.js", "the name of its own file in stacks"),
    ("test_language.js", "sloppy mode"),
    ("test_loop.js", "sloppy mode"),
];

#[tokio::test]
async fn the_engines_own_tests_pass_in_the_sandbox() {
    let Some(folder) = folder() else { return };
    let sandbox = sandbox();
    let asserts = std::fs::read_to_string(folder.join("assert.js")).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().map(|one| one.path()).collect();
    names.retain(|path| path.extension().is_some_and(|kind| kind == "js"));
    names.sort();
    let (mut passed, mut left, mut failed) = (0, 0, Vec::new());
    for path in names {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        let Some(source) = program(&source, &asserts) else {
            left += 1;
            continue;
        };
        let key = Key { workspace: "engine".to_owned(), version: name.clone() };
        let call = Call { strict: true, deadline: Some(Duration::from_secs(10)), ..Call::new("null") };
        match sandbox.call(&key, &Program::new(&source), &call, &NoHost).await {
            Ok(outcome) => match outcome.result {
                Ok(_) => passed += 1,
                Err(Failure::Crashed | Failure::Protocol) => panic!("{name} crashes"),
                Err(failure) => failed.push((name, failure.to_string())),
            },
            Err(error) => failed.push((name, error.to_string())),
        }
    }
    let unknown: Vec<_> =
        failed.iter().filter(|(name, _)| !KNOWN.iter().any(|(known, _)| known == name)).collect();
    assert!(unknown.is_empty(), "{passed} passed, {left} import more; {unknown:#?}");
    assert!(passed >= 30, "{passed}");
    assert_eq!(sandbox.stats().zygotes, 1);
}
