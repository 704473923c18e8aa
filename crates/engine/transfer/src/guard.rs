//! Protection of CSV against formula injection.

/// Prepends an apostrophe to a text that a spreadsheet would execute as a formula. Spreadsheets hide the apostrophe.
/// Texts that already look guarded get one too, so that [`unguarded`] restores every text.
pub fn guarded(text: &str) -> std::borrow::Cow<'_, str> {
    if looks_like_formula(text) && !is_number(text) { format!("'{text}").into() } else { text.into() }
}

/// Reverts [`guarded`].
pub(crate) fn unguarded(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| looks_like_formula(rest)).unwrap_or(text)
}

fn looks_like_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// Returns whether a text with a sign is only a telephone number or a number.
fn is_number(text: &str) -> bool {
    let is_grouping = |letter: char| matches!(letter, ' ' | '.' | '-' | '/' | '(' | ')');
    let is_digit = |letter: char| letter.is_ascii_digit();
    let of_phone = |digits: &str| digits.chars().all(|letter| is_digit(letter) || is_grouping(letter));
    let of_number = |digits: &str| {
        digits.split('.').count() <= 2 && digits.chars().all(|letter| is_digit(letter) || letter == '.')
    };
    let is_right =
        text.strip_prefix('+').is_some_and(of_phone) || text.strip_prefix('-').is_some_and(of_number);
    is_right && text.contains(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_guarded_and_everything_reads_back() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+49 30", "+49 30"),
            ("+34 (0) 690-711/316", "+34 (0) 690-711/316"),
            ("'+49 30", "''+49 30"),
            ("-5", "-5"),
            ("-5.25", "-5.25"),
            ("-5-2", "'-5-2"),
            ("+", "'+"),
            ("+1+cmd", "'+1+cmd"),
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
        assert_eq!(unguarded("'+49 30"), "+49 30", "exports of earlier versions have it so");
    }
}
