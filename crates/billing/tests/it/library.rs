//! docs/library.md shows the example as it is.

#[test]
fn the_document_shows_the_example() {
    let example = include_str!("../../examples/library.rs");
    let document = include_str!("../../../../docs/library.md");
    assert!(
        document.contains(&format!("```rust\n{example}```\n")),
        "docs/library.md: copy examples/library.rs into it"
    );
}
