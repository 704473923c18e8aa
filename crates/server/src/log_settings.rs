//! Settings of logs: for how long they are kept, and up to which size.

use crate::values::{size, whole};
use clap::Args;
use store::logs::{Retention, Retentions};

/// What an installation sets for its logs.
#[derive(Debug, Clone, Args)]
pub struct LogSettings {
    /// Days after which rows of the request log are deleted.
    #[arg(
        long,
        env = "SVC_REQUEST_LOG_DAYS",
        global = true,
        value_name = "DAYS",
        default_value = "30",
        value_parser = whole::<i64, 1, 3_650>,
        allow_negative_numbers = true
    )]
    pub request_log_days: i64,

    /// The size of the request log, such as `512MiB`. The oldest rows are deleted when it is larger.
    #[arg(
        long,
        env = "SVC_REQUEST_LOG_SIZE",
        global = true,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub request_log_size: i64,

    /// Days after which events are deleted.
    #[arg(
        long,
        env = "SVC_EVENT_DAYS",
        global = true,
        value_name = "DAYS",
        default_value = "30",
        value_parser = whole::<i64, 1, 3_650>,
        allow_negative_numbers = true
    )]
    pub event_days: i64,

    /// The size of the log of events.
    #[arg(
        long,
        env = "SVC_EVENT_SIZE",
        global = true,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub event_size: i64,

    /// Days after which deliveries of events that have ended are deleted.
    #[arg(
        long,
        env = "SVC_DELIVERY_DAYS",
        global = true,
        value_name = "DAYS",
        default_value = "30",
        value_parser = whole::<i64, 1, 3_650>,
        allow_negative_numbers = true
    )]
    pub delivery_days: i64,

    /// The size of deliveries, with their attempts and bodies.
    #[arg(
        long,
        env = "SVC_DELIVERY_SIZE",
        global = true,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub delivery_size: i64,

    /// Days after which requests that inbound webhooks received are deleted.
    #[arg(
        long,
        env = "SVC_INBOUND_DAYS",
        global = true,
        value_name = "DAYS",
        default_value = "14",
        value_parser = whole::<i64, 1, 3_650>,
        allow_negative_numbers = true
    )]
    pub inbound_days: i64,

    /// The size of the requests that inbound webhooks received.
    #[arg(
        long,
        env = "SVC_INBOUND_SIZE",
        global = true,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub inbound_size: i64,

    /// Days after which calls of functions are deleted.
    #[arg(
        long,
        env = "SVC_INVOCATION_DAYS",
        global = true,
        value_name = "DAYS",
        default_value = "14",
        value_parser = whole::<i64, 1, 3_650>,
        allow_negative_numbers = true
    )]
    pub invocation_days: i64,

    /// The size of the calls of functions, with their inputs, outputs and logs.
    #[arg(
        long,
        env = "SVC_INVOCATION_SIZE",
        global = true,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub invocation_size: i64,

    /// Days after which firings of automations are deleted.
    #[arg(
        long,
        env = "SVC_FIRING_DAYS",
        global = true,
        value_name = "DAYS",
        default_value = "30",
        value_parser = whole::<i64, 1, 3_650>,
        allow_negative_numbers = true
    )]
    pub firing_days: i64,

    /// The size of the firings of automations, with their data.
    #[arg(
        long,
        env = "SVC_FIRING_SIZE",
        global = true,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub firing_size: i64,

    /// Days after which callbacks of chat networks are deleted.
    #[arg(
        long,
        env = "SVC_CALLBACK_DAYS",
        global = true,
        value_name = "DAYS",
        default_value = "14",
        value_parser = whole::<i64, 1, 3_650>,
        allow_negative_numbers = true
    )]
    pub callback_days: i64,

    /// The size of the callbacks of chat networks.
    #[arg(
        long,
        env = "SVC_CALLBACK_SIZE",
        global = true,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub callback_size: i64,

    /// Days after which the activity of items is deleted, where its collection does not say fewer.
    #[arg(
        long,
        env = "SVC_ACTIVITY_DAYS",
        global = true,
        value_name = "DAYS",
        default_value = "3650",
        value_parser = whole::<i64, 1, 3_650>,
        allow_negative_numbers = true
    )]
    pub activity_days: i64,

    /// The size of the activity of items.
    #[arg(
        long,
        env = "SVC_ACTIVITY_SIZE",
        global = true,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = size,
        allow_negative_numbers = true
    )]
    pub activity_size: i64,
}

impl LogSettings {
    /// How long logs are kept, and up to which size.
    pub(crate) fn retentions(&self) -> Retentions {
        let retention = |days, bytes| Retention { days, bytes };
        Retentions::default()
            .with("request_logs", retention(self.request_log_days, self.request_log_size))
            .with("item_activity", retention(self.activity_days, self.activity_size))
            .with("channel_callbacks", retention(self.callback_days, self.callback_size))
            .with("events", retention(self.event_days, self.event_size))
            .with("webhook_deliveries", retention(self.delivery_days, self.delivery_size))
            .with("inbound_requests", retention(self.inbound_days, self.inbound_size))
            .with("function_invocations", retention(self.invocation_days, self.invocation_size))
            .with("automation_firings", retention(self.firing_days, self.firing_size))
    }
}
