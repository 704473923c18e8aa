//! The states of broadcasts and of their recipients.

use model::text_enum;

text_enum! {
    /// Where a broadcast stands.
    pub enum BroadcastStatus {
        /// It can be changed, and is not sent.
        Draft = "draft",
        /// It starts at `schedule.send_at`.
        Scheduled = "scheduled",
        /// Its audience becomes recipients.
        Preparing = "preparing",
        /// Its messages are being sent.
        Sending = "sending",
        /// Nothing more is sent until it is resumed.
        Paused = "paused",
        /// Every recipient was sent the message or left out.
        Completed = "completed",
        /// It was cancelled, and its pending recipients are being marked so.
        Cancelling = "cancelling",
        /// It was cancelled. What was sent stays sent.
        Cancelled = "cancelled",
    }
}

text_enum! {
    /// Why a broadcast was paused.
    pub enum BroadcastPauseReason {
        /// A request asked for it.
        Requested = "requested",
        /// The network no longer allows the message template.
        TemplateNotApproved = "template_not_approved",
        /// The channel is not connected.
        ChannelDisconnected = "channel_disconnected",
        /// The network rates the quality of the number as low.
        QualityLow = "quality_low",
        /// More than 10 % of the last 200 messages failed.
        FailureRate = "failure_rate",
        /// The number has written to as many contacts as the network allows in 24 hours. The broadcast continues by itself at
        /// `resumes_at`.
        MessagingLimit = "messaging_limit",
        /// The workspace is blocked.
        WorkspaceBlocked = "workspace_blocked",
        /// The file above the text was deleted, or the network does not take it.
        MediaInvalid = "media_invalid",
        /// The audience cannot be read, such as after its segment was deleted, or no line of its file names a contact.
        AudienceInvalid = "audience_invalid",
    }
}

text_enum! {
    /// Where the message to a recipient stands.
    pub enum BroadcastRecipientState {
        /// Nothing was sent yet.
        Pending = "pending",
        /// The message waits for its turn, or is being sent.
        Claimed = "claimed",
        /// The network accepted the message.
        Sent = "sent",
        /// The message reached the contact's device.
        Delivered = "delivered",
        /// The contact read the message.
        Read = "read",
        /// The message was not sent, or did not reach the contact: see `error`.
        Failed = "failed",
        /// The contact was left out: see `skip_reason`.
        Skipped = "skipped",
        /// The network did not answer, so the message may have been sent.
        Unknown = "unknown",
        /// The broadcast was cancelled before the message was sent.
        Cancelled = "cancelled",
    }
}

text_enum! {
    /// Why a contact was left out.
    pub enum BroadcastSkipReason {
        /// The contact wants no marketing messages.
        OptedOut = "opted_out",
        /// The contact is blocked.
        Blocked = "blocked",
        /// The contact has neither a telephone number nor a user id on the network, or was deleted.
        NoAddress = "no_address",
        /// Another recipient has the same address.
        DuplicateAddress = "duplicate_address",
        /// The contact lacks a value of the template, and the fallback is empty.
        MissingParam = "missing_param",
        /// The contact received as many broadcasts as `frequency_cap` allows.
        FrequencyCap = "frequency_cap",
        /// The contact was merged into another recipient.
        Merged = "merged",
    }
}
