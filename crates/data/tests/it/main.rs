//! Collections, items and links through the whole service, on both databases.
