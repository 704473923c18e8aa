//! Searching for what must not be there.

/// A text of fewer characters than this may stand by chance in ids, keys and sealed values.
const SHORTEST: usize = 12;

/// Checks that a text does not contain another one, such as a secret.
///
/// # Panics
/// If it does, or if `hidden` is so short that random text may contain it.
#[track_caller]
pub fn assert_absent(text: &str, hidden: &str) {
    let length = hidden.chars().count();
    assert!(
        length >= SHORTEST,
        "{hidden:?} has fewer than {SHORTEST} characters: random text may contain it"
    );
    assert!(!text.contains(hidden), "{hidden:?} is in: {text}");
}
