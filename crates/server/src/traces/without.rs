//! A build without the export of traces.

use super::Traces;
use crate::Config;
use model::{Clock, Random, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// No build has one.
pub(crate) enum Collector {}

/// No build has it running.
pub(crate) enum Exporting {}

impl Collector {
    /// # Errors
    /// When a collector is configured.
    pub(crate) fn read(config: &Config) -> anyhow::Result<Option<Self>> {
        anyhow::ensure!(
            config.otlp_endpoint.is_none(),
            "OTEL_EXPORTER_OTLP_ENDPOINT: this build exports no traces"
        );
        Ok(None)
    }

    pub(crate) async fn probe(&self) -> anyhow::Result<()> {
        match *self {}
    }

    pub(crate) fn start(
        self,
        _: Arc<dyn Clock>,
        _: Arc<dyn Random>,
        _: &Handle,
    ) -> Result<(Traces, Exporting)> {
        match self {}
    }
}

impl Exporting {
    pub(crate) async fn stop(self, _: Duration) {
        match self {}
    }
}
