//! The settings of the demo that nobody gave: the model server that is there already, and receivers on this machine.

use super::model_server::{Candidate, Search, search};
use crate::Config;
use std::sync::Arc;

/// Loopback addresses, where a newcomer's webhook receivers and tools listen.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "[::1]"];

/// The settings that were given by a flag, a variable or the file, as far as the demo would choose them itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    /// The model of any tier.
    pub(crate) models: bool,
    /// The OpenAI-compatible server.
    pub(crate) openai_base_url: bool,
}

/// Sets what was not given, if the demo is served. Returns then also the sentences that tell the newcomer what was set.
pub(crate) async fn complete(mut config: Config, demo: Option<Given>) -> (Arc<Config>, Option<Vec<String>>) {
    let notes = match demo {
        Some(given) => Some(complete_demo(&mut config, given).await),
        None => None,
    };
    (Arc::new(config), notes)
}

async fn complete_demo(config: &mut Config, given: Given) -> Vec<String> {
    let mut notes = Vec::new();
    config.demo_key = true;
    if !given.models {
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        notes.extend(use_server(config, &Candidate::all(config, given.openai_base_url, environment)).await);
    }
    if config.allow_outbound.is_empty() {
        config.allow_outbound = LOOPBACK.map(str::to_owned).to_vec();
        notes.push(
            "Webhooks and tools may reach servers on this machine (only in the demo; SVC_ALLOW_OUTBOUND replaces it)."
                .to_owned(),
        );
    }
    notes
}

/// Lets all tiers use the first server with a chat model.
async fn use_server(config: &mut Config, candidates: &[Candidate]) -> Vec<String> {
    let Search { found, mut notes } = search(candidates).await;
    for note in &notes {
        tracing::warn!(note, "a model server cannot be used");
    }
    let Some(found) = found else { return notes };
    notes.push(format!(
        "The agent uses the model {} of {}, {}. SVC_MODEL_BALANCED=openai:MODEL chooses another one, local the embedded one.",
        found.model, found.candidate.base_url, found.candidate.origin
    ));
    let setting = format!("openai:{}", found.model);
    for tier in [&mut config.model_fast, &mut config.model_balanced, &mut config.model_advanced] {
        tier.clone_from(&setting);
    }
    config.openai_context = found.context_tokens.unwrap_or(i64::MAX).min(config.openai_context);
    config.openai_base_url.clone_from(&found.candidate.base_url);
    config.openai_api_key.clone_from(&found.candidate.api_key);
    notes
}
