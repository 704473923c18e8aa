//! An assertion that a text does not contain a secret.

/// The minimum length of the searched text. Shorter texts can occur by chance in ids, keys and encrypted values.
const SHORTEST: usize = 12;

/// Asserts that a text does not contain another one, such as a secret.
///
/// # Panics
/// If it contains the text, or if `hidden` is so short that random text may contain it.
#[track_caller]
pub fn assert_absent(text: &str, hidden: &str) {
    let length = hidden.chars().count();
    assert!(
        length >= SHORTEST,
        "{hidden:?} has fewer than {SHORTEST} characters: random text may contain it"
    );
    assert!(!text.contains(hidden), "{hidden:?} is in: {text}");
}
