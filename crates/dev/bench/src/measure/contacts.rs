//! Contacts: reads and writes compared with PocketBase, and operations without a counterpart there: upserts, counts,
//! imports and merges.

use super::peer::{self, PocketBase};
use super::{Bench, keys, postgres, spread, whole};
use crate::child::{Child, text};
use crate::http::Server;
use crate::load::{self, Outcome};
use crate::machine::{median, memory};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use diesel::SqliteConnection;
use diesel::connection::SimpleConnection;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 32;
/// The number of connections that upsert. The writer batches upserts that wait together.
const UPSERTING: usize = 64;
/// The number of connections that read counts.
const COUNTING: usize = 4;
/// The number of contacts in one import, about as many as fit into a request.
const IMPORTED: u64 = 50_000;
/// The number of rows of each of two contacts that are merged.
const MERGED: u64 = 10_000;
/// The target for the time of a merge.
const MERGE: Duration = Duration::from_secs(1);

const STAGES: [&str; 7] = ["new", "contacted", "qualified", "proposal", "negotiation", "won", "lost"];
const SOURCES: [&str; 5] = ["website", "chat", "referral", "event", "other"];
const COUNTRIES: [&str; 10] = ["BR", "PT", "ES", "MX", "AR", "CL", "CO", "PE", "US", "DE"];

/// A view by two conditions.
const VIEW: &str =
    r#"{"and":[{"field":"$stage","op":"eq","value":"won"},{"field":"$country","op":"eq","value":"PT"}]}"#;

/// A kind of request to both sides.
struct Request {
    name: &'static str,
    ours: String,
    ours_body: &'static str,
    theirs: &'static str,
    theirs_body: &'static str,
    /// The least accepted ratio of our rate to theirs.
    target: f64,
}

fn requests() -> Vec<Request> {
    let request = |name, ours: &str, theirs, target| Request {
        name,
        ours: ours.to_owned(),
        ours_body: "",
        theirs,
        theirs_body: "",
        target,
    };
    vec![
        request(
            "one contact by id",
            "GET /api/v1/contacts/{n}",
            "GET /api/collections/contacts/records/{n15}",
            5.0,
        ),
        request(
            "one contact by phone",
            "GET /api/v1/contacts/phone:%2B55119{c8}",
            "GET /api/collections/contacts/records?perPage=1&skipTotal=1&filter=phone%3D%27%2B55119{c8}%27",
            5.0,
        ),
        request(
            "newest 20 contacts",
            "GET /api/v1/contacts?limit=20",
            "GET /api/collections/contacts/records?perPage=20&sort=-created&skipTotal=1",
            4.0,
        ),
        request(
            "20 contacts by two conditions and another sort",
            &format!("GET /api/v1/contacts?limit=20&sort=-updated_at&filter_tree={}", escaped(VIEW)),
            "GET /api/collections/contacts/records?perPage=20&sort=-updated&skipTotal=1&filter=stage%3D%27won%27%26%26country%3D%27PT%27",
            20.0,
        ),
        Request {
            name: "create a contact with three identities, durable",
            ours: "POST /api/v1/contacts".to_owned(),
            ours_body: r#"{"data":{"$name":"New {u8}","$phone":"+55219{u8}","$email":"n{u8}@example.com","$username":"n{u8}","$stage":"new"}}"#,
            theirs: "POST /api/collections/contacts/records",
            theirs_body: r#"{"name":"New {u8}","phone":"+55219{u8}","email":"n{u8}@example.com","username":"n{u8}","stage":"new"}"#,
            target: 2.0,
        },
    ]
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "%{byte:02X}");
        out
    })
}

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Contacts of 12 fields, against PocketBase");
    let mut p99 = Vec::new();
    let sizes = match (bench.plan.quick, bench.plan.contacts.as_slice()) {
        (true, _) => vec![6_000],
        (false, []) => vec![100_000],
        (false, sizes) => sizes.to_vec(),
    };
    for size in &sizes {
        p99.push(one(bench, &mut section, u64::from(*size))?);
    }
    if let (Some(first), Some(last), true) = (p99.first(), p99.last(), p99.len() > 1) {
        let ratio = last / first;
        let what = "two conditions and another sort: p99 of the last size ÷ of the first";
        section.against(what, format!("{ratio:.2}"), "≤ 2", ratio <= 2.0);
    }
    match postgres("svc_bench_contacts")? {
        Some(database) => {
            let service = Child::start(&["serve-svc", "--database", &database])?;
            let rows = if bench.plan.quick { 1_000 } else { 2 * IMPORTED };
            let rate = import_all(&server(&service)?, rows)?;
            section.against("PostgreSQL: import, rows/s", whole(rate), "≥ 8,000", rate >= 8_000.0);
        }
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(format!(
        "Ours with `synchronous=FULL`. PocketBase with its defaults, the same rows in columns, `skipTotal=1`, a unique index on \
         phone, and indexes on created and updated. {CONNECTIONS} connections, {UPSERTING} that upsert and {COUNTING} that \
         count. An import is of {} rows, and its time is from the request to the event of its end. The contacts that are \
         merged have {} notes each.",
        whole(IMPORTED as f64),
        whole(MERGED as f64)
    ));
    Ok(section)
}

