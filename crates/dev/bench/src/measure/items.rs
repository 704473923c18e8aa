//! Items of a collection: reads and writes, compared with PocketBase and with a bare handler that sends the same
//! responses.

use super::peer::{self, PocketBase};
use super::{Bench, keys, postgres, spread, whole};
use crate::child::{Child, text};
use crate::http::Server;
use crate::load::{self, Outcome};
use crate::machine::median;
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub const CATEGORIES: [&str; 20] = [
    "toys", "books", "games", "music", "tools", "garden", "kitchen", "office", "sports", "travel", "beauty",
    "health", "shoes", "bags", "watches", "phones", "audio", "video", "pets", "food",
];

/// 97 words. As the number is prime, all combinations of words occur.
pub const WORDS: [&str; 97] = [
    "amber", "anchor", "apple", "arrow", "autumn", "bamboo", "basil", "beacon", "birch", "bloom", "breeze",
    "bridge", "bright", "bronze", "canyon", "cedar", "cherry", "chrome", "cinder", "citrus", "clover",
    "cobalt", "copper", "coral", "cotton", "crimson", "crystal", "delta", "desert", "drift", "eagle",
    "ember", "falcon", "feather", "fern", "flint", "forest", "frost", "garnet", "ginger", "glacier",
    "golden", "granite", "harbor", "hazel", "heather", "hollow", "honey", "indigo", "iris", "iron", "island",
    "ivory", "jade", "jasper", "juniper", "lagoon", "laurel", "lemon", "lilac", "linen", "lotus", "lunar",
    "magnet", "maple", "marble", "meadow", "mint", "mirror", "misty", "moss", "nectar", "nimbus", "oak",
    "oasis", "ocean", "olive", "onyx", "opal", "orchid", "pearl", "pepper", "pine", "plum", "prairie",
    "quartz", "raven", "reef", "river", "saffron", "sage", "scarlet", "silver", "spruce", "stone", "velvet",
    "willow",
];

