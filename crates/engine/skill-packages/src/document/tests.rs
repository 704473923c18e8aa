use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Parsed {
    SkillDocument::parse(text.as_bytes()).unwrap()
}

fn codes(parsed: &Parsed) -> Vec<&'static str> {
    parsed.warnings.iter().map(|warning| warning.code).collect()
}

fn mistake(text: &str) -> Mistake {
    SkillDocument::parse(text.as_bytes()).unwrap_err()
}

fn text(document: &SkillDocument) -> &str {
    std::str::from_utf8(document.bytes()).unwrap()
}

#[test]
fn a_plain_document_has_its_fields_and_no_warning() {
    let parsed = parse(
        "---\nname: returns\ndescription: >\n  How to treat\n  a return.\nlicense: MIT\ncompatibility: any\nmetadata:\n  author: Ada\n  version: \"1.0\"\nallowed-tools: Bash(git add:*) lookup\n---\n\n# Returns\n",
    );
    assert_eq!(codes(&parsed), [] as [&str; 0]);
    let document = parsed.document;
    assert_eq!(document.name(), Some("returns"));
    assert_eq!(document.description(), Some("How to treat a return."));
    assert_eq!(document.license(), Some("MIT"));
    assert_eq!(document.compatibility(), Some("any"));
    assert_eq!(document.metadata().get("version").map(String::as_str), Some("1.0"));
    assert_eq!(
        document.allowed_tools(),
        &AllowedTools::Listed(vec!["Bash(git add:*)".into(), "lookup".into()])
    );
    assert_eq!(document.body(), "\n# Returns\n");
}

#[test]
fn odd_documents_are_read_with_warnings() {
    for (front, code) in [
        ("name: a\ndescription: Use when: late\n", "unquoted_value"),
        ("name: a\ndescription: Use when: late\n  or: lost\n", "unquoted_value"),
        ("name: a\ndescription: b\nargument-hint: [issue] [priority]\n", "unquoted_value"),
        ("name: a\ndescription: b\nmetadata:\n  x: y: z\n", "unquoted_value"),
        ("name: a\ndescription: @b\n", "unquoted_value"),
        ("name: a\ndescription: b\nversion: 1\n", "unknown_field"),
        ("name: a\ndescription: b\nallowed-tools: x, y\n", "allowed_tools_commas"),
        ("name: a\ndescription: b\nallowed-tools: [x, y]\n", "allowed_tools_list"),
        ("name: a\ndescription: b\nallowed-tools:\n- x\n- y\n", "allowed_tools_list"),
        ("name: a\ndescription: b\nallowed-tools:\n", "allowed_tools_empty"),
        ("name: A\ndescription: b\n", "name_format"),
        ("name: a--b\ndescription: b\n", "name_format"),
        ("name: \u{430}\ndescription: b\n", "name_not_ascii"),
        ("name: a\ndescription:\n", "description_missing"),
        ("name: a\ndescription: [b]\n", "field_type"),
        ("name: a\ndescription: b\nmetadata: c\n", "field_type"),
        ("name: a\ndescription: !!str b\n", "yaml_tag"),
        ("description: b\n", "name_missing"),
    ] {
        let parsed = parse(&format!("---\n{front}---\nbody"));
        assert!(codes(&parsed).contains(&code), "{front}: {:?}", parsed.warnings);
    }
    let parsed = parse(&format!("---\nname: a\ndescription: {}\n---\n", "b".repeat(1025)));
    assert_eq!(codes(&parsed), ["description_too_long"]);
    let parsed = parse("\u{feff}---\r\nname: a\r\ndescription: Use when: late\r\n---\r\nbody\r\n");
    assert_eq!(codes(&parsed), ["byte_order_mark", "crlf", "unquoted_value"]);
    assert_eq!(parsed.document.description(), Some("Use when: late"));
    assert_eq!(parsed.document.body(), "body\r\n");
    assert_eq!(parsed.warnings[2].line, Some(3));
}

