//! Automations through the whole service, on both databases.
