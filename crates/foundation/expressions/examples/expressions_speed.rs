//! How long a path, a formula-like expression, a condition and a text of 2 KiB take.
//!
//!     cargo run --release -p expressions --example expressions_speed

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement for people")]

use expressions::{Condition, Context, Expression, Roots, Template};
use model::Timestamp;
use serde_json::{Map, Value, json};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 20_000;

fn measure(name: &str, most_us: f64, mut run: impl FnMut()) {
    (0..ROUNDS / 10).for_each(|_| run());
    let start = Instant::now();
    (0..ROUNDS).for_each(|_| run());
    let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS);
    println!("{name:<40} {each:>8.2} µs (at most {most_us})");
}

fn main() {
    let items: Vec<Value> = (0..1000).map(|place| json!({ "sku": place, "price": 12.5 })).collect();
    let scope: Map<String, Value> = json!({
        "nodes": { "a": { "output": { "items": items } } },
        "contact": { "$name": "Ana Souza", "city": "São Paulo", "points": 120, "tags": ["vip", "new"] },
    })
    .as_object()
    .unwrap()
    .clone();
    let roots = Roots::new(&["nodes", "contact"]);
    let context = Context::new(&scope, Timestamp::from_millis(1_800_000_000_000));

    let path = Expression::parse("$nodes.a.output.items[0].price", &roots).unwrap();
    measure("path", 10.0, || drop(black_box(path.evaluate(&context))));

    let computed = Expression::parse("round($contact.points * 1.21 + 3, 2) > 100", &roots).unwrap();
    measure("computed", 10.0, || drop(black_box(computed.evaluate(&context))));

    let reference = "{{ $contact.$name | default: 'there' }} {{ $contact.city }} ";
    let filler = "Lorem ipsum dolor sit amet. ".repeat(12);
    let text: String = (0..5).map(|_| format!("{reference}{filler}")).collect();
    let template = Template::parse(&text, &roots).unwrap();
    measure(&format!("text of {} bytes, 10 references", text.len()), 50.0, || {
        drop(black_box(template.text(&context)));
    });
    measure("the same, parsed each time", 500.0, || drop(black_box(Template::parse(&text, &roots))));

    let condition = json!({ "and": [
        { "left": "$contact.points", "op": "gte", "right": 100 },
        { "left": "$contact.tags", "op": "has_tag", "right": "VIP" },
        { "left": "$contact.city", "op": "matches", "right": "^S" },
    ] });
    let condition = Condition::parse(&condition, &roots).unwrap();
    measure("condition of three comparisons", 10.0, || drop(black_box(condition.holds(&context))));
}
