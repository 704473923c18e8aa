//! Sampling of the next token from the logits.

use toktrie::SimpleVob;

/// The default temperature, as recommended by the model's authors.
const DEFAULT_TEMPERATURE: f32 = 0.2;
/// Only the most likely tokens are candidates: at most this many …
const TOP_K: usize = 40;
/// … and only until the sum of their probabilities reaches this.
const TOP_P: f32 = 0.9;
/// The number of latest tokens that count as repeated, and the factor that reduces their logits. Without this, small
/// models run into loops.
const REPETITION_WINDOW: usize = 64;
const REPETITION_PENALTY: f32 = 1.1;

/// A sampler that is reproducible for a seed.
pub(crate) struct Sampler {
    temperature: f32,
    state: u64,
}

impl Sampler {
    /// Creates a sampler. `None` selects the default temperature; values that are not finite count as 0.
    pub(crate) fn new(temperature: Option<f32>, seed: u64) -> Self {
        let temperature = temperature.unwrap_or(DEFAULT_TEMPERATURE);
        let temperature = if temperature.is_finite() { temperature.clamp(0., 2.) } else { 0. };
        Self { temperature, state: seed }
    }

    /// Returns the next token from those allowed (`None` allows all). Returns `None` if no token is allowed.
    pub(crate) fn pick(&mut self, logits: &[f32], allowed: Option<&SimpleVob>) -> Option<u32> {
        let mut candidates: Vec<(u32, f32)> = (0u32..)
            .zip(logits.iter().copied())
            .filter(|(token, logit)| !logit.is_nan() && allowed.is_none_or(|set| set.is_allowed(*token)))
            .collect();
        // Descending by logit, then ascending by token, so that ties are always resolved the same way.
        let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if self.temperature < 0.01 {
            return candidates.into_iter().min_by(order).map(|(token, _)| token);
        }
        if candidates.len() > TOP_K {
            candidates.select_nth_unstable_by(TOP_K, order);
            candidates.truncate(TOP_K);
        }
        candidates.sort_unstable_by(order);
        let best = candidates.first()?.1;
        let weights: Vec<f32> =
            candidates.iter().map(|(_, logit)| ((logit - best) / self.temperature).exp()).collect();
        let total: f32 = weights.iter().sum();
        let mut kept = 0.;
        let count = weights.iter().take_while(|weight| {
            let before = kept;
            kept += **weight;
            before < TOP_P * total
        });
        let count = count.count().max(1);
        let mut left = self.random() * weights.iter().take(count).sum::<f32>();
        let drawn = candidates.iter().zip(&weights).take(count).find(|(_, weight)| {
            left -= **weight;
            left < 0.
        });
        drawn.map(|(candidate, _)| candidate.0).or_else(|| candidates.first().map(|(token, _)| *token))
    }

    /// Returns a number in 0..1, by SplitMix64.
    fn random(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (mix(self.state) >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Returns the output function of SplitMix64, which scatters the bits of a number.
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Reduces the likelihood of tokens in the recent output.
pub(crate) fn discourage_repetition(logits: &mut [f32], output: &[u32]) {
    let mut recent: Vec<u32> = output.iter().rev().take(REPETITION_WINDOW).copied().collect();
    recent.sort_unstable();
    recent.dedup();
    for token in recent {
        if let Some(logit) = logits.get_mut(token as usize) {
            *logit = if *logit > 0. { *logit / REPETITION_PENALTY } else { *logit * REPETITION_PENALTY };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logits() -> Vec<f32> {
        (0..100u64).map(|i| (mix(i) % 1000) as f32 / 250.).collect()
    }

    fn draw(temperature: f32, seed: u64) -> Vec<u32> {
        let mut sampler = Sampler::new(Some(temperature), seed);
        (0..50).map(|_| sampler.pick(&logits(), None).unwrap()).collect()
    }

    #[test]
    fn equal_seeds_draw_equal_tokens() {
        assert_eq!(draw(1., 7), draw(1., 7));
        assert_ne!(draw(1., 7), draw(1., 8));
    }

    #[test]
    fn temperature_zero_takes_the_best_and_the_first_of_equals() {
        let drawn = draw(0., 1);
        assert!(drawn.iter().all(|token| *token == drawn[0]));
        let mut sampler = Sampler::new(Some(f32::NAN), 1);
        assert_eq!(sampler.pick(&[1., 3., f32::NAN, 3.], None), Some(1));
    }

    #[test]
    fn draws_only_what_is_allowed() {
        let mut allowed = SimpleVob::alloc(100);
        allowed.allow_token(4);
        allowed.allow_token(9);
        let mut sampler = Sampler::new(Some(2.), 3);
        assert!((0..50).all(|_| matches!(sampler.pick(&logits(), Some(&allowed)), Some(4 | 9))));
        assert_eq!(sampler.pick(&logits(), Some(&SimpleVob::alloc(100))), None);
        assert_eq!(sampler.pick(&[], None), None);
    }

    #[test]
    fn repetition_lowers_logits_of_both_signs_once() {
        let mut logits = vec![2.2, -1., 5.];
        discourage_repetition(&mut logits, &[0, 0, 1, 77]);
        assert!((logits[0] - 2.).abs() < 1e-6 && (logits[1] + 1.1).abs() < 1e-6 && logits[2] == 5.);
    }
}
