//! Metrics of runs and of the models' work.

use crate::run::RunStatus;
use diesel::prelude::*;
use model::{Error, Result};
use operation::{Counts, TableGauge};
use prometheus::core::Collector;
use prometheus::{IntCounterVec, Opts};
use providers::{ModelAnswer, ProviderError, TierSetup};
use store::{MOST_COUNTED, Read};

/// Runs that have not ended.
pub(crate) const OPEN_RUNS: TableGauge =
    TableGauge::new("svc_runs_open", "Runs that have not ended, by status.", open_by_status).by("status");

/// Counters of runs and model calls.
pub(crate) struct RunMetrics {
    ended: IntCounterVec,
    calls: IntCounterVec,
    tokens: IntCounterVec,
}

impl RunMetrics {
    pub(crate) fn new() -> Result<Self> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels).map_err(Error::internal)
        };
        Ok(Self {
            ended: counter("svc_runs_total", "Runs that ended, by status.", &["status"])?,
            calls: counter(
                "svc_model_calls_total",
                "Calls of models, by model and outcome: `ok`, `unavailable`, `timeout`, `refused` or `cancelled`.",
                &["model", "outcome"],
            )?,
            tokens: counter(
                "svc_model_tokens_total",
                "Tokens of models' calls, by model and direction: `input`, the part of it that is `cached`, `output`, and \
                 the part of it that is `reasoning`.",
                &["model", "direction"],
            )?,
        })
    }

    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.ended.clone()), Box::new(self.calls.clone()), Box::new(self.tokens.clone())]
    }

    pub(crate) fn ended(&self, status: RunStatus) {
        self.ended.with_label_values(&[status.as_str()]).inc();
    }

    /// Counts a call of `tier`.
    pub(crate) fn called(&self, tier: &TierSetup, result: &std::result::Result<ModelAnswer, ProviderError>) {
        let ModelAnswer { label, usage, .. } = match result {
            Ok(answered) => answered,
            Err(error) => return self.calls.with_label_values(&[tier.label().as_str(), error.kind()]).inc(),
        };
        self.calls.with_label_values(&[label.as_str(), "ok"]).inc();
        let tokens = [
            ("input", usage.input_tokens),
            ("cached", usage.cached_tokens),
            ("output", usage.output_tokens),
            ("reasoning", usage.reasoning_tokens),
        ];
        for (direction, tokens) in tokens {
            let tokens = u64::try_from(tokens).unwrap_or_default();
            self.tokens.with_label_values(&[label.as_str(), direction]).inc_by(tokens);
        }
    }
}

fn open_by_status(read: &mut Read) -> Result<Counts> {
    #[derive(QueryableByName)]
    struct Open {
        #[diesel(sql_type = diesel::sql_types::Text)]
        status: RunStatus,
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        runs: i64,
    }
    let sql = format!(
        "SELECT status, COUNT(*) AS runs FROM
            (SELECT status FROM runs WHERE completed_at IS NULL LIMIT {MOST_COUNTED}) AS open GROUP BY status"
    );
    let open: Vec<Open> = diesel::sql_query(sql).load(read.connection())?;
    let count = |status: RunStatus| open.iter().find(|row| row.status == status).map_or(0, |row| row.runs);
    let statuses = RunStatus::ALL.into_iter().filter(|status| !status.is_final());
    Ok(statuses.map(|status| (status.as_str().into(), count(status))).collect())
}
