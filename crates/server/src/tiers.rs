//! From the settings of the tiers to models that answer.

use crate::Config;
use egress::{Connector, Policy};
use providers::{OpenAi, OpenAiSettings, Provider, Route, Tier, TierSetup, Tiers};
use std::sync::Arc;

/// The tiers as `config` asks for them. The embedded model is loaded when a tier uses it; without its file, such a tier has no
/// model. Requests to models' servers are
/// counted with those of `connector`.
///
/// # Errors
/// When a setting names no model, or the embedded model cannot be loaded.
pub(crate) fn tiers(config: &Config, connector: &Connector) -> anyhow::Result<Tiers> {
    let mut models = Models { config, connector, local: None, openai: None };
    let tiers = Tiers {
        fast: TierSetup {
            routes: models.routes("SVC_MODEL_FAST", &config.model_fast)?,
            prices: config.price_fast,
        },
        balanced: TierSetup {
            routes: models.routes("SVC_MODEL_BALANCED", &config.model_balanced)?,
            prices: config.price_balanced,
        },
        advanced: TierSetup {
            routes: models.routes("SVC_MODEL_ADVANCED", &config.model_advanced)?,
            prices: config.price_advanced,
        },
    };
    Ok(tiers)
}

/// The tiers without a model, by name.
pub(crate) fn without_model(tiers: &Tiers) -> Vec<&'static str> {
    let all = [Tier::Fast, Tier::Balanced, Tier::Advanced];
    all.into_iter().filter(|tier| tiers.get(*tier).routes.is_empty()).map(Tier::as_str).collect()
}

/// A model that a setting names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelName<'a> {
    /// The embedded model.
    Local,
    /// A model of the OpenAI-compatible server.
    OpenAi(&'a str),
}

/// The models in the list that is the value of `setting`.
///
/// # Errors
/// When a part of the list names none.
pub(crate) fn model_names<'a>(setting: &str, list: &'a str) -> anyhow::Result<Vec<ModelName<'a>>> {
    list.split(',')
        .map(str::trim)
        .map(|name| match name.split_once(':') {
            None if name == "local" => Ok(ModelName::Local),
            Some(("openai", model)) if !model.is_empty() => Ok(ModelName::OpenAi(model)),
            _ => anyhow::bail!("{setting}: `{name}` is neither `local` nor `openai:MODEL`"),
        })
        .collect()
}

/// Loads each provider once, for whichever tiers use it.
struct Models<'a> {
    config: &'a Config,
    connector: &'a Connector,
    local: Option<Route>,
    openai: Option<Arc<dyn Provider>>,
}

impl Models<'_> {
    fn routes(&mut self, setting: &str, list: &str) -> anyhow::Result<Vec<Route>> {
        let load = |model| match model {
            ModelName::Local => self.local(),
            ModelName::OpenAi(model) => self.openai(model).map(Some),
        };
        let routes = model_names(setting, list)?.into_iter().map(load);
        routes.filter_map(Result::transpose).collect()
    }

    fn openai(&mut self, model: &str) -> anyhow::Result<Route> {
        let provider = match &self.openai {
            Some(provider) => provider.clone(),
            None => {
                let settings = OpenAiSettings {
                    base_url: self.config.openai_base_url.clone(),
                    api_key: self.config.openai_api_key.clone(),
                };
                let connector = self
                    .connector
                    .under(operator_policy("SVC_OPENAI_BASE_URL", &self.config.openai_base_url)?)?;
                let provider: Arc<dyn Provider> = Arc::new(OpenAi::new(settings, connector));
                self.openai.insert(provider).clone()
            }
        };
        let label = format!("openai:{model}");
        Ok(Route { provider, model: model.to_owned(), label, context_tokens: self.config.openai_context })
    }

    #[cfg(feature = "local-llm")]
    fn local(&mut self) -> anyhow::Result<Option<Route>> {
        use anyhow::Context;
        if let Some(route) = &self.local {
            return Ok(Some(route.clone()));
        }
        let Some(file) = self.config.model_file() else { return Ok(None) };
        let engine = local_model::Engine::load(&file, local_model::Options::default())
            .with_context(|| format!("loading {}", file.display()))?;
        let route = Route {
            model: "local".to_owned(),
            label: engine.label().to_owned(),
            context_tokens: i64::try_from(engine.context_tokens()).unwrap_or(8192),
            provider: Arc::new(crate::local::Local(engine)),
        };
        Ok(Some(self.local.insert(route).clone()))
    }

    #[cfg(not(feature = "local-llm"))]
    fn local(&mut self) -> anyhow::Result<Option<Route>> {
        Ok(self.local.clone())
    }
}

/// What the operator configured, the operator trusts: the server at `url`, the value of `setting`, may be on a private address.
pub(crate) fn operator_policy(setting: &str, url: &str) -> anyhow::Result<Policy> {
    use anyhow::Context;
    let parsed = egress::Url::parse(url).with_context(|| format!("{setting}: {url} is not a URL"))?;
    let host = parsed.host_str().with_context(|| format!("{setting}: {url} names no host"))?;
    let port = parsed.port_or_known_default().unwrap_or(443);
    Ok(Policy::allowing([format!("{host}:{port}").as_str()])?)
}
