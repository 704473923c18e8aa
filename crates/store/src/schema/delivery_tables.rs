//! Tables of outbound webhooks.