#[test]
fn a_limit_of_tools_that_cannot_be_read_closes() {
    for value in [
        "allowed-tools: {a: b}",
        "allowed-tools: Bash(git",
        "allowed-tools:\n- [a]",
        "allowed-tools:\n- a b",
        "allowed_tools: a",
        "allowedTools: a",
    ] {
        let parsed = parse(&format!("---\nname: a\ndescription: b\n{value}\n---\n"));
        assert_eq!(parsed.document.allowed_tools(), &AllowedTools::Unreadable, "{value}");
    }
    let parsed = parse("---\nname: a\ndescription: b\nallowed-tools: \"\"\n---\n");
    assert_eq!(parsed.document.allowed_tools(), &AllowedTools::Listed(Vec::new()));
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line() {
    for (text, line) in [
        ("", 1),
        ("# Title\n", 1),
        ("---\nname: a\n", 1),
        ("---\n---\n", 2),
        ("---\n\n# only a comment\n---\n", 2),
        ("---\n- a\n- b\n---\n", 2),
        ("---\njust text\n---\n", 2),
        ("---\nname: a\nname: b\n---\n", 3),
        ("---\nname: a\ndescription: &x b\n---\n", 3),
        ("---\nname: a\ndescription: *x\n---\n", 3),
        ("---\nname: a\n\tdescription: b\n---\n", 2),
        ("---\n\tname: a\n---\n", 2),
        ("---\nname: \"a\ndescription: b\n---\n", 2),
        ("---\nname: a\n...\nname: b\n---\n", 4),
    ] {
        assert_eq!(mistake(text).line, line, "{text:?}: {}", mistake(text).message);
    }
    assert_eq!(SkillDocument::parse(b"---\nname: a\n\xff\n---\n").unwrap_err().line, 3);
    let huge = format!("---\nname: {}\n---\n", "a".repeat(1024 * 1024));
    assert!(mistake(&huge).message.contains("64 KB"));
    let deep = format!("---\nname: {}\n---\n", "[".repeat(60_000));
    assert!(codes(&parse(&deep)).contains(&"name_too_long"));
    let deep = format!("---\n{}\n---\n", "[".repeat(60_000));
    mistake(&deep);
    let deep: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(mistake(&format!("---\n{deep}---\n")).message.contains("deeply"));
}

#[test]
fn a_billion_laughs_is_refused_at_its_first_anchor() {
    let mut front = String::from("a: &a [x, x]\n");
    for (at, name) in ('b'..='z').enumerate() {
        let before = char::from(b'a' + u8::try_from(at).unwrap());
        front.push_str(&format!("{name}: &{name} [*{before}, *{before}]\n"));
    }
    assert_eq!(mistake(&format!("---\n{front}---\n")).line, 2);
}

const ODD: &str = "\u{feff}---\r\n# about this skill\r\nversion: 1.0   # kept\r\nname:   'returns' # the name\r\n\r\ndescription: |\r\n  First line.\r\n  Second line.\r\n\r\n# before the metadata\r\nmetadata:\r\n    author: \"Ada\"\r\n    # inside\r\n    team:  ops\r\nx-list: [a,   b]\r\n---\r\n\r\nBody\r\n";

#[test]
fn a_change_rewrites_only_the_lines_that_it_names() {
    let document = parse(ODD).document;
    assert_eq!(text(&document), ODD);
    let changed =
        document.with(&DocumentChange { name: Some("refunds".into()), ..DocumentChange::default() }).unwrap();
    assert_eq!(text(&changed), ODD.replace("name:   'returns' # the name", "name: refunds # the name"));

    let changed = document
        .with(&DocumentChange { description: Some("Use when: late".into()), ..DocumentChange::default() })
        .unwrap();
    let wanted = ODD.replace(
        "description: |\r\n  First line.\r\n  Second line.\r\n",
        "description: \"Use when: late\"\r\n",
    );
    assert_eq!(text(&changed), wanted);

    let metadata =
        [("team".to_owned(), Some("care".to_owned())), ("since".to_owned(), Some("2026".to_owned()))];
    let changed =
        document.with(&DocumentChange { metadata: metadata.into(), ..DocumentChange::default() }).unwrap();
    let wanted = ODD.replace("    team:  ops\r\n", "    team: care\r\n    since: \"2026\"\r\n");
    assert_eq!(text(&changed), wanted);

    let change = DocumentChange {
        license: Some(Some("MIT".into())),
        allowed_tools: Some(Some(vec!["lookup".into(), "Bash(git add:*)".into()])),
        body: Some("New body".into()),
        ..DocumentChange::default()
    };
    let changed = document.with(&change).unwrap();
    let wanted = ODD
        .replace(
            "  Second line.\r\n",
            "  Second line.\r\nlicense: MIT\r\nallowed-tools: \"lookup Bash(git add:*)\"\r\n",
        )
        .replace("\r\nBody\r\n", "New body");
    assert_eq!(text(&changed), wanted);
    let change = DocumentChange {
        license: Some(None),
        allowed_tools: Some(None),
        body: Some("\r\nBody\r\n".into()),
        ..DocumentChange::default()
    };
    assert_eq!(text(&changed.with(&change).unwrap()), ODD);

    let metadata = [("author".to_owned(), None), ("team".to_owned(), None)];
    let changed =
        document.with(&DocumentChange { metadata: metadata.into(), ..DocumentChange::default() }).unwrap();
    assert!(changed.metadata().is_empty());
    assert!(!text(&changed).contains("author") && text(&changed).contains("# before the metadata"));
}

#[test]
fn a_change_keeps_an_unquoted_value_that_it_does_not_name() {
    let document = parse("---\nname: a\ndescription: Use when: late\n  or lost # 1\nx: y\n---\n").document;
    let changed =
        document.with(&DocumentChange { name: Some("b".into()), ..DocumentChange::default() }).unwrap();
    assert_eq!(text(&changed), "---\nname: b\ndescription: Use when: late\n  or lost # 1\nx: y\n---\n");
}

#[test]
fn a_form_that_cannot_be_changed_is_refused() {
    let document = parse("---\n{name: a, description: b}\n---\n").document;
    assert_eq!(document.name(), Some("a"));
    document.with(&DocumentChange { name: Some("b".into()), ..DocumentChange::default() }).unwrap_err();
    let document = parse("---\nname: a\ndescription: b\n---\n").document;
    let tools = Some(Some(vec!["two words".into()]));
    document.with(&DocumentChange { allowed_tools: tools, ..DocumentChange::default() }).unwrap_err();
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[ -~]{0,40}", "[-:#'\"\\[\\]{}|>&*!%@`a \n]{0,12}"]
}

fn change() -> impl Strategy<Value = DocumentChange> {
    let metadata = proptest::collection::btree_map("[a-z: #\"'-]{1,6}", proptest::option::of(value()), 0..4);
    let tools =
        proptest::option::of(proptest::option::of(proptest::collection::btree_set("[A-Za-z_]{1,8}", 0..4)));
    (
        proptest::option::of("[a-z0-9-]{1,12}"),
        proptest::option::of(value()),
        proptest::option::of(proptest::option::of(value())),
        metadata,
        tools,
        proptest::option::of(value()),
    )
        .prop_map(|(name, description, license, metadata, tools, body)| DocumentChange {
            name,
            description,
            license,
            compatibility: None,
            metadata,
            allowed_tools: tools.map(|tools| tools.map(|tools| tools.into_iter().collect())),
            body,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// `with` refuses a document that does not read back as wanted, so that it answers is the property.
    #[test]
    fn every_change_is_read_back(changes in proptest::collection::vec(change(), 1..4)) {
        for start in [ODD, "---\nname: a\ndescription: b\n---\n", "---\nmetadata: {a: b, c: 'd'}\nname: a\ndescription: >-\n  b\n\n  c\n---"] {
            let mut document = parse(start).document;
            for change in &changes {
                document = document.with(change).unwrap();
            }
            let again = SkillDocument::parse(document.bytes()).unwrap().document;
            prop_assert_eq!(&again, &document);
        }
    }

    #[test]
    fn a_new_document_is_strictly_valid(name in "[a-z]{1,10}", description in "[ -~]{1,60}", value in value()) {
        prop_assume!(!description.trim().is_empty());
        let fields = Fields {
            name: name.clone(),
            description,
            metadata: [("key".to_owned(), value)].into(),
            ..Fields::default()
        };
        let document = SkillDocument::new(&fields, "Do it.").unwrap();
        prop_assert_eq!(crate::check_strict(document.bytes(), Some(&name)), []);
        prop_assert_eq!(document.body(), "Do it.");
        prop_assert_eq!(document.description(), Some(fields.description.trim()));
    }

    #[test]
    fn no_text_panics(text in "(---\n)?([ -~\n\t]|\r|é){0,80}(\n---\n)?") {
        let _ = SkillDocument::parse(text.as_bytes());
        crate::check_strict(text.as_bytes(), None);
    }
}
