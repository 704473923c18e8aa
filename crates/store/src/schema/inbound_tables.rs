//! Tables of inbound webhooks.
