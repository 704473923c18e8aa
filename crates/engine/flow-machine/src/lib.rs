//! Runs of flows as a machine without a clock, a database or a network.
//!
//! A [`Program`] is a compiled graph. Its [`State`] says where a run is: JSON that is stored between two transactions. The
//! machine [advances](Program::advance) a state through everything that only computes and gives the [`Task`]s that the outside
//! has to carry out: nodes that act or wait. The outcome of a task is [put in](Program::finish), and so on, until the run has an
//! [`Ending`]. The same inputs always give the same result.

mod advance;
mod compute;
mod failures;
mod joins;
mod loops;
mod program;
mod simulation;
mod state;
mod values;

pub use program::Program;
pub use simulation::{SimulatedStep, Simulation};
pub use state::{ComputedStep, Ending, Fault, Outcome, State, Task};
pub use values::Values;
