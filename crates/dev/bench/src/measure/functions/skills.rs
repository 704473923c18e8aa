//! Matching against many skills, and the import of the largest package.

use super::super::spread;
use super::{Bench, Shop};
use crate::load::Outcome;
use crate::machine::{median, memory, most_memory};
use crate::report::Section;
use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use skill_packages::{Fields, Package, PackageFile, SkillDocument};
use std::time::Instant;

const SKILLS: usize = 1_000;
const FILES: usize = 200;
/// Together a little less than 10 MiB.
const FILE_BYTES: usize = 52_000;

const TOPICS: [&str; 10] = [
    "returns",
    "invoices",
    "parcels",
    "refunds",
    "complaints",
    "discounts",
    "bookings",
    "repairs",
    "orders",
    "payments",
];

pub(super) fn measure(bench: &Bench<'_>, section: &mut Section, database: &str) -> Result<()> {
    let mut shop = Shop::open(&["--database", database])?;
    // The imported skill is one of those that are matched: a workspace has at most a thousand.
    imports(bench, section, &shop)?;
    matching(bench, section, &shop)?;
    shop.service.ask("stop")?;
    Ok(())
}

fn matching(bench: &Bench<'_>, section: &mut Section, shop: &Shop) -> Result<()> {
    let skills = if bench.plan.quick { 50 } else { SKILLS };
    for number in 1..skills {
        let [one, other] =
            [number, number / 10 + 3].map(|place| TOPICS.get(place % 10).copied().unwrap_or_default());
        let new = json!({
            "name": format!("{one}-{number}"),
            "description": format!("How to treat {one} of customers, with {other} of the department {number}. Use it when they write."),
            "instructions": "1. Ask for the number of the order.",
            "publish": true,
        });
        shop.server.ask("POST", "/api/v1/skills", Some(&new))?;
    }
    let body =
        json!({ "text": "Hello, I have a question about the refunds of my orders and a parcel" }).to_string();
    let load = bench.load(&shop.service, "POST /api/v1/skills/match", &body, 1)?;
    let mut times = Vec::new();
    for _ in 0..bench.plan.rounds {
        let outcome: Outcome = load.spawn()?;
        ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
        times.push(outcome.p50);
    }
    let shown = spread(&times, |time| format!("{time:.2}"));
    section.against(format!("`match` against {skills} skills: p50, ms"), shown, "≤ 5", median(&times) <= 5.0);
    Ok(())
}

fn imports(bench: &Bench<'_>, section: &mut Section, shop: &Shop) -> Result<()> {
    let body = json!({ "archive_base64": STANDARD.encode(package()?), "on_conflict": "replace" });
    let process = shop.service.id();
    let before = memory(process, "RssAnon")?;
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..bench.plan.rounds.max(3) {
        let began = Instant::now();
        let (_, peak) =
            most_memory(process, || shop.server.ask("POST", "/api/v1/skills/import", Some(&body)))?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
        peaks.push(peak - before);
    }
    let shown = spread(&times, |time| format!("{time:.0}"));
    let what = format!("import of {FILES} files and 10 MB");
    section.against(format!("{what}: ms"), shown, "≤ 500", median(&times) <= 500.0);
    section.state(
        format!("{what}: memory above idle, each round, MiB"),
        spread(&peaks, |peak| format!("{peak:.0}")),
    );
    Ok(())
}

/// A package that hardly compresses.
fn package() -> Result<Vec<u8>> {
    let fields = Fields {
        name: "largest".to_owned(),
        description: "The largest package that fits.".to_owned(),
        ..Fields::default()
    };
    let document = SkillDocument::new(&fields, "Read `references/0.md`.\n")
        .map_err(|fault| anyhow::anyhow!(fault.message))?;
    let mut state = 1_u64;
    let files = (0..FILES).map(|number| {
        let bytes = (0..FILE_BYTES).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Letters, so that the files are texts.
            b'a' + u8::try_from((state >> 33) % 26).unwrap_or_default()
        });
        PackageFile { path: format!("references/{number}.md"), bytes: bytes.collect() }
    });
    let package = Package { document, files: files.collect(), folder: None };
    package.write().map_err(|fault| anyhow::anyhow!("{fault:?}"))
}