/// Measures with `size` contacts. Returns the p99 of the list by two conditions.
fn one(bench: &Bench<'_>, section: &mut Section, size: u64) -> Result<f64> {
    let named = |what: &str| format!("{}: {what}", whole(size as f64));
    let database = bench.sqlite(&format!("contacts-{size}.db"));
    let mut service = Child::start(&["serve-svc", "--database", &database])?;
    let server = server(&service)?;
    let rate = import_all(&server, size)?;
    section.against(named("import, rows/s"), whole(rate), "≥ 15,000", rate >= 15_000.0);
    let folder = bench.folder.path().join(format!("pocketbase-contacts-{size}"));
    let peer = peer::program()
        .map(|program| {
            PocketBase::with_rows(&program, &folder, &collection(), |connection| fill(connection, size))
        })
        .transpose()?;
    let counts = format!("GET /api/v1/contacts/counts?filter_tree={}", escaped(VIEW));
    let requests = requests();
    get_indexed(&server, requests.iter().map(|request| request.ours.as_str()).chain([counts.as_str()]))?;

    let mut p99 = 0.0;
    for request in &requests {
        let load = load_of(bench, &service, &request.ours, request.ours_body, CONNECTIONS, size)?;
        let outcome = compare(bench, section, &named(request.name), &load, peer.as_ref(), request)?;
        if request.target >= 20.0 {
            p99 = outcome;
        }
    }
    drop(peer);
    let load = load_of(bench, &service, &counts, "", COUNTING, size)?.spawn()?;
    ensure!(load.ok() == load.total(), "the counts were refused: {load:?}");
    let what = named("counts of a filtered view, p50 / p99, ms");
    section.against(what, format!("{:.1} / {:.1}", load.p50, load.p99), "≤ 20", load.p99 <= 20.0);

    let body = r#"{"data":{"$phone":"+55119{c8}","$company":"Company {m}"}}"#;
    let load = load_of(bench, &service, "POST /api/v1/contacts/upsert", body, UPSERTING, size)?.spawn()?;
    ensure!(load.done() == load.total(), "upserts were refused: {load:?}");
    let rate = load.rate();
    section.against(named("upsert by phone, requests/s"), whole(rate), "≥ 5,000", rate >= 5_000.0);

    merge(bench, section, &named("merge of two contacts"), &service, &server)?;
    let resident = memory(service.id(), "RssAnon")?;
    section.against(
        named("memory of its own after it all, MiB"),
        whole(resident),
        "≤ 128",
        resident <= 128.0,
    );
    service.ask("stop")?;
    Ok(p99)
}

/// Builds a load whose requests draw from all contacts.
fn load_of(
    bench: &Bench<'_>,
    service: &Child,
    target: &str,
    body: &str,
    connections: usize,
    contacts: u64,
) -> Result<load::Arguments> {
    let load = bench.load(service, target, body, connections)?;
    Ok(load::Arguments { spread: contacts, contacts, ..load })
}

