//! The network's names of ratings, limits and template states.

use crate::{Capabilities, Quality, TemplateCategory, TemplateStatus};
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    messages_per_second: 80,
    pair_interval: Duration::from_secs(6),
    window: Duration::from_hours(24),
    max_text_chars: 4096,
    max_image_bytes: 5 * MIB,
    max_av_bytes: 16 * MIB,
    max_document_bytes: 100 * MIB,
    uploads_kept: Duration::from_secs(30 * 24 * 3_600),
    echoes_reference: true,
};

/// Parses a messaging limit in recipients per day. `i64::MAX` means no limit.
pub(super) fn messaging_limit(tier: &str) -> Option<i64> {
    let tier = tier.strip_prefix("TIER_")?;
    if tier == "UNLIMITED" {
        return Some(i64::MAX);
    }
    match tier.strip_suffix('K') {
        Some(thousands) => thousands.parse::<i64>().ok()?.checked_mul(1000),
        None => tier.parse().ok(),
    }
}

pub(super) fn throughput(level: &str) -> Option<u32> {
    match level {
        "STANDARD" => Some(80),
        "HIGH" => Some(1000),
        _ => None,
    }
}

pub(super) fn quality(word: &str) -> Quality {
    match word {
        "GREEN" | "HIGH" => Quality::High,
        "YELLOW" | "MEDIUM" => Quality::Medium,
        "RED" | "LOW" => Quality::Low,
        _ => Quality::Unknown,
    }
}

pub(super) fn template_category(word: &str) -> Option<TemplateCategory> {
    TemplateCategory::parse(&word.to_ascii_lowercase())
}

/// Parses a template state. Returns `None` for words that do not change the state, such as `LOCKED`, which only
/// prevents edits.
pub(super) fn template_status(word: &str) -> Option<TemplateStatus> {
    match word {
        "APPROVED" | "REINSTATED" => Some(TemplateStatus::Approved),
        "PENDING" | "IN_APPEAL" => Some(TemplateStatus::Pending),
        "REJECTED" => Some(TemplateStatus::Rejected),
        "PAUSED" => Some(TemplateStatus::Paused),
        "DISABLED" | "DELETED" | "PENDING_DELETION" | "ARCHIVED" | "LIMIT_EXCEEDED" => {
            Some(TemplateStatus::Disabled)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_numbers() {
        for (tier, limit) in [
            ("TIER_50", Some(50)),
            ("TIER_1K", Some(1000)),
            ("TIER_100K", Some(100_000)),
            ("TIER_UNLIMITED", Some(i64::MAX)),
            ("TIER_NOT_SET", None),
            ("TIER_99999999999999999K", None),
            ("50", None),
        ] {
            assert_eq!(messaging_limit(tier), limit, "{tier}");
        }
    }
}
