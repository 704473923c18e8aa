//! A hundred functions of one workspace that loop for ever, next to requests and functions of another.

use super::super::{keys, spread};
use super::{Bench, CALL, CODE, Shop, check, publish};
use crate::child::text;
use crate::http::Server;
use crate::load::Outcome;
use crate::machine::median;
use crate::report::Section;
use anyhow::{Context, Result, ensure};

const ENDLESS: &str = "export default function () { for (;;) {} }";
const LOOPS: usize = 100;

pub(super) fn measure(bench: &Bench<'_>, section: &mut Section, database: &str) -> Result<()> {
    let mut shop = Shop::open(&["--database", database, "--workspaces", "2"])?;
    let [looping, other] = keys(&shop.service).try_into().ok().context("the service made two keys")?;
    let endless = publish(&shop.server, "endless", ENDLESS, 1_000)?;
    let own = Server { address: text(&shop.service.hello, "address")?.to_owned(), token: other.clone() };
    let path = publish(&own, "shipping", CODE, 10_000)?;
    check(&own, &path)?;
    for (what, target, body, most) in [
        ("`GET /me`", "GET /api/v1/me".to_owned(), "", 2.0),
        ("functions of another workspace", format!("POST {path}"), CALL, 3.0),
    ] {
        let mut load = bench.load(&shop.service, &target, body, 16)?;
        load.keys = vec![other.clone()];
        let mut loops = bench.load(&shop.service, &format!("POST {endless}"), "{}", LOOPS)?;
        loops.keys = vec![looping.clone()];
        // The loops begin before the other load and end after it.
        loops.seconds = bench.plan.seconds + 2.0;
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..bench.plan.rounds {
            alone.push(checked(load.spawn()?)?);
            beside.push(std::thread::scope(|scope| -> Result<_> {
                let looping = scope.spawn(|| loops.spawn());
                std::thread::sleep(std::time::Duration::from_secs(1));
                let outcome = checked(load.spawn()?)?;
                looping.join().ok().context("the load panicked")??;
                Ok(outcome)
            })?);
        }
        state(section, what, most, &alone, &beside);
    }
    shop.service.ask("stop")?;
    Ok(())
}

fn checked(outcome: Outcome) -> Result<Outcome> {
    ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
    Ok(outcome)
}

fn state(section: &mut Section, what: &str, most: f64, alone: &[Outcome], beside: &[Outcome]) {
    let p99 = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome.p99).collect::<Vec<_>>();
    let (alone, beside) = (p99(alone), p99(beside));
    let show = |value: f64| format!("{value:.1}");
    section.state(format!("{what}: p99 alone, ms"), spread(&alone, show));
    section.state(format!("{what}: p99 next to {LOOPS} endless functions, ms"), spread(&beside, show));
    let ratios: Vec<f64> = alone.iter().zip(&beside).map(|(alone, beside)| beside / alone).collect();
    let met = median(&ratios) <= most;
    section.against(
        format!("{what}: p99 next to them ÷ alone"),
        spread(&ratios, show),
        &format!("≤ {most}"),
        met,
    );
}