/// Measures a request on both sides in turns. Returns our p99.
fn compare(
    bench: &Bench<'_>,
    section: &mut Section,
    what: &str,
    load: &load::Arguments,
    peer: Option<&PocketBase>,
    request: &Request,
) -> Result<f64> {
    let (mut ours, mut theirs): (Vec<Outcome>, Vec<Outcome>) = (Vec::new(), Vec::new());
    for _ in 0..bench.plan.rounds {
        ours.push(load.spawn()?);
        if let Some(peer) = peer {
            let load = load::Arguments {
                address: peer.server.address.clone(),
                process: peer.id(),
                target: request.theirs.to_owned(),
                body: request.theirs_body.to_owned(),
                keys: vec![peer.server.token.clone()],
                ..load.clone()
            };
            theirs.push(load.spawn()?);
        }
    }
    for outcome in ours.iter().chain(&theirs) {
        ensure!(outcome.done() == outcome.total(), "{what}: not every answer was a success: {outcome:?}");
    }
    let of = |number: fn(&Outcome) -> f64| median(&ours.iter().map(number).collect::<Vec<_>>());
    let (rate, p50, p99) = (of(Outcome::rate), of(|outcome| outcome.p50), of(|outcome| outcome.p99));
    section
        .state(format!("{what}: requests/s; p50 / p99, ms"), format!("{}; {p50:.2} / {p99:.2}", whole(rate)));
    if !theirs.is_empty() {
        let ratios: Vec<f64> =
            ours.iter().zip(&theirs).map(|(ours, theirs)| ours.rate() / theirs.rate()).collect();
        let target = format!("≥ {}", request.target);
        let shown = spread(&ratios, |ratio| format!("{ratio:.1}"));
        section.against(
            format!("{what}: ours ÷ PocketBase"),
            shown,
            &target,
            median(&ratios) >= request.target,
        );
    }
    Ok(p99)
}

/// Repeats requests until the service has created the indexes that it creates for frequent queries.
fn get_indexed<'a>(server: &Server, requests: impl Iterator<Item = &'a str>) -> Result<()> {
    for request in requests {
        let Some(path) = request.strip_prefix("GET ").filter(|path| !path.contains('{')) else { continue };
        let deadline = Instant::now() + Duration::from_secs(120);
        let mut fast = 0;
        while fast < 100 && Instant::now() < deadline {
            let began = Instant::now();
            let (head, _) = server.exchange("GET", path, "")?;
            // Before an index exists, a query over many contacts can be rejected.
            ensure!(head.contains(" 200 ") || head.contains(" 400 "), "{path}: {head}");
            fast = if head.contains(" 200 ") { fast + 1 } else { 0 };
            std::thread::sleep(began.elapsed().min(Duration::from_millis(50)));
        }
    }
    Ok(())
}

