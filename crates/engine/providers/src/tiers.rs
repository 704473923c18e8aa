//! Tiers: the models that callers choose from, with their prices and the routes to fall back on.

use crate::answer::{ModelAnswer, ProviderError, Usage};
use crate::estimates::estimated_usage;
use crate::prompt::Prompt;
use crate::provider::Route;
use crate::spans;
use crate::thoughts;
use model::{Code, Error, Result, text_enum};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

text_enum! {
    /// A model tier: a choice by speed, quality and price.
    #[derive(Default, Hash)]
    pub enum Tier {
        /// Fast and inexpensive.
        Fast = "fast",
        /// The default: a balance of quality and price.
        #[default]
        Balanced = "balanced",
        /// The best answers, at the highest price.
        Advanced = "advanced",
    }
}

/// Prices of a tier, in Energy per 1,000 tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Tokens of the prompt that were not cached.
    pub input: i64,
    /// Tokens of the prompt that were.
    pub cached: i64,
    /// Tokens of the answer, thinking included.
    pub output: i64,
}

impl Prices {
    /// The Energy of a call, rounded up once (decision 15).
    pub fn energy(&self, usage: Usage) -> i64 {
        let fresh = usage.input_tokens.saturating_sub(usage.cached_tokens).max(0);
        let thousandths = fresh
            .saturating_mul(self.input)
            .saturating_add(usage.cached_tokens.max(0).saturating_mul(self.cached))
            .saturating_add(usage.output_tokens.max(0).saturating_mul(self.output));
        thousandths.saturating_add(999) / 1000
    }

    /// The longest answer that `energy` pays for after a prompt of `input_tokens`.
    pub fn affordable_output(&self, energy: i64, input_tokens: i64) -> i64 {
        if self.output <= 0 {
            return i64::MAX;
        }
        let left = energy.saturating_mul(1000).saturating_sub(input_tokens.saturating_mul(self.input));
        (left / self.output).max(0)
    }
}

/// As operators write it: the three prices, separated by commas.
impl fmt::Display for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.input, self.cached, self.output)
    }
}

impl FromStr for Prices {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong =
            || format!("`{text}` is not three whole numbers from 0 to {MOST_PRICE}, separated by commas");
        let price = |text: &str| text.trim().parse().ok().filter(|price| (0..=MOST_PRICE).contains(price));
        let prices: Option<Vec<i64>> = text.split(',').map(price).collect();
        match prices.as_deref() {
            Some(&[input, cached, output]) => Ok(Self { input, cached, output }),
            _ => Err(wrong()),
        }
    }
}

/// The highest price, in Energy per 1,000 tokens.
const MOST_PRICE: i64 = 1_000_000;

/// A tier as this installation runs it.
#[derive(Clone)]
pub struct TierSetup {
    /// The model, then those to fall back on, in order. Empty if the tier has no model.
    pub routes: Vec<Route>,
    /// Its prices, which are the same for all routes.
    pub prices: Prices,
}

/// All tiers of this installation.
#[derive(Clone)]
pub struct Tiers {
    /// [`Tier::Fast`]
    pub fast: TierSetup,
    /// [`Tier::Balanced`]
    pub balanced: TierSetup,
    /// [`Tier::Advanced`]
    pub advanced: TierSetup,
}

impl Tiers {
    /// The prices of a service without configured ones.
    pub const DEFAULT_PRICES: [Prices; 3] = [
        Prices { input: 1, cached: 1, output: 4 },
        Prices { input: 5, cached: 2, output: 20 },
        Prices { input: 25, cached: 8, output: 100 },
    ];

    /// Refuses work for a tier without a model.
    ///
    /// # Errors
    /// `model_not_configured`.
    pub fn expect_model(&self, tier: Tier) -> Result<()> {
        if !self.get(tier).routes.is_empty() {
            return Ok(());
        }
        let (name, setting) = (tier.as_str(), tier.as_str().to_uppercase());
        let message = format!(
            "The service has no model for the tier `{name}`. Its operator sets SVC_MODEL_FILE for the embedded model, or \
             SVC_MODEL_{setting} to openai:MODEL with SVC_OPENAI_BASE_URL and SVC_OPENAI_API_KEY."
        );
        Err(Error::new(Code::ModelNotConfigured, message))
    }

    /// Returns the setup of a tier.
    pub fn get(&self, tier: Tier) -> &TierSetup {
        match tier {
            Tier::Fast => &self.fast,
            Tier::Balanced => &self.balanced,
            Tier::Advanced => &self.advanced,
        }
    }
}

impl TierSetup {
    /// The `model_revision` that callers see.
    pub fn label(&self) -> String {
        self.routes.first().map(|route| route.label.clone()).unwrap_or_default()
    }

    /// Tokens that prompt and answer may have together, whichever route answers.
    pub fn context_tokens(&self) -> i64 {
        self.routes.iter().map(|route| route.context_tokens).min().unwrap_or(8192)
    }

    /// Asks the tier's model, and where it is unavailable or silent the ones to fall back on. Each may use an equal share
    /// of the patience that is left, so that one that hangs leaves time for the others.
    ///
    /// # Errors
    /// The error of the last route that was tried.
    pub async fn complete(&self, mut prompt: Prompt) -> std::result::Result<ModelAnswer, ProviderError> {
        let (began, patience) = (Instant::now(), prompt.patience);
        let trace = prompt.trace.take();
        let mut last = ProviderError::Unavailable("no model is configured".to_owned());
        for (route, left) in self.routes.iter().zip((1..=self.routes.len()).rev()) {
            prompt.model.clone_from(&route.model);
            let left = u32::try_from(left).unwrap_or(u32::MAX);
            prompt.patience = patience.saturating_sub(began.elapsed()) / left;
            let mut span = trace.as_ref().map(|trace| spans::call(&prompt.tracer, trace, route));
            prompt.trace = span.as_ref().map(|span| span.trace().clone());
            let answered = route.provider.complete(&prompt).await;
            if let Some(span) = &mut span {
                spans::note_call(span, &answered);
            }
            match answered {
                Ok(mut completion) => {
                    let said = completion.usage;
                    let usage = said.unwrap_or_else(|| estimated_usage(&prompt, &completion)).believable();
                    let (usage_estimated, label) = (said.is_none(), route.label.clone());
                    // They were paid, but they are not for the customer, nor for the next prompt.
                    completion.text = thoughts::spoken(&completion.text).to_owned();
                    return Ok(ModelAnswer { completion, usage, usage_estimated, label });
                }
                Err(ProviderError::Cancelled) => return Err(ProviderError::Cancelled),
                Err(error @ ProviderError::Refused(_)) => {
                    prompt.attempts.note(&prompt.model, &error);
                    // Callers get no details, because the message is the server's.
                    tracing::warn!(%error, model = route.label, "a model refused a prompt");
                    return Err(error);
                }
                Err(error) => {
                    tracing::warn!(%error, model = route.label, "a model did not answer");
                    prompt.attempts.note(&prompt.model, &error);
                    prompt.begin_anew();
                    last = error;
                }
            }
        }
        Err(last)
    }
}
