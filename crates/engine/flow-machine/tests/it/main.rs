//! Runs of flows in memory.

mod model;
mod nodes;
mod simulation;
mod support;
