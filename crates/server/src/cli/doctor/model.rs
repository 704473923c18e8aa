//! Checks of the models that answer.

use super::Finding;
use crate::Config;
use crate::tiers::{ModelName, model_names, operator_policy};
use anyhow::Context;
use egress::{Connector, Limits, Request};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

/// What a GGUF file begins with.
const GGUF: &[u8; 4] = b"GGUF";

/// What follows for runs, and what to do.
const WITHOUT_MODEL: &str = "Runs of the tier are rejected with model_not_configured. Set SVC_MODEL_FILE, or set the tiers to \
                             openai:MODEL.";

/// The models that the tiers use, in their order and each once.
fn used(config: &Config) -> anyhow::Result<Vec<ModelName<'_>>> {
    let mut used = Vec::new();
    for (setting, list) in [
        ("SVC_MODEL_FAST", &config.model_fast),
        ("SVC_MODEL_BALANCED", &config.model_balanced),
        ("SVC_MODEL_ADVANCED", &config.model_advanced),
    ] {
        for model in model_names(setting, list)? {
            if !used.contains(&model) {
                used.push(model);
            }
        }
    }
    Ok(used)
}

/// Is the embedded model's file there, where a tier uses it?
pub(super) async fn embedded(config: &Config) -> anyhow::Result<Finding> {
    if !used(config)?.contains(&ModelName::Local) {
        return Ok(Finding::ok("No tier uses it."));
    }
    if !cfg!(feature = "local-llm") {
        return Ok(Finding::warn(format!("This build has none, but a tier uses it. {WITHOUT_MODEL}")));
    }
    let Some(path) = config.model_file() else {
        return Ok(Finding::warn(format!("A tier uses it, but SVC_MODEL_FILE is not set. {WITHOUT_MODEL}")));
    };
    let mut begin = [0; 4];
    let opened = File::open(&path).and_then(|mut file| file.read_exact(&mut begin));
    opened.with_context(|| format!("{} cannot be read: check SVC_MODEL_FILE", path.display()))?;
    Ok(if begin == *GGUF {
        Finding::ok(format!("{} is readable.", path.display()))
    } else {
        Finding::fail(format!("{} is not a GGUF file. Check SVC_MODEL_FILE.", path.display()))
    })
}

/// Does the OpenAI-compatible server answer, and does it have the models of the tiers?
pub(super) async fn server(config: &Config) -> anyhow::Result<Finding> {
    let models: Vec<&str> = used(config)?
        .into_iter()
        .filter_map(|model| if let ModelName::OpenAi(name) = model { Some(name) } else { None })
        .collect();
    if models.is_empty() {
        return Ok(Finding::ok("No tier uses it."));
    }
    let url = config.openai_base_url.trim_end_matches('/');
    let connector = Connector::new(operator_policy("SVC_OPENAI_BASE_URL", url)?)?;
    let limits = Limits { total: Duration::from_secs(8), max_response_bytes: 8 << 20, ..Limits::default() };
    let mut request = Request::get(format!("{url}/models")).limits(limits);
    if let Some(key) = &config.openai_api_key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let response = connector.send(request).await;
    let response = response.with_context(|| format!("{url} does not answer: check SVC_OPENAI_BASE_URL"))?;
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let listed = body.get("data").and_then(Value::as_array);
    Ok(match (response.status, listed) {
        (200, Some(listed)) => {
            let has =
                |name: &str| listed.iter().any(|model| model.get("id").and_then(Value::as_str) == Some(name));
            let missing: Vec<&str> = models.iter().copied().filter(|name| !has(name)).collect();
            if missing.is_empty() {
                Finding::ok(format!("{url} answers and has {}.", models.join(", ")))
            } else {
                Finding::warn(format!(
                    "{url} answers but does not list {}. Check SVC_MODEL_FAST, SVC_MODEL_BALANCED and \
                     SVC_MODEL_ADVANCED.",
                    missing.join(", ")
                ))
            }
        }
        (401 | 403, _) => {
            Finding::fail(format!("{url} rejected the key ({}). Check SVC_OPENAI_API_KEY.", response.status))
        }
        (status @ 500.., _) => Finding::fail(format!("{url} answered {status}.")),
        (status, _) => Finding::warn(format!("{url} answers, but does not list its models ({status}).")),
    })
}
