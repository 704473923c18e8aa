//! Validation of BCP 47 language tags.

/// Returns whether a text is a language with an optional script and region, such as `es`, `pt-BR` or `zh-Hant-TW`.
pub(crate) fn is_locale(text: &str) -> bool {
    let mut parts = text.split('-').peekable();
    let is_lower = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase());
    let language = parts.next().is_some_and(|part| (2..=3).contains(&part.len()) && is_lower(part));
    parts.next_if(|part| {
        part.len() == 4
            && part.starts_with(|letter: char| letter.is_ascii_uppercase())
            && part.get(1..).is_some_and(is_lower)
    });
    parts.next_if(|part| {
        (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_uppercase()))
            || (part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit()))
    });
    language && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::is_locale;

    #[test]
    fn a_locale_is_a_language_with_script_and_region() {
        for text in ["es", "fil", "pt-BR", "es-419", "zh-Hant", "zh-Hant-TW"] {
            assert!(is_locale(text), "{text}");
        }
        for text in ["", "e", "ES", "english", "es-es", "es_ES", "es-", "-ES", "zh-TW-Hant", "es-ES-x", "é"]
        {
            assert!(!is_locale(text), "{text}");
        }
    }
}
