//! Strict rules against the reference validator.

use serde::Deserialize;
use skill_packages::check_strict;

/// A front matter that `scripts/generate-front-matters` made, with the verdict of `skills-ref` 0.1.1 from PyPI. Where the
/// port to npm says otherwise, the file has that as `npm`: mostly it takes a missing value for the text `null`, and lets tabs,
/// brackets and anchors pass. The one from PyPI is the reference.
#[derive(Deserialize)]
struct Row {
    text: String,
    folder: String,
    valid: bool,
}

/// Differences that stay, with the reason.
const ACCEPTED: [(&str, &str); 1] = [(
    "'a\n\tb'",
    "A line within quotes begins with a tab: YAML 1.2 forbids it, the reference reads it as a space.",
)];

#[test]
fn strict_rules_agree_with_the_reference_validator() {
    let rows: Vec<Row> =
        include_str!("front-matters.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 1000);
    let mut differences = Vec::new();
    for row in &rows {
        let violations = check_strict(row.text.as_bytes(), Some(&row.folder));
        let is_accepted = ACCEPTED.iter().any(|(part, _)| row.text.contains(part));
        if violations.is_empty() != row.valid && !is_accepted {
            differences.push(format!("{} {:?} {violations:?}", row.valid, row.text));
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