fn merge(
    bench: &Bench<'_>,
    section: &mut Section,
    what: &str,
    service: &Child,
    server: &Server,
) -> Result<()> {
    let rows = if bench.plan.quick { 100 } else { MERGED };
    let mut ids = Vec::new();
    for name in ["Ana", "Ana Silva"] {
        let body = json!({ "data": { "$name": name } });
        let made = server.ask("POST", "/api/v1/contacts", Some(&body))?;
        let id = made.pointer("/data/id").and_then(Value::as_i64).context("no contact")?;
        let notes = format!("POST /api/v1/contacts/{id}/notes");
        let mut load = bench.load(service, &notes, r#"{"body":"Called, no answer {m}."}"#, CONNECTIONS)?;
        load.requests = Some(rows);
        let load = load.spawn()?;
        ensure!(load.done() == rows, "notes were refused: {load:?}");
        ids.push(id);
    }
    let [target, source] = ids[..] else { return Ok(()) };
    let began = Instant::now();
    let body = json!({ "source_id": source });
    server.ask("POST", &format!("/api/v1/contacts/{target}/merge"), Some(&body))?;
    let took = began.elapsed();
    let shown = format!("{:.0}", took.as_secs_f64() * 1000.0);
    section.against(format!("{what}, {} rows each, ms", whole(rows as f64)), shown, "≤ 1,000", took <= MERGE);
    Ok(())
}

fn server(service: &Child) -> Result<Server> {
    let token = keys(service).into_iter().next().context("the service made no key")?;
    Ok(Server { address: text(&service.hello, "address")?.to_owned(), token })
}

/// Imports contacts. Returns the rows per second.
fn import_all(server: &Server, rows: u64) -> Result<f64> {
    let mut spent = Duration::ZERO;
    for first in (0..rows).step_by(usize::try_from(IMPORTED)?) {
        let content = csv(first, IMPORTED.min(rows - first));
        let began = Instant::now();
        import(server, &content)?;
        spent += began.elapsed();
    }
    Ok(rows as f64 / spent.as_secs_f64())
}

/// Imports a file of contacts, and returns once its event is published.
pub fn import(server: &Server, content: &str) -> Result<()> {
    let ended = "/api/v1/events?type=contact.import.completed&limit=1";
    let newest = |answer: &Value| answer.pointer("/data/0/id").cloned();
    let before = newest(&server.ask("GET", ended, None)?);
    server.ask("POST", "/api/v1/contacts/import", Some(&json!({ "content": content })))?;
    let deadline = Instant::now() + Duration::from_secs(600);
    loop {
        let answer = server.ask("GET", ended, None)?;
        if newest(&answer) != before {
            let failed = answer.pointer("/data/0/data/import/counts/failed");
            ensure!(failed.and_then(Value::as_i64).unwrap_or(0) == 0, "rows were rejected: {answer}");
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "an import did not come to an end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn choose(list: &[&'static str], number: u64) -> &'static str {
    usize::try_from(number).ok().and_then(|number| list.get(number % list.len())).copied().unwrap_or_default()
}

/// Builds contacts by their numbers as CSV, the same as PocketBase's.
fn csv(first: u64, rows: u64) -> String {
    let mut text = "$name,$phone,$email,$username,$language,$country,$timezone,$source,$stage,$company,$birthday,$avatar_url\n"
        .to_owned();
    for n in first..first + rows {
        let (source, stage) = (choose(&SOURCES, n), choose(&STAGES, n / 3));
        let (country, day) = (choose(&COUNTRIES, n / 7), n % 28 + 1);
        let _ = writeln!(
            text,
            "Contact {n},+55119{:08},c{n}@example.com,c{n},pt-BR,{country},America/Sao_Paulo,{source},{stage},Company {},\
             1990-05-{day:02},https://example.com/{n}.png",
            10_000_000 + n,
            n % 1_000
        );
    }
    text
}

/// Builds PocketBase's collection of contacts.
fn collection() -> Value {
    let names = [
        "name", "phone", "email", "username", "language", "country", "timezone", "source", "stage",
        "company", "birthday", "avatar",
    ];
    let mut fields: Vec<Value> =
        names.into_iter().map(|name| json!({ "name": name, "type": "text" })).collect();
    fields.extend(peer::autodates());
    json!({
        "name": "contacts", "type": "base", "fields": fields,
        "indexes": [
            "CREATE UNIQUE INDEX by_phone ON contacts (phone)",
            "CREATE INDEX by_created ON contacts (created)",
            "CREATE INDEX by_updated ON contacts (updated)",
        ],
    })
}

fn fill(connection: &mut SqliteConnection, rows: u64) -> Result<()> {
    let choose = |list: &[&str], number: &str| {
        let cases: Vec<String> =
            list.iter().enumerate().map(|(place, word)| format!("WHEN {place} THEN '{word}'")).collect();
        format!("CASE ({number}) % {} {} END", list.len(), cases.join(" "))
    };
    let moment = "strftime('%Y-%m-%d %H:%M:%S', 1700000000 + n * 7919 % 31536000, 'unixepoch') || '.000Z'";
    connection.batch_execute(&format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {rows})
         INSERT INTO contacts (id, name, phone, email, username, language, country, timezone, source, stage, company, birthday,
            avatar, created, updated)
         SELECT printf('%015d', n + 1), 'Contact ' || n, '+55119' || (10000000 + n), 'c' || n || '@example.com', 'c' || n,
            'pt-BR', {country}, 'America/Sao_Paulo', {source}, {stage}, 'Company ' || (n % 1000),
            '1990-05-' || printf('%02d', n % 28 + 1), 'https://example.com/' || n || '.png', {moment}, {moment} FROM numbers",
        country = choose(&COUNTRIES, "n / 7"),
        source = choose(&SOURCES, "n"),
        stage = choose(&STAGES, "n / 3"),
    ))?;
    Ok(())
}
