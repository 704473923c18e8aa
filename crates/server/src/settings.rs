//! What the configuration stands for, read before anything is made or changed.

use crate::Config;
use crate::compose::ServiceParts;
use crate::database::backend;
use crate::file_storage::Place;
use crate::secret_key::Keys;
use crate::tiers::{self, operator_policy};
use crate::traces::{Collector, Traces};
use crate::values::SandboxMode;
use anyhow::Context;
use auth::{RateWindows, Seal};
use conversations::{OpenAiTranscriber, Transcriber, TranscriberSettings};
use dashboard::InsecureSignIn;
use egress::{Connector, Policy};
use model::SystemRandom;
use operation::Limits;
use providers::Tiers;
use std::sync::Arc;
use store::Db;
use tokio::runtime::Handle;

/// What the settings stand for. All that can be wrong with them is found here, before anything is made or changed.
pub(crate) struct Settings {
    /// `None` where a key is to be generated.
    pub(crate) keys: Option<Keys>,
    pub(crate) connector: Connector,
    pub(crate) objects: Place,
    pub(crate) rates: RateWindows,
    pub(crate) tiers: Tiers,
    /// `None` where voice notes are not transcribed.
    pub(crate) transcriber: Option<Arc<dyn Transcriber>>,
    /// `None` where no traces are to be exported.
    pub(crate) collector: Option<Collector>,
}

impl Settings {
    /// What costs least is looked at first.
    pub(crate) async fn read(config: &Arc<Config>) -> anyhow::Result<Self> {
        let backend = backend(config)?;
        let folder = &config.data_dir;
        anyhow::ensure!(folder.is_dir() || !folder.exists(), "{} is no folder", folder.display());
        let keys = Keys::read(config, &backend)?;
        let policy = Policy::allowing(config.allow_outbound.iter().map(String::as_str))
            .context("SVC_ALLOW_OUTBOUND")?;
        let collector = Collector::read(config)?;
        let connector = Connector::new(policy)?;
        let objects = Place::read(config, &connector)?;
        let transcriber = transcriber(config, &connector)?;
        let rates = match &config.redis_url {
            Some(url) => RateWindows::shared(url, &SystemRandom::default()).await.context("SVC_REDIS_URL")?,
            None => RateWindows::local(),
        };
        // Loading the model takes seconds of computing, which must not stop the runtime.
        let (loading, beside) = (config.clone(), connector.clone());
        let tiers = tokio::task::spawn_blocking(move || tiers::tiers(&loading, &beside)).await??;
        Ok(Self { keys, connector, objects, rates, tiers, transcriber, collector })
    }

    /// The parts of a service that uses this database.
    pub(crate) fn parts(
        self,
        config: &Config,
        db: Db,
        seal: Seal,
        traces: Traces,
        runtime: Handle,
    ) -> anyhow::Result<ServiceParts> {
        Ok(ServiceParts {
            db,
            tiers: self.tiers,
            connector: self.connector,
            network_connector: None,
            seal,
            objects: self.objects.open()?,
            rates: self.rates,
            base_url: config.base_url(),
            oauth_registration: config.oauth_registration,
            insecure_sign_in: InsecureSignIn(config.insecure_sign_in),
            limits: Limits { default_rpm: config.default_rpm, ..Limits::default() },
            retention: config.log_retentions(),
            transcriber: self.transcriber,
            checks: None,
            sandbox: sandbox(config),
            replacing: operation::Services::default(),
            traces,
            runtime,
        })
    }
}

/// How code of functions and skills is confined.
pub(crate) fn sandbox(config: &Config) -> sandbox::Settings {
    sandbox::Settings {
        off: config.sandbox == SandboxMode::Off,
        required: config.sandbox == SandboxMode::Required,
        calls_per_worker: config.sandbox_calls_per_worker,
        ..sandbox::Settings::default()
    }
}

/// What transcribes voice notes, where the installation has something that does.
fn transcriber(config: &Config, connector: &Connector) -> anyhow::Result<Option<Arc<dyn Transcriber>>> {
    let Some(base_url) = config.transcriber_base_url.clone() else { return Ok(None) };
    let connector = connector.under(operator_policy("SVC_TRANSCRIBER_BASE_URL", &base_url)?)?;
    let settings = TranscriberSettings {
        base_url,
        api_key: config.transcriber_api_key.clone(),
        model: config.transcriber_model.clone(),
    };
    Ok(Some(Arc::new(OpenAiTranscriber::new(settings, connector))))
}
