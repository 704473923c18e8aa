//! The meaning of the network's error numbers.

use crate::RefusalCode;
use RefusalCode::{
    AccountRestricted, ChannelDisconnected, CredentialsInvalid, InvalidMessage, MediaInvalid, MessagingLimit,
    NetworkError, PairRateLimited, RateLimited, RecipientOptedOut, TemplateNotApproved, TemplateNotFound,
    TemplateParamsMismatch, Undeliverable, WindowClosed,
};

/// Ranges of error numbers with our code and whether a retry can succeed. The first matching range applies.
const CODES: &[(i64, i64, RefusalCode, bool)] = &[
    (0, 0, CredentialsInvalid, false),
    (1, 2, NetworkError, true),
    (3, 3, CredentialsInvalid, false),
    (4, 4, RateLimited, true),
    (10, 10, CredentialsInvalid, false),
    (33, 33, ChannelDisconnected, false),
    (100, 100, InvalidMessage, false),
    (190, 190, CredentialsInvalid, false),
    (200, 299, CredentialsInvalid, false),
    (368, 368, AccountRestricted, false),
    (80_007, 80_008, RateLimited, true),
    (130_429, 130_429, RateLimited, true),
    // The recipient is in a control group of the network and gets no marketing messages.
    (130_472, 130_472, Undeliverable, false),
    (130_497, 130_497, AccountRestricted, false),
    (131_000, 131_000, NetworkError, true),
    (131_005, 131_005, CredentialsInvalid, false),
    (131_008, 131_009, InvalidMessage, false),
    (131_016, 131_016, NetworkError, true),
    // The sender's own number, an unreachable number, and a number that a test account may not write to.
    (131_021, 131_021, Undeliverable, false),
    (131_026, 131_026, Undeliverable, false),
    (131_030, 131_030, Undeliverable, false),
    (131_031, 131_031, AccountRestricted, false),
    (131_037, 131_037, AccountRestricted, false),
    // No valid payment method.
    (131_042, 131_042, AccountRestricted, false),
    (131_045, 131_045, ChannelDisconnected, false),
    (131_047, 131_047, WindowClosed, false),
    // Too many recipients reported the number, so fewer messages are accepted for a while.
    (131_048, 131_048, MessagingLimit, true),
    // The recipient has received enough marketing messages today. Retries make the network less willing.
    (131_049, 131_049, Undeliverable, false),
    (131_050, 131_050, RecipientOptedOut, false),
    (131_051, 131_051, InvalidMessage, false),
    (131_052, 131_053, MediaInvalid, false),
    (131_055, 131_055, InvalidMessage, false),
    (131_056, 131_056, PairRateLimited, true),
    (131_057, 131_057, NetworkError, true),
    (132_000, 132_000, TemplateParamsMismatch, false),
    (132_001, 132_001, TemplateNotFound, false),
    (132_005, 132_005, TemplateParamsMismatch, false),
    (132_007, 132_007, TemplateNotApproved, false),
    (132_012, 132_012, TemplateParamsMismatch, false),
    (132_015, 132_016, TemplateNotApproved, false),
    (132_018, 132_018, TemplateParamsMismatch, false),
    (132_068, 132_068, InvalidMessage, false),
    (132_069, 132_069, RateLimited, true),
    (133_004, 133_004, NetworkError, true),
    // The number is not registered, or its registration is being changed.
    (133_000, 133_999, ChannelDisconnected, false),
    (134_011, 134_011, AccountRestricted, false),
    (135_000, 135_000, InvalidMessage, false),
];

/// Returns our code for an error and whether a retry can succeed. Uses the network's error number if it is known,
/// otherwise the response's status. Errors in callbacks have no status.
pub(super) fn meaning(code: Option<i64>, status: Option<u16>) -> (RefusalCode, bool) {
    let known = code.and_then(|code| CODES.iter().find(|(first, last, ..)| (*first..=*last).contains(&code)));
    if let Some((_, _, refusal, is_retryable)) = known {
        return (*refusal, *is_retryable);
    }
    match status {
        Some(401 | 403) => (CredentialsInvalid, false),
        Some(429) => (RateLimited, true),
        Some(408 | 500..=599) => (NetworkError, true),
        Some(400..=499) => (InvalidMessage, false),
        _ => (NetworkError, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mean_what_the_network_says() {
        for (code, refusal, is_retryable) in [
            (1, NetworkError, true),
            (2, NetworkError, true),
            (4, RateLimited, true),
            (190, CredentialsInvalid, false),
            (210, CredentialsInvalid, false),
            (368, AccountRestricted, false),
            (80_007, RateLimited, true),
            (130_429, RateLimited, true),
            (131_000, NetworkError, true),
            (131_016, NetworkError, true),
            (131_026, Undeliverable, false),
            (131_031, AccountRestricted, false),
            (131_042, AccountRestricted, false),
            (131_047, WindowClosed, false),
            (131_048, MessagingLimit, true),
            (131_049, Undeliverable, false),
            (131_050, RecipientOptedOut, false),
            (131_051, InvalidMessage, false),
            (131_052, MediaInvalid, false),
            (131_053, MediaInvalid, false),
            (131_056, PairRateLimited, true),
            (132_000, TemplateParamsMismatch, false),
            (132_001, TemplateNotFound, false),
            (132_005, TemplateParamsMismatch, false),
            (132_007, TemplateNotApproved, false),
            (132_012, TemplateParamsMismatch, false),
            (132_015, TemplateNotApproved, false),
            (132_016, TemplateNotApproved, false),
            (133_004, NetworkError, true),
            (133_010, ChannelDisconnected, false),
        ] {
            assert_eq!(meaning(Some(code), Some(400)), (refusal, is_retryable), "{code}");
        }
    }

    #[test]
    fn unknown_numbers_go_by_the_status() {
        assert_eq!(meaning(Some(999_999), Some(500)), (NetworkError, true));
        assert_eq!(meaning(Some(999_999), Some(400)), (InvalidMessage, false));
        assert_eq!(meaning(None, Some(401)), (CredentialsInvalid, false));
        assert_eq!(meaning(None, Some(429)), (RateLimited, true));
        assert_eq!(meaning(Some(999_999), None), (NetworkError, false));
    }

    /// No number is listed twice, except within a later range.
    #[test]
    fn each_number_is_listed_once() {
        let singles: Vec<_> = CODES.iter().filter(|line| line.0 == line.1).map(|line| line.0).collect();
        let mut unique = singles.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(singles.len(), unique.len());
    }
}
