//! Any bytes as SKILL.md: nothing panics, and a change is read back and leaves the other fields.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skill_packages::{DocumentChange, SkillDocument, check_strict, referenced_files};

fuzz_target!(|bytes: &[u8]| {
    check_strict(bytes, Some("folder"));
    let Ok(parsed) = SkillDocument::parse(bytes) else { return };
    let document = parsed.document;
    assert_eq!(document.bytes(), bytes);
    referenced_files(document.body());
    let change = DocumentChange {
        name: Some("other".to_owned()),
        description: Some("Use: when # late".to_owned()),
        metadata: [("key".to_owned(), Some("value".to_owned()))].into(),
        ..DocumentChange::default()
    };
    let Ok(changed) = document.with(&change) else { return };
    assert_eq!(changed.description(), change.description.as_deref());
    assert_eq!(changed.allowed_tools(), document.allowed_tools());
    assert_eq!(changed.license(), document.license());
    assert_eq!(changed.body(), document.body());
    let again = changed.with(&change).unwrap();
    assert_eq!(again.bytes(), changed.bytes());
});