/// Returns the element of `list` for a number.
fn choose(list: &[&'static str], number: u64) -> &'static str {
    usize::try_from(number).ok().and_then(|number| list.get(number % list.len())).copied().unwrap_or_default()
}

/// Builds row `n` of the products, counted from 1. PocketBase has the same rows.
pub fn row(n: u64) -> Value {
    let word = |place: u64| choose(&WORDS, n * (31 + place * 2));
    let description: Vec<&str> = (0..8).map(word).collect();
    json!({
        "name": format!("Product {n}"),
        "sku": format!("SKU-{n:07}"),
        "category": choose(&CATEGORIES, n),
        "price": (n * 7919 % 100_000) as f64 / 100.0,
        "stock": n % 500,
        "active": !n.is_multiple_of(3),
        "description": description.join(" "),
        "released_on": "2026-01-01",
    })
}

/// A kind of request to both sides.
struct Request {
    name: &'static str,
    ours: String,
    ours_body: String,
    theirs: &'static str,
    theirs_body: &'static str,
    /// The least accepted ratio of our rate to theirs.
    target: f64,
    /// Whether the request writes. Writes change the data that the others read, so they come last, and there is no
    /// bare handler for them.
    writes: bool,
}

fn requests(items: &str) -> Vec<Request> {
    let made = json!({ "data": row(12_345) }).to_string();
    vec![
        Request {
            name: "one item by id",
            ours: format!("GET {items}/{{n}}"),
            ours_body: String::new(),
            theirs: "GET /api/collections/products/records/{n15}",
            theirs_body: "",
            target: 5.0,
            writes: false,
        },
        Request {
            name: "newest 20 items",
            ours: format!("GET {items}?limit=20"),
            ours_body: String::new(),
            theirs: "GET /api/collections/products/records?perPage=20&sort=-created&skipTotal=1",
            theirs_body: "",
            target: 4.0,
            writes: false,
        },
        Request {
            name: "20 items by two filters and another sort",
            ours: format!(
                "GET {items}?filter[price][gt]=500&filter[category]=toys&sort=-updated_at&limit=20"
            ),
            ours_body: String::new(),
            theirs: "GET /api/collections/products/records?perPage=20&sort=-updated&skipTotal=1&filter=price%3E500%26%26category%3D%27toys%27",
            theirs_body: "",
            target: 20.0,
            writes: false,
        },
        Request {
            name: "search for two words, first page",
            ours: format!("GET {items}/search?q=amber+copper&limit=20"),
            ours_body: String::new(),
            theirs: "GET /api/collections/products/records?perPage=20&skipTotal=1&filter=description~%27amber%27%26%26description~%27copper%27",
            theirs_body: "",
            target: 2.0,
            writes: false,
        },
        Request {
            name: "update one field of one item",
            ours: format!("PATCH {items}/{{n}}"),
            ours_body: r#"{"data":{"stock":{m}}}"#.to_owned(),
            theirs: "PATCH /api/collections/products/records/{n15}",
            theirs_body: r#"{"stock":{m}}"#,
            target: 3.0,
            writes: true,
        },
        Request {
            name: "create one item, durable",
            ours: format!("POST {items}"),
            ours_body: made,
            theirs: "POST /api/collections/products/records",
            theirs_body: r#"{"name":"Product 12345","sku":"SKU-0012345","category":"garden","price":590.55,"stock":345,"active":false,"description":"prairie silver bamboo canyon crystal fern glacier indigo","released_on":"2026-01-01"}"#,
            target: 3.0,
            writes: true,
        },
    ]
}

const CONNECTIONS: usize = 32;
/// The number of connections that create items on PostgreSQL, as its target demands.
const WRITING_CONNECTIONS: usize = 64;

/// Measures 100,000 items, compared with PocketBase.
pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let rows = if bench.plan.quick { 5_000 } else { 100_000 };
    let mut section = Section::new("Items, 100,000 of 8 fields, 32 connections, against PocketBase");
    let mut service = Child::start(&["serve-svc", "--database", &bench.sqlite("items.db")])?;
    let (items, seeded) = seed(&service, rows)?;
    let peer = match peer::program() {
        Some(program) => {
            Some(PocketBase::with_products(&program, &bench.folder.path().join("pocketbase"), rows)?)
        }
        None => None,
    };
    let bulk = rows as f64 / seeded.as_secs_f64();
    section.against("bulk-create of 1,000 rows a call, rows/s", whole(bulk), "≥ 10,000", bulk >= 10_000.0);
    match postgres("svc_bench_items")? {
        Some(database) => on_postgres(bench, &mut section, &database, (&service, &items), rows)?,
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    for request in requests(&items) {
        compare(bench, &mut section, &service, peer.as_ref(), &request, rows)?;
    }
    drop(service.ask("stop")?);
    section.note(
        "Ours with `synchronous=FULL`, an activity entry, an event, full-text terms and a request-log row for every change; \
         PocketBase with its defaults, by a superuser's token, `skipTotal=1`, real columns, and indexes on price, category, \
         created and updated. Updates and reads by id draw an id for each request.",
    );
    Ok(section)
}

/// Measures PostgreSQL: reads by id, in turns with the service on SQLite, and creates.
fn on_postgres(
    bench: &Bench<'_>,
    section: &mut Section,
    database: &str,
    (sqlite, sqlite_items): (&Child, &str),
    rows: u64,
) -> Result<()> {
    let mut service = Child::start(&["serve-svc", "--database", database])?;
    let (items, seeded) = seed(&service, rows)?;
    let bulk = rows as f64 / seeded.as_secs_f64();
    let name = "PostgreSQL: bulk-create of 1,000 rows a call, rows/s";
    section.against(name, whole(bulk), "≥ 12,000", bulk >= 12_000.0);
    let by_id = |service, items: &str| {
        let mut load = bench.load(service, &format!("GET {items}/{{n}}"), "", CONNECTIONS)?;
        load.spread = rows;
        anyhow::Ok(load)
    };
    let (theirs, ours) = (by_id(sqlite, sqlite_items)?, by_id(&service, &items)?);
    let body = json!({ "data": row(12_345) }).to_string();
    let create = bench.load(&service, &format!("POST {items}"), &body, WRITING_CONNECTIONS)?;
    let (mut ratios, mut rates, mut created) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.plan.rounds {
        let (sqlite, postgres) = (theirs.spawn()?, ours.spawn()?);
        rates.push(postgres.rate());
        ratios.push(postgres.rate() / sqlite.rate());
        check(&[sqlite, postgres])?;
    }
    for _ in 0..bench.plan.rounds {
        created.push(create.spawn()?);
    }
    check(&created)?;
    section.state("PostgreSQL: one item by id, requests/s", spread(&rates, whole));
    let shown = spread(&ratios, |ratio| format!("{ratio:.2}"));
    section.against("PostgreSQL: one item by id ÷ SQLite", shown, "≥ 0.5", median(&ratios) >= 0.5);
    let of = |number: fn(&Outcome) -> f64| created.iter().map(number).collect::<Vec<_>>();
    let rates = of(Outcome::rate);
    let name = "PostgreSQL: create one item, durable, 64 connections, requests/s";
    section.against(name, spread(&rates, whole), "≥ 3,500", median(&rates) >= 3_500.0);
    section.state(
        "PostgreSQL: create one item: p50 / p99, ms; processor time of the service, µs",
        format!(
            "{:.1} / {:.1}; {:.0}",
            median(&of(|outcome| outcome.p50)),
            median(&of(|outcome| outcome.p99)),
            median(&of(Outcome::server_micros))
        ),
    );
    service.ask("stop")?;
    Ok(())
}

/// Measures the filtered list at two sizes.
pub fn measure_growth(bench: &Bench<'_>) -> Result<Section> {
    let sizes: [u64; 2] = if bench.plan.quick { [2_000, 10_000] } else { [100_000, 1_000_000] };
    let mut section = Section::new("Items, 100,000 and 1,000,000: the filtered list");
    let mut p99 = Vec::new();
    for rows in sizes {
        let mut service =
            Child::start(&["serve-svc", "--database", &bench.sqlite(&format!("items-{rows}.db"))])?;
        let (items, _) = seed(&service, rows)?;
        for request in requests(&items).into_iter().take(4) {
            let load = ours(bench, &service, &request, rows)?;
            let outcomes = (0..bench.plan.rounds).map(|_| load.spawn()).collect::<Result<Vec<Outcome>>>()?;
            check(&outcomes)?;
            let of = |number: fn(&Outcome) -> f64| outcomes.iter().map(number).collect::<Vec<_>>();
            section.state(
                format!("{}: {rows} items, requests/s", request.name),
                spread(&of(Outcome::rate), whole),
            );
            section.state(
                format!("{}: {rows} items, p50 / p99, ms", request.name),
                format!(
                    "{:.2} / {:.2}",
                    median(&of(|outcome| outcome.p50)),
                    median(&of(|outcome| outcome.p99))
                ),
            );
            if request.target >= 20.0 {
                p99.push(median(&of(|outcome| outcome.p99)));
            }
        }
        service.ask("stop")?;
    }
    if let [small, large] = p99[..] {
        let ratio = large / small;
        section.against(
            "filtered list: p99 at the larger ÷ at the smaller",
            format!("{ratio:.2}"),
            "≤ 2",
            ratio <= 2.0,
        );
    }
    Ok(section)
}

fn ours(bench: &Bench<'_>, service: &Child, request: &Request, rows: u64) -> Result<load::Arguments> {
    let mut load = bench.load(service, &request.ours, &request.ours_body, CONNECTIONS)?;
    load.spread = rows;
    Ok(load)
}

fn compare(
    bench: &Bench<'_>,
    section: &mut Section,
    service: &Child,
    peer: Option<&PocketBase>,
    request: &Request,
    rows: u64,
) -> Result<()> {
    let load = ours(bench, service, request, rows)?;
    let floor = if request.writes { None } else { Some(floor(service, request)?) };
    let (mut ours, mut theirs, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.plan.rounds {
        ours.push(load.spawn()?);
        if let Some(peer) = peer {
            theirs.push(
                load::Arguments {
                    address: peer.server.address.clone(),
                    process: peer.id(),
                    target: request.theirs.to_owned(),
                    body: request.theirs_body.to_owned(),
                    keys: vec![peer.server.token.clone()],
                    ..load.clone()
                }
                .spawn()?,
            );
        }
        if let Some(floor) = &floor {
            let address = text(&floor.hello, "address")?.to_owned();
            floors.push(load::Arguments { address, process: floor.id(), ..load.clone() }.spawn()?);
        }
    }
    check(&ours)?;
    check(&theirs)?;
    report(section, request, &ours, &theirs, &floors);
    Ok(())
}

fn report(
    section: &mut Section,
    request: &Request,
    ours: &[Outcome],
    theirs: &[Outcome],
    floors: &[Outcome],
) {
    let of =
        |outcomes: &[Outcome], number: fn(&Outcome) -> f64| outcomes.iter().map(number).collect::<Vec<_>>();
    section.state(format!("{}: requests/s", request.name), spread(&of(ours, Outcome::rate), whole));
    section.state(
        format!("{}: p50 / p99, ms; processor time, µs", request.name),
        format!(
            "{:.2} / {:.2}; {:.0}",
            median(&of(ours, |outcome| outcome.p50)),
            median(&of(ours, |outcome| outcome.p99)),
            median(&of(ours, Outcome::server_micros))
        ),
    );
    if !theirs.is_empty() {
        section.state(
            format!("{}: PocketBase, requests/s", request.name),
            spread(&of(theirs, Outcome::rate), whole),
        );
        let ratios: Vec<f64> =
            ours.iter().zip(theirs).map(|(ours, theirs)| ours.rate() / theirs.rate()).collect();
        let shown = spread(&ratios, |ratio| format!("{ratio:.1}"));
        let met = median(&ratios) >= request.target;
        section.against(
            format!("{}: ours ÷ PocketBase", request.name),
            shown,
            &format!("≥ {}", request.target),
            met,
        );
    }
    if !floors.is_empty() {
        let ratios: Vec<f64> =
            ours.iter().zip(floors).map(|(ours, floor)| ours.rate() / floor.rate()).collect();
        section.state(
            format!("{}: ours ÷ a bare handler with the same bytes", request.name),
            spread(&ratios, |ratio| format!("{ratio:.2}")),
        );
    }
}

fn check(outcomes: &[Outcome]) -> Result<()> {
    for outcome in outcomes {
        ensure!(outcome.done() == outcome.total(), "not every answer was a success: {:?}", outcome.statuses);
    }
    Ok(())
}

/// Starts a bare handler that repeats one response of the service.
fn floor(service: &Child, request: &Request) -> Result<Child> {
    let path = request.ours.trim_start_matches("GET ").replace("{n}", "77");
    let (head, body) = ask(service)?.exchange("GET", &path, "")?;
    ensure!(head.starts_with("HTTP/1."), "{head}");
    let own = ["date", "content-length", "connection"];
    let headers: Vec<(String, String)> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .filter(|(name, _)| !own.contains(&name.as_str()))
        .collect();
    Child::start(&["serve-floor", "--headers", &json!(headers).to_string(), "--body", &body])
}

fn ask(service: &Child) -> Result<Server> {
    let token = keys(service).into_iter().next().context("the service made no key")?;
    Ok(Server { address: text(&service.hello, "address")?.to_owned(), token })
}

/// Builds the collection of products.
pub fn products() -> Value {
    let field = |key: &str, kind: &str, options: Value| json!({ "field_key": key, "label": key, "type": kind, "options": options });
    let choices: Vec<Value> = CATEGORIES.iter().map(|key| json!({ "key": key, "label": key })).collect();
    json!({
        "name": "Products",
        "fields": [
            field("name", "text", json!({})),
            field("sku", "text", json!({})),
            field("category", "select", json!({ "choices": choices })),
            field("price", "number", json!({ "precision": 2 })),
            field("stock", "integer", json!({})),
            field("active", "boolean", json!({})),
            field("description", "long_text", json!({})),
            field("released_on", "date", json!({})),
        ],
    })
}

/// Creates the collection, its indexes and its rows through the API. Returns the path of its items and the time for
/// the rows.
fn seed(service: &Child, rows: u64) -> Result<(String, Duration)> {
    let server = ask(service)?;
    let made = server.ask("POST", "/api/v1/collections", Some(&products()))?;
    let id = made.pointer("/data/id").and_then(Value::as_i64).context("no collection")?;
    let collection = format!("/api/v1/collections/{id}");
    for name in ["price", "category", "updated_at"] {
        let body = json!({ "fields": [{ "field": name }] });
        server.ask("POST", &format!("{collection}/indexes"), Some(&body))?;
    }
    until_indexed(&server, &collection, 3)?;
    let began = Instant::now();
    for first in (1..=rows).step_by(1_000) {
        let chunk: Vec<Value> =
            (first..(first + 1_000).min(rows + 1)).map(|n| json!({ "data": row(n) })).collect();
        server.ask("POST", &format!("{collection}/items/bulk-create"), Some(&json!({ "rows": chunk })))?;
    }
    let took = began.elapsed();
    // Repeat the filtered list until the service creates an index for it.
    let filtered = requests(&format!("{collection}/items")).into_iter().nth(2).context("no such request")?;
    for _ in 0..60 {
        server.ask("GET", filtered.ours.trim_start_matches("GET "), None)?;
    }
    std::thread::sleep(Duration::from_secs(2));
    until_indexed(&server, &collection, 3)?;
    Ok((format!("{collection}/items"), took))
}

/// Waits until there are at least `least` indexes and all are ready.
pub fn until_indexed(server: &Server, collection: &str, least: usize) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        let answer = server.ask("GET", &format!("{collection}/indexes"), None)?;
        let indexes = answer.get("data").and_then(Value::as_array).context("no indexes")?;
        let ready =
            indexes.iter().filter(|index| index.get("status").is_some_and(|status| status == "ready"));
        if ready.count() == indexes.len() && indexes.len() >= least {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the indexes are not ready: {answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
