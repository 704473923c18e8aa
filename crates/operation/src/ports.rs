//! What one group of areas may ask of another: small traits, implemented by their owner and wired by the binary.

use model::{AgentId, Caller, Result, RunId};
use store::Tx;

/// What a piece of work is charged to.
#[derive(Debug, Clone)]
pub struct Charge {
    /// Who asked for it.
    pub caller: Caller,
    /// The run that spends.
    pub run: RunId,
    /// The agent that runs.
    pub agent: AgentId,
    /// What it is called in ledgers, such as `run`.
    pub operation: &'static str,
    /// What the agent may spend.
    pub limits: AgentLimits,
}

/// The most Energy that an agent may spend. `None` sets no bound of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentLimits {
    /// All its runs together, in the calendar month (UTC) in which they began.
    pub month: Option<i64>,
    /// One run.
    pub run: Option<i64>,
}

/// Energy that was used in one step.
#[derive(Debug, Clone)]
pub struct Settlement<'a> {
    /// The step's number within the run: settling a step again changes nothing.
    pub step: i64,
    /// Energy used. What is beyond the hold is absorbed by the platform.
    pub energy: i64,
    /// The model that used it.
    pub model: &'a str,
    /// Set with the last step: what is still held is released and the execution is recorded.
    pub close: Option<Closing<'a>>,
}

/// How a piece of work ended.
#[derive(Debug, Clone, Copy)]
pub struct Closing<'a> {
    /// The word for ledgers, such as `completed`.
    pub status: &'a str,
    /// Whether what was spent is given back, because nothing usable came of it.
    pub refund: bool,
}

/// The keeper of Energy. Every method works in the caller's transaction, so that work and charge are one.
///
/// Test keys never reach it: their runs cost nothing.
pub trait EnergyMeter: Send + Sync {
    /// Makes sure that at least `least` and at most `wanted` Energy is set aside for the next step, beside what the
    /// run has used, and gives how much that is. What is refused leaves no trace, so the caller may go on.
    ///
    /// # Errors
    /// The first that does not allow `least`, in this order: `budget_exceeded` for the key's budget with cut-off,
    /// `energy_depleted` (with `recharge_url`) for the workspace, and with `param` = `energy_limit_monthly` or
    /// `energy_limit_per_run` for the agent.
    fn hold(&self, tx: &mut Tx, charge: &Charge, wanted: i64, least: i64) -> Result<i64>;

    /// Whether a hold of at least `least` would be allowed at this moment, for work that is to wait before it begins:
    /// nothing is set aside.
    ///
    /// # Errors
    /// As those of [`hold`](Self::hold).
    fn admit(&self, tx: &mut Tx, charge: &Charge, least: i64) -> Result<()>;

    /// Debits what a step used, as far as it was held, and gives what was debited: what a step cost beyond its hold is
    /// never the customer's.
    ///
    /// # Errors
    /// When the database fails.
    fn settle(&self, tx: &mut Tx, charge: &Charge, settlement: &Settlement<'_>) -> Result<i64>;

    /// Lets work that was closed with a refund begin anew under its own name. The steps of the new attempt go on
    /// behind those of the one before, and only they are given back if it is refunded too.
    ///
    /// # Errors
    /// When the database fails.
    fn reopen(&self, tx: &mut Tx, charge: &Charge) -> Result<()>;
}
