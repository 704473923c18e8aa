//! Tests of costs, routing and estimates of tokens.

use super::*;
use crate::estimates::{sixths, text_tokens};
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #[test]
    fn what_is_affordable_is_paid(input in 0i64..50_000, energy in 0i64..10_000, tier in 0usize..3) {
        let prices = Tiers::DEFAULT_PRICES[tier];
        let output = prices.affordable_output(energy, input);
        let cost = prices.energy(Usage { input_tokens: input, output_tokens: output, ..Usage::default() });
        prop_assert!(output == 0 || cost <= energy, "{cost} > {energy}");
    }
}

struct Silent;

impl Provider for Silent {
    fn complete<'a>(
        &'a self,
        _: &'a Prompt,
    ) -> BoxFuture<'a, std::result::Result<Completion, ProviderError>> {
        Box::pin(std::future::ready(Err(ProviderError::Timeout)))
    }
}

#[test]
fn a_prompt_fits_whichever_route_answers() {
    let route = |context_tokens| Route {
        provider: Arc::new(Silent),
        model: String::new(),
        label: String::new(),
        context_tokens,
    };
    let tier = |contexts: &[i64]| {
        let routes = contexts.iter().map(|tokens| route(*tokens)).collect();
        TierSetup { routes, prices: Tiers::DEFAULT_PRICES[0] }
    };
    assert_eq!(tier(&[32_768, 4096, 8192]).context_tokens(), 4096);
    assert_eq!(tier(&[]).context_tokens(), 8192);
}

#[test]
fn prices_are_written_as_they_are_read() {
    for prices in Tiers::DEFAULT_PRICES {
        assert_eq!(prices.to_string().parse(), Ok(prices));
    }
    assert_eq!("0, 0 ,7".parse(), Ok(Prices { input: 0, cached: 0, output: 7 }));
    for wrong in ["", "1,2", "1,2,3,4", "1,2,-3", "1,2,1000001", "1,2,x", "1.5,1,1"] {
        assert!(wrong.parse::<Prices>().is_err(), "{wrong}");
    }
}

#[test]
fn a_step_is_rounded_up_once() {
    let prices = Prices { input: 5, cached: 2, output: 20 };
    assert_eq!(prices.energy(Usage::default()), 0);
    let usage = Usage { input_tokens: 100, cached_tokens: 50, output_tokens: 10, reasoning_tokens: 5 };
    assert_eq!(prices.energy(usage), 1);
    assert_eq!(prices.energy(Usage { output_tokens: 51, ..Usage::default() }), 2);
}

proptest! {
    #[test]
    fn beginnings_are_as_long_as_they_may_be(text in ".{0,80}", tokens in 0i64..60) {
        let kept = beginning(&text, tokens);
        prop_assert!(text.starts_with(kept));
        let sixths_of = |text: &str| text.bytes().map(sixths).sum::<i64>();
        prop_assert!(sixths_of(kept) <= tokens * 6);
        if let Some(next) = text[kept.len()..].chars().next() {
            let longer = format!("{kept}{next}");
            prop_assert!(sixths_of(&longer) > tokens * 6);
        }
    }
}

#[test]
fn dense_scripts_are_not_underestimated() {
    // Texts, and upper guesses of what byte-pair tokenizers make of them.
    for (text, tokens) in [
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("今天天气很好，我们去公园散步吧。", 20),
        ("こんにちは、世界。お元気ですか？", 17),
        ("안녕하세요, 만나서 반갑습니다.", 19),
        ("Привет, как у тебя дела сегодня?", 14),
        ("สวัสดีครับ ยินดีที่ได้รู้จัก", 31),
        ("👩‍👩‍👧‍👦🏳️‍🌈", 24),
        ("a1b2c3d4e5f6a7b8", 11),
        ("{\"a\":[1,2,3],\"b\":{\"c\":null}}", 16),
    ] {
        let estimate = text_tokens(text);
        assert!(estimate >= tokens, "{text}: {estimate} < {tokens}");
        assert!(estimate <= 4 * tokens, "{text}: {estimate} is far above {tokens}");
    }
}
