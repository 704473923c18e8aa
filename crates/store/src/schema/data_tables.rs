//! Tables of the data engine.
