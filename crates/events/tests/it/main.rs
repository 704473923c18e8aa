//! Events and webhooks through the whole service, on both databases.
