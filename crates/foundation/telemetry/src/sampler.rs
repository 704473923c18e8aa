//! Which traces are recorded, by the standard names of OpenTelemetry.

use model::Trace;

/// Decides for each request whether its trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// Whether the sampled flag of a `traceparent` decides, where one comes.
    follows_caller: bool,
    /// Of the 2^56 values that the random part of a trace id has, those below are recorded.
    below: u64,
}

/// The bits of a trace id that are random, as W3C Trace Context, level 2, defines them: the last 56.
const RANDOM_BITS: u32 = 56;

impl Sampler {
    /// The values of `OTEL_TRACES_SAMPLER`.
    pub const NAMES: [&str; 6] = [
        "always_on",
        "always_off",
        "traceidratio",
        "parentbased_always_on",
        "parentbased_always_off",
        "parentbased_traceidratio",
    ];

    /// The sampler with one of the [`NAMES`](Self::NAMES). `ratio`, from 0 to 1, is the share of traces that those with
    /// `traceidratio` record.
    pub fn named(name: &str, ratio: f64) -> Option<Self> {
        if !Self::NAMES.contains(&name) || !(0.0..=1.0).contains(&ratio) {
            return None;
        }
        let own = name.strip_prefix("parentbased_");
        let ratio = match own.unwrap_or(name) {
            "always_on" => 1.0,
            "always_off" => 0.0,
            _ => ratio,
        };
        // Exact: a power of two, and a share of it.
        let below = (ratio * (1_u64 << RANDOM_BITS) as f64) as u64;
        Some(Self { follows_caller: own.is_some(), below })
    }

    /// Whether to record the trace of a request that came with `received`, or that begins `own`.
    pub fn samples(&self, received: Option<&Trace>, own: &Trace) -> bool {
        match received {
            Some(received) if self.follows_caller => received.is_sampled(),
            _ => (own.trace_id() as u64) << (64 - RANDOM_BITS) >> (64 - RANDOM_BITS) < self.below,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(id: &str, flags: &str) -> Trace {
        Trace::parse(&format!("00-0af7651916cd43dd84{id}-b7ad6b7169203331-{flags}"), None).unwrap()
    }

    #[test]
    fn the_caller_decides_or_the_trace_id() {
        let (low, high) = ("00000000000001", "ffffffffffffff");
        for (name, ratio, received_on, received_off, low_id, high_id) in [
            ("always_on", 0.5, true, true, true, true),
            ("always_off", 0.5, false, false, false, false),
            ("traceidratio", 0.5, true, true, true, false),
            ("parentbased_always_on", 0.5, true, false, true, true),
            ("parentbased_always_off", 0.5, true, false, false, false),
            ("parentbased_traceidratio", 0.5, true, false, true, false),
            ("traceidratio", 0.0, false, false, false, false),
            ("traceidratio", 1.0, true, true, true, true),
        ] {
            let sampler = Sampler::named(name, ratio).unwrap();
            let received = |flags| {
                let trace = trace(low, flags);
                sampler.samples(Some(&trace), &trace)
            };
            let own = |id| sampler.samples(None, &trace(id, "00"));
            let found = (received("01"), received("00"), own(low), own(high));
            assert_eq!(found, (received_on, received_off, low_id, high_id), "{name} {ratio}");
        }
        for (name, ratio) in
            [("nothing", 1.0), ("always_on", 1.1), ("always_on", -0.1), ("always_on", f64::NAN)]
        {
            assert_eq!(Sampler::named(name, ratio), None, "{name} {ratio}");
        }
    }
}
