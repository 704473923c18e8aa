//! Range and conditional requests (RFC 9110, 13 and 14).

use std::ops::Range;

/// The requested part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it. There was no range, or one that servers may ignore (several ranges, other units).
    Whole,
    /// These bytes.
    Of(Range<u64>),
    /// A range outside the file.
    Outside,
}

/// Parses a `Range` header for a file of `size` bytes.
pub(super) fn part(header: Option<&str>, size: u64) -> Part {
    let Some(set) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return Part::Whole;
    };
    let Some((first, last)) = set.trim().split_once('-').filter(|_| !set.contains(',')) else {
        return Part::Whole;
    };
    let number = |text: &str| -> Option<Option<u64>> {
        match text.trim() {
            "" => Some(None),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(Some(digits.parse().unwrap_or(u64::MAX)))
            }
            _ => None,
        }
    };
    match (number(first), number(last)) {
        (Some(Some(first)), Some(last)) if last.is_none_or(|last| first <= last) => {
            if first >= size {
                return Part::Outside;
            }
            Part::Of(first..last.map_or(size, |last| last.saturating_add(1).min(size)))
        }
        (Some(None), Some(Some(count))) => {
            if count == 0 || size == 0 {
                return Part::Outside;
            }
            Part::Of(size.saturating_sub(count)..size)
        }
        _ => Part::Whole,
    }
}

/// Returns whether an `If-None-Match` or `If-Range` header lists `tag`.
pub(super) fn names(header: &str, tag: &str) -> bool {
    header.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        for (header, expected) in [
            ("bytes=0-3", Part::Of(0..4)),
            ("bytes=5-", Part::Of(5..10)),
            ("bytes=-4", Part::Of(6..10)),
            ("bytes=-99", Part::Of(0..10)),
            ("bytes=8-99", Part::Of(8..10)),
            ("bytes=9-9", Part::Of(9..10)),
            ("bytes=10-", Part::Outside),
            ("bytes=-0", Part::Outside),
            ("bytes=4-2", Part::Whole),
            ("bytes=0-1,4-5", Part::Whole),
            ("bytes=x-1", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=", Part::Whole),
            ("lines=0-1", Part::Whole),
            ("bytes=99999999999999999999999-", Part::Outside),
        ] {
            assert_eq!(part(Some(header), 10), expected, "{header}");
        }
        assert_eq!(part(None, 10), Part::Whole);
        assert_eq!(part(Some("bytes=-1"), 0), Part::Outside);
    }

    #[test]
    fn tags_are_found_among_others() {
        assert!(names("\"a\", W/\"b\"", "\"b\"") && names("*", "\"b\"") && !names("\"bb\"", "\"b\""));
    }
}
