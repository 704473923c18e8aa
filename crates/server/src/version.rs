//! Version of the contract and of the program.

/// The version of the contract: that of the newest heading in CHANGELOG.md.
pub const VERSION: &str = "v0.33.0";
