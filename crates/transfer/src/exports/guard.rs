//! Text that a spreadsheet would take for a formula, made harmless and read back.

/// Text as it goes into CSV: what a spreadsheet would run gets an apostrophe before it, which it hides. So does what
/// looks like that already, so that [`unguarded`] gives every text back.
pub fn guarded(text: &str) -> std::borrow::Cow<'_, str> {
    if needs_guard(text) { format!("'{text}").into() } else { text.into() }
}

/// Text as it was before [`guarded`].
pub(crate) fn unguarded(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| needs_guard(rest)).unwrap_or(text)
}

fn needs_guard(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_guarded_and_everything_reads_back() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+49 30", "'+49 30"),
            ("-5", "'-5"),
            ("@x", "'@x"),
            ("\t=1", "'\t=1"),
            ("\r", "'\r"),
            ("'=1", "''=1"),
            ("a=1", "a=1"),
            ("'tis", "'tis"),
            ("'", "'"),
            ("", ""),
        ] {
            assert_eq!(guarded(text), expected);
            assert_eq!(unguarded(&guarded(text)), text);
        }
        assert_eq!(unguarded("'tis"), "'tis");
    }
}
