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
    use crate::MediaKind;

    #[test]
    fn files_are_measured_by_their_type_however_they_are_sent() {
        for (kind, mime_type, most) in [
            (MediaKind::Image, "image/png", 5 * MIB),
            (MediaKind::Document, "image/png", 5 * MIB),
            (MediaKind::Document, "image/svg+xml", 5 * MIB),
            (MediaKind::Audio, "audio/ogg", 16 * MIB),
            (MediaKind::Document, "audio/ogg", 16 * MIB),
            (MediaKind::Document, "video/quicktime", 16 * MIB),
            (MediaKind::Document, "application/pdf", 100 * MIB),
        ] {
            assert_eq!(CAPABILITIES.check_file(kind, mime_type, most), Ok(()), "{kind:?} {mime_type}");
            assert!(CAPABILITIES.check_file(kind, mime_type, most + 1).is_err(), "{kind:?} {mime_type}");
        }
        for (kind, mime_type) in [
            (MediaKind::Image, "image/webp"),
            (MediaKind::Sticker, "image/png"),
            (MediaKind::Audio, "video/mp4"),
            (MediaKind::Video, "audio/ogg"),
        ] {
            assert!(CAPABILITIES.check_file(kind, mime_type, 1).is_err(), "{kind:?} {mime_type}");
        }
    }

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
