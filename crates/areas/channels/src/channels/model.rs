//! The API object of a channel.

use chatnet::Quality;
use model::{AgentId, ChannelId, Timestamp, text_enum};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

text_enum! {
    /// The chat network of a channel.
    pub enum ChannelType {
        /// The chat messaging network.
        Chatnet = "chatnet",
    }
}

text_enum! {
    /// How the service reaches the network.
    pub enum ChannelProvider {
        /// The simulator: a network on this machine, for trying and testing.
        Simulator = "simulator",
        /// The network's own servers.
        Cloud = "cloud",
        /// A partner of the network that speaks its protocol.
        Partner = "partner",
    }
}

text_enum! {
    /// Whether a channel works.
    pub enum ChannelStatus {
        /// It was set up, and the network has not answered yet.
        Connecting = "connecting",
        /// It works.
        Connected = "connected",
        /// It works, but the network restricts it or fails often: see `status_reason`.
        Degraded = "degraded",
        /// The network does not accept its credentials: see `status_reason`.
        Disconnected = "disconnected",
        /// It was disconnected: nothing is sent over it.
        Disabled = "disabled",
    }
}

impl ChannelStatus {
    /// Returns whether messages can be sent.
    pub fn can_send(self) -> bool {
        matches!(self, Self::Connecting | Self::Connected | Self::Degraded)
    }
}

/// A channel: a number on a chat network.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Channel, example = json!({
    "name": "Support", "address": "+551130000000", "status": "connected", "quality": "high",
    "messages_per_second": 80, "version": 1,
}))]
pub struct Channel {
    /// The id of the channel.
    pub id: ChannelId,
    /// Always `channel`.
    pub object: &'static str,
    /// The network.
    #[serde(rename = "type")]
    pub kind: ChannelType,
    /// How the service reaches the network.
    pub provider: ChannelProvider,
    /// The name.
    pub name: String,
    /// The number as people write it.
    pub address: Option<String>,
    /// Whether it works.
    pub status: ChannelStatus,
    /// Why it does not work.
    pub status_reason: Option<String>,
    /// How the network rates the number.
    pub quality: Quality,
    /// How many contacts may be written to first within 24 hours. `null` if there is no limit or none is known.
    pub messaging_limit: Option<i64>,
    /// How many messages per second the network accepts.
    pub messages_per_second: i64,
    /// What the network allows.
    pub capabilities: ChannelCapabilities,
    /// How the service handles messages.
    pub settings: ChannelSettings,
    /// The agent that answers contacts. `null` for the workspace's default agent.
    pub default_agent_id: Option<AgentId>,
    /// When a contact last wrote.
    pub last_inbound_at: Option<Timestamp>,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// What the network of a channel allows.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "window_seconds": 86_400, "max_text_length": 4_096, "max_buttons": 3, "max_image_bytes": 5_242_880,
    "max_audio_video_bytes": 16_777_216, "max_document_bytes": 104_857_600, "pair_interval_ms": 6_000,
}))]
pub struct ChannelCapabilities {
    /// For how many seconds after a contact's last message free messages can be sent.
    pub window_seconds: i64,
    /// The most characters of a text.
    pub max_text_length: i64,
    /// The most buttons of a message.
    pub max_buttons: i64,
    /// The most bytes of an image.
    pub max_image_bytes: i64,
    /// The most bytes of a sound or video.
    pub max_audio_video_bytes: i64,
    /// The most bytes of a document.
    pub max_document_bytes: i64,
    /// The average time between two messages to the same contact, in milliseconds.
    pub pair_interval_ms: i64,
}

/// How the service handles the messages of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(example = json!({
    "reply_debounce_ms": 1_500, "reply_debounce_max_ms": 15_000, "transcribe": true, "takeover_pause_minutes": 0,
    "auto_assign": false, "reassign_after_minutes": 0, "welcome": null, "opt_out_keywords": [], "opt_out_confirmation": null,
}))]
pub struct ChannelSettings {
    /// How long the agent waits for further messages before it answers, in milliseconds.
    pub reply_debounce_ms: i64,
    /// How long the agent waits at most, in milliseconds.
    pub reply_debounce_max_ms: i64,
    /// Whether voice notes are transcribed.
    pub transcribe: bool,
    /// For how many minutes the autopilot of a contact is paused when a person writes to it. 0: it is not.
    pub takeover_pause_minutes: i64,
    /// Whether conversations that an agent hands over are assigned to a member of the team.
    pub auto_assign: bool,
    /// With `auto_assign`: after how many minutes of absence a member of the team loses the conversations in which a contact
    /// waits for an answer, which are then assigned to another member. 0: never.
    pub reassign_after_minutes: i64,
    /// What a contact is answered who writes for the first time. `null` for nothing.
    pub welcome: Option<String>,
    /// Words with which contacts opt out, beside `STOP`, `UNSUBSCRIBE`, `PARAR`, `SAIR`, `BAJA` and others.
    pub opt_out_keywords: Vec<String>,
    /// What a contact is answered that opted out. `null` for nothing.
    pub opt_out_confirmation: Option<String>,
}

impl Default for ChannelSettings {
    fn default() -> Self {
        Self {
            reply_debounce_ms: 1_500,
            reply_debounce_max_ms: 15_000,
            transcribe: true,
            takeover_pause_minutes: 0,
            auto_assign: false,
            reassign_after_minutes: 0,
            welcome: None,
            opt_out_keywords: Vec::new(),
            opt_out_confirmation: None,
        }
    }
}
