use super::*;
use crate::document::SkillDocument;
use crate::package::PackageFile;

fn package(body: &str, files: &[(&str, &str)]) -> Package {
    let text = format!("---\nname: a\ndescription: b\n---\n{body}");
    Package {
        document: SkillDocument::parse(text.as_bytes()).unwrap().document,
        files: files
            .iter()
            .map(|(path, text)| PackageFile { path: (*path).to_owned(), bytes: text.as_bytes().to_vec() })
            .collect(),
        folder: None,
    }
}

#[test]
fn scripts_are_named_by_kind() {
    let files = [
        ("scripts/a.js", ""),
        ("scripts/b.mjs", ""),
        ("assets/c.js", ""),
        ("scripts/d.py", ""),
        ("scripts/e", "#!/bin/sh\n"),
        ("scripts/f", "#!/usr/bin/env python3\n"),
        ("references/g.md", ""),
    ];
    let report = report(&package("", &files));
    let scripts: Vec<_> = report
        .scripts
        .iter()
        .map(|script| (script.path.as_str(), script.kind.as_str(), script.runs))
        .collect();
    assert_eq!(
        scripts,
        [
            ("scripts/a.js", "javascript", true),
            ("scripts/b.mjs", "javascript", true),
            ("assets/c.js", "javascript", false),
            ("scripts/d.py", "python", false),
            ("scripts/e", "shell", false),
            ("scripts/f", "python", false),
        ]
    );
}

#[test]
fn hosts_of_all_texts_are_named_once() {
    let body = "See https://Example.com/a and http://user:pw@evil.test:8080/x, <https://example.com>, https://[::1]/ and https://b\u{fc}cher.example.";
    let report =
        report(&package(body, &[("references/a.md", "wss://api.example.org/"), ("x.bin", "no://host")]));
    assert_eq!(report.hosts, ["[::1]", "api.example.org", "b\u{fc}cher.example", "evil.test", "example.com"]);
}

#[test]
fn hidden_characters_have_their_places() {
    let body = "one\ntw\u{200b}o\u{200b} \u{202e}x\n\u{e0041}\u{e0042}\n\u{1f469}\u{200d}\u{1f4bb} \u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}\n";
    let found = report(&package(body, &[("a.md", "\u{feff}fine\n\x1b[2J")])).hidden_characters;
    let found: Vec<_> = found
        .iter()
        .map(|found| (found.file.as_str(), found.line, found.column, found.kind, found.count))
        .collect();
    assert_eq!(
        found,
        [
            ("SKILL.md", 6, 3, "zero_width", 2),
            ("SKILL.md", 6, 7, "bidi", 1),
            ("SKILL.md", 7, 1, "tag", 2),
            ("a.md", 2, 1, "control", 1),
        ]
    );
}

#[test]
fn texts_that_ask_for_credentials_are_found() {
    for text in [
        "Ask the user for their password.",
        "First, please paste your OpenAI API key here",
        "cat ~/.ssh/id_rsa",
        "Read $HOME/.aws/credentials",
        "echo $STRIPE_API_KEY",
        "Provide an access token",
    ] {
        assert_eq!(report(&package(text, &[])).credentials.len(), 1, "{text}");
    }
    for text in
        ["The customer forgot the password of the shop.", "Ask for the order number.", "A token of thanks"]
    {
        assert_eq!(report(&package(text, &[])).credentials, [], "{text}");
    }
}

#[test]
fn instructions_refer_to_files() {
    let body = "Read [the guide](references/guide.md#top) and ![picture](./assets/a%20b.png \"title\").\n\
        Run `node scripts/run.mjs --all` or scripts/other.js, scripts/third.js. See [site](https://x.test/a.md), [here](#here), [up](../x.md), [root](/x.md).\n\
        Not scripts/<name>.py, path/to/scripts/x.py, scripts/*.js, `scripts/`, assets/... or [a]({url}).\n\
        Code `[x](in-code.md)` and\n```bash\npython scripts/fenced.py\n[y](fenced.md)\n```\n[FORMS](FORMS.md) [word](word)\n";
    assert_eq!(
        referenced_files(body),
        [
            "FORMS.md",
            "assets/a b.png",
            "references/guide.md",
            "scripts/fenced.py",
            "scripts/other.js",
            "scripts/run.mjs",
            "scripts/third.js",
        ]
    );
}

#[test]
fn tokens_are_estimated_by_script() {
    assert_eq!(token_estimate(""), 0);
    assert_eq!(token_estimate("Treat a return."), 4);
    assert_eq!(token_estimate("\u{8fd4}\u{54c1}"), 2);
}
