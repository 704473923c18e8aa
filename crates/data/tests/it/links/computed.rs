//! Rollups and lookups.
