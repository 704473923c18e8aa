//! Numbers of the business.

use super::rates::{Daily, Rates};
use crate::settings::Settings;
use serde_json::{Value, json};

/// A number of the business.
pub(crate) struct Number {
    pub(crate) id: String,
    pub(crate) business_id: String,
    pub(crate) display_number: String,
    pub(crate) verified_name: String,
    pub(crate) access_token: String,
    pub(crate) app_secret: String,
    pub(crate) callback_url: Option<String>,
    /// In the network's format.
    pub(crate) quality: String,
    pub(crate) tier: String,
    pub(crate) is_revoked: bool,
    pub(crate) rates: Rates,
    pub(crate) daily: Daily,
}

impl Number {
    /// Creates the number of the settings.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            id: settings.number_id.clone(),
            business_id: settings.business_id.clone(),
            display_number: settings.display_number.clone(),
            verified_name: settings.verified_name.clone(),
            access_token: settings.access_token.clone(),
            app_secret: settings.app_secret.clone(),
            callback_url: settings.callback_url.clone(),
            quality: "GREEN".to_owned(),
            tier: "TIER_10K".to_owned(),
            is_revoked: false,
            rates: Rates::default(),
            daily: Daily::default(),
        }
    }

    /// Returns the requested fields of the number, in the network's format.
    pub(crate) fn described(&self, fields: &str) -> Value {
        let all = json!({
            "id": self.id,
            "display_phone_number": self.display_number,
            "verified_name": self.verified_name,
            "quality_rating": self.quality,
            "messaging_limit_tier": self.tier,
            "throughput": { "level": "STANDARD" },
            "platform_type": "CLOUD_API",
            "code_verification_status": "VERIFIED",
        });
        let is_asked = |key: &str| {
            fields.is_empty() || key == "id" || fields.split(',').any(|field| field.trim() == key)
        };
        match all {
            Value::Object(all) => all.into_iter().filter(|(key, _)| is_asked(key)).collect(),
            other => other,
        }
    }
}
