//! Features of operations that few areas use: headers of their own, data that they printed, large and optional bodies, and addresses
//! beside the API. Shown on operations made for it, behind the same front door.

use crate::operations::document::{has_rate_headers, well_formed};
use bytes::Bytes;
use chrono::Duration;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use futures::StreamExt;
use model::{Caller, Env, Error, Result, Timestamp};
use operation::{
    Body, BoxFuture, Contract, Cx, Describe, Domain, FromInput, IfMatch, Input, Json, Operations, PageNumber,
    Pipeline, RawAnswer, RawCreated, RawPageList, RawRequest, RawRoute, RawRows, Registry, RequestMetrics,
    With, document, operation,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use store::Tx;
use testkit::{Client, Key, Kind, TestApp, until};
use utoipa::openapi::path::{ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::{PartialSchema, ToSchema};

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Shelf {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
struct Exact {
    total_is_exact: bool,
}

/// A filter that reads the query itself.
#[derive(Debug, Clone)]
struct Filter(Vec<String>);

impl FromInput for Filter {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        let own = input.query.iter().filter(|(name, _)| name.starts_with("filter["));
        Ok(Self(own.map(|(name, value)| format!("{name}={value}")).collect()))
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        let filter = ParameterBuilder::new()
            .name("filter")
            .parameter_in(ParameterIn::Query)
            .style(Some(ParameterStyle::DeepObject))
            .schema(Some(Value::schema()));
        describe.parameter(filter.build());
    }
}

/// Read the version
#[operation(get "/shelves/version", scope = any_key)]
fn read_version(if_match: IfMatch) -> Result<With<Json<Option<i64>>>> {
    Ok(With { answer: Json(if_match.0), headers: vec![("etag", "\"8\"".to_owned())] })
}

/// Make a shelf
#[operation(post "/shelves", scope = any_key, body_mib = 3)]
fn make_shelf(tx: &mut Tx, Body(shelf): Body<Shelf>) -> Result<RawCreated<Shelf>> {
    let _ = tx.now();
    Ok(RawCreated::new(
        serde_json::to_string(&json!({ "name": shelf.name.map(|name| name.len().to_string()) }))
            .map_err(Error::internal)?,
    ))
}

/// Change a shelf
#[operation(patch "/shelves", scope = any_key)]
fn change_shelf(Body(shelf): Body<Shelf>) -> Result<Json<Shelf>> {
    Ok(Json(shelf))
}

/// Search the shelves
#[operation(get "/shelves/search", scope = any_key)]
fn search_shelves(page: PageNumber, filter: Filter) -> Result<RawPageList<Shelf, Exact>> {
    let rows: RawRows = filter.0.iter().map(|name| json!({ "name": name }).to_string()).collect();
    Ok(RawPageList::of(page, rows, 41, Exact { total_is_exact: true }))
}

/// List the old shelves
#[operation(
    get "/shelves/old",
    scope = "runs:read",
    deprecated(since = "2026-01-10", sunset = "2026-07-20", alternative = "GET /shelves/search")
)]
fn list_old_shelves() -> Result<Json<bool>> {
    Ok(Json(true))
}

/// Keep a shelf
#[operation(post "/shelves/kept", scope = any_key)]
fn keep_shelf(tx: &mut Tx) -> Result<With<Json<String>>> {
    let now = tx.now().to_string();
    let headers =
        vec![("etag", "\"9\"".to_owned()), ("location", "/shelves/1".to_owned()), ("x-once", now.clone())];
    Ok(With { answer: Json(now), headers })
}

/// An input that cannot be read.
#[derive(Debug, Clone)]
struct Fragile;

impl FromInput for Fragile {
    fn from_input(_: &Input<'_>, _: &'static str) -> Result<Self> {
        panic!("hidden-in-a-panic")
    }

    fn describe(_: &mut Describe, _: &'static str) {}
}

/// Break while the input is read
#[operation(get "/broken/input", scope = any_key)]
fn break_input(fragile: Fragile) -> Result<Json<bool>> {
    let _ = fragile;
    Ok(Json(true))
}

/// Break without a database
#[operation(get "/broken/plain", scope = any_key)]
fn break_plain(caller: &Caller) -> Result<Json<bool>> {
    let broken: Option<bool> = caller.idempotency_key.as_ref().map(|_| true);
    Ok(Json(broken.expect("hidden-in-a-panic")))
}

/// Break in a transaction
#[operation(post "/broken/transaction", scope = any_key)]
fn break_transaction(tx: &mut Tx) -> Result<Json<bool>> {
    panic!("hidden-in-a-panic at {}", tx.now())
}

/// Break outside
#[operation(post "/broken/outside", scope = any_key)]
async fn break_outside(cx: &Cx) -> Result<Json<bool>> {
    let now = cx.db.read(|read| Ok(read.now())).await?;
    panic!("hidden-in-a-panic at {now}")
}

struct Shelves;

impl Domain for Shelves {
    const AREA: &'static str = "Shelves";
    const ORDER: u16 = 0;
    const DESCRIPTION: &'static str = "Shelves for tests.";

    fn operations() -> Operations {
        vec![
            Box::new(ReadVersion),
            Box::new(MakeShelf),
            Box::new(ChangeShelf),
            Box::new(SearchShelves),
            Box::new(ListOldShelves),
            Box::new(KeepShelf),
            Box::new(BreakInput),
            Box::new(BreakPlain),
            Box::new(BreakTransaction),
            Box::new(BreakOutside),
        ]
    }
}

/// `/echo/…` tells what came, `/flood/…` sends without end.
struct Echo;

impl RawRoute for Echo {
    fn prefix(&self) -> &'static str {
        "/echo/"
    }

    fn body_limit(&self) -> usize {
        1000
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        Box::pin(async move {
            assert_ne!(request.rest, "panic", "hidden-in-a-panic");
            let published = json!({
                "method": request.method, "rest": request.rest, "query": request.query,
                "signature": request.header("x-signature"), "peer": request.peer,
                "body": String::from_utf8_lossy(&request.body),
            });
            RawAnswer::status(207).header("x-echo", "yes").body("application/vnd.echo", published.to_string())
        })
    }
}

/// A route of the one address `/exact`.
struct ExactRoute;

impl RawRoute for ExactRoute {
    fn prefix(&self) -> &'static str {
        "/exact"
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        Box::pin(async move {
            RawAnswer::status(200).body("text/plain", format!("[{}][{}]", request.rest, request.query))
        })
    }
}

#[derive(Default)]
struct Flood {
    chunks: AtomicUsize,
    ended: AtomicBool,
}

/// Says when a stream is dropped.
struct Ending(Arc<Flood>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
    }
}

struct FloodRoute(Arc<Flood>);

impl RawRoute for FloodRoute {
    fn prefix(&self) -> &'static str {
        "/flood/"
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let ending = Ending(self.0.clone());
        let least: usize = request.rest.parse().unwrap_or(usize::MAX);
        let chunks = futures::stream::iter(0..least).map(move |_| {
            ending.0.chunks.fetch_add(1, Ordering::SeqCst);
            Ok(Bytes::from(vec![b'x'; 64 * 1024]))
        });
        Box::pin(async move { RawAnswer::status(200).chunks("application/octet-stream", chunks) })
    }
}

/// A service with these operations and routes only.
struct Bed {
    app: TestApp,
    client: Client,
    address: String,
    key: Key,
    flood: Arc<Flood>,
    document: Value,
}

impl Bed {
    async fn new(kind: testkit::Kind) -> Self {
        let app = TestApp::new(kind).await;
        let key = app.full_key().await;
        let registry = Registry::new().with::<Shelves>().unwrap();
        let document = serde_json::from_str(&document(&registry, Contract::Public, "v0").unwrap()).unwrap();
        let own = &app.service.pipeline;
        let metrics = Some(RequestMetrics::new(&registry).unwrap());
        let pipeline = Pipeline {
            registry: Arc::new(registry),
            claims: auth::idempotency::Claims::default(),
            metrics,
            ..Pipeline::clone(own)
        };
        let flood = Arc::new(Flood::default());
        let mut api = app.service.api();
        api.pipeline = Arc::new(pipeline);
        api.raw_routes =
            Arc::new([Arc::new(Echo), Arc::new(ExactRoute), Arc::new(FloodRoute(flood.clone()))]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let options = rest::ServerOptions {
            keep_alive: std::time::Duration::from_secs(600),
            workers: Some(1),
            shutdown_seconds: 30,
        };
        tokio::spawn(rest::server(&api, vec![listener], &options).unwrap());
        let client = Client::new(&format!("http://{address}"));
        Self { app, client, address, key, flood, document }
    }

    async fn get(&self, path: &str) -> testkit::Answer {
        self.client.ask("GET", path).key(&self.key).send().await
    }
}

#[testkit::both]
async fn headers_and_versions(kind: Kind) {
    let bed = Bed::new(kind).await;
    let ask =
        |tag: &'static str| bed.client.ask("GET", "/shelves/version").key(&bed.key).header("if-match", tag);
    let answer = ask("W/\"7\"").send().await;
    well_formed(&answer, "a version");
    assert_eq!(answer.expect(200), 7);
    assert_eq!(answer.headers["etag"], "\"8\"");
    assert_eq!(ask("*").send().await.expect(200), Value::Null);
    assert_eq!(bed.get("/shelves/version").await.expect(200), Value::Null);
    assert_eq!(ask("seven").send().await.expect_error(400, "validation_error").as_deref(), Some("If-Match"));
    let published = &bed.document["paths"]["/shelves/version"]["get"]["parameters"][0];
    assert_eq!((&published["name"], &published["in"]), (&json!("If-Match"), &json!("header")));
}

#[testkit::both]
async fn bodies_may_be_large_or_left_out(kind: Kind) {
    let bed = Bed::new(kind).await;
    let post = |size: usize| {
        bed.client.ask("POST", "/shelves").key(&bed.key).json(&json!({ "name": "x".repeat(size) }))
    };
    assert_eq!(post(2 << 20).send().await.expect(201), json!({ "name": (2 << 20).to_string() }));
    post(3 << 20).send().await.expect_error(413, "payload_too_large");
    let nothing = bed.client.ask("POST", "/shelves").key(&bed.key).send().await;
    assert_eq!(nothing.expect(201), json!({ "name": null }));
    // An empty change is a mistake, and 1 MiB is the rule.
    let patch =
        |body: &[u8]| bed.client.ask("PATCH", "/shelves").key(&bed.key).bytes("application/json", body);
    assert_eq!(patch(b"").send().await.expect_error(400, "validation_error").as_deref(), Some("body"));
    patch(&[b' '; (1 << 20) + 1]).send().await.expect_error(413, "payload_too_large");
    let published = &bed.document["paths"]["/shelves"];
    assert_eq!(published["post"]["x-svc-max-body-bytes"], 3 << 20);
    assert_eq!(published["post"]["requestBody"]["required"], false);
    assert_eq!(published["patch"]["requestBody"]["required"], true);
    assert_eq!(published["patch"].get("x-svc-max-body-bytes"), None);
}

#[testkit::both]
async fn pages_have_numbers(kind: Kind) {
    let bed = Bed::new(kind).await;
    let answer = bed.get("/shelves/search?filter%5Bb%5D%5Bgt%5D=5&page=3&limit=20&filter[a]=x+y").await;
    well_formed(&answer, "a page");
    assert_eq!(answer.expect(200), json!([{ "name": "filter[b][gt]=5" }, { "name": "filter[a]=x y" }]));
    assert_eq!(answer.body["pagination"], json!({ "page": 3, "limit": 20, "total": 41, "pages": 3 }));
    assert_eq!(answer.body["total_is_exact"], true);
    assert_eq!(bed.get("/shelves/search?limit=500").await.body["pagination"]["limit"], 100);
    for (query, param) in
        [("page=0", "page"), ("page=x", "page"), ("page=9223372036854775808", "page"), ("limit=0", "limit")]
    {
        let answer = bed.get(&format!("/shelves/search?{query}")).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    bed.get("/shelves/search?page=9223372036854775807").await.expect(200);
    let published = &bed.document["paths"]["/shelves/search"]["get"];
    assert_eq!(published["x-svc-pagination"], "page");
    let filter =
        published["parameters"].as_array().unwrap().iter().find(|one| one["name"] == "filter").unwrap();
    assert_eq!(filter["style"], "deepObject");
    let answer = &published["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(answer["properties"]["total_is_exact"]["type"], "boolean");
}

#[testkit::both]
async fn a_panic_is_an_error_like_any_other(kind: Kind) {
    let bed = Bed::new(kind).await;
    let mut broken = Vec::new();
    for (method, path) in [
        ("GET", "/broken/input"),
        ("GET", "/broken/plain"),
        ("POST", "/broken/transaction"),
        ("POST", "/broken/outside"),
    ] {
        let ask = || bed.client.ask(method, path).key(&bed.key);
        broken.push((path, ask().send().await));
        // What panics leaves no claim behind that a resend would wait for.
        for _ in 0..2 {
            broken.push((path, ask().header("idempotency-key", path).send().await));
        }
    }
    for (path, answer) in &broken {
        answer.expect_error(500, "internal_error");
        has_rate_headers(answer, path);
        testkit::assert_absent(&answer.text, "hidden-in-a-panic");
    }
    let beside = bed.client.ask_beside("GET", "/echo/panic").send().await;
    assert_eq!(beside.status, 500);
    assert!(beside.headers["x-request-id"].starts_with("req_"));
    testkit::assert_absent(&beside.text, "hidden-in-a-panic");
    bed.get("/shelves/version").await.expect(200);

    let data = bed.app.stop().await;
    let logged = data.db.read(|read| {
        use operation::schema::request_logs as log;
        let rows: Vec<(String, Option<String>, Option<String>)> = log::table
            .filter(log::status.eq(500))
            .select((log::id, log::code, log::gate))
            .load(read.connection())?;
        Ok(rows)
    });
    let logged = logged.await.unwrap();
    assert_eq!(logged.len(), broken.len());
    for (path, answer) in &broken {
        let row = logged.iter().find(|row| row.0 == answer.headers["x-request-id"]).expect("a row");
        let gate = if *path == "/broken/input" { "body" } else { "operation" };
        assert_eq!((row.1.as_deref(), row.2.as_deref()), (Some("internal_error"), Some(gate)), "{path}");
    }
}

#[testkit::both]
async fn a_deprecated_operation_says_so_until_its_end(kind: Kind) {
    let bed = Bed::new(kind).await;
    let workspace = bed.key.workspace;
    let narrow = bed.app.key(workspace, Env::Live, &["agents:read"]).await;
    let slow =
        bed.app.key_with(workspace, Env::Live, &["runs:read"], |new| new.rate_limit_rpm = Some(1)).await;
    let ask = || bed.client.ask("GET", "/shelves/old");
    let answers = async || {
        bed.app.data.clock.advance(Duration::seconds(61));
        [
            (200, ask().key(&bed.key).send().await),
            (401, ask().send().await),
            (403, ask().key(&narrow).send().await),
            (200, ask().key(&slow).send().await),
            (429, ask().key(&slow).send().await),
            (400, ask().header("x-filler", &"x".repeat(17 * 1024)).send().await),
        ]
    };
    let sunset = "Mon, 20 Jul 2026 00:00:00 GMT";
    for (status, answer) in answers().await {
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(
            (answer.headers["deprecation"].as_str(), answer.headers["sunset"].as_str()),
            ("true", sunset)
        );
        let link = "</docs/>; rel=\"deprecation\"; type=\"text/html\"; title=\"GET /shelves/search\"";
        assert_eq!(answer.headers["link"], link);
    }
    assert!(!bed.get("/shelves/search").await.headers.contains_key("deprecation"));
    let post = bed.client.ask("POST", "/shelves/old").key(&bed.key).send().await;
    post.expect_error(405, "method_not_allowed");
    assert!(!post.headers.contains_key("deprecation"));

    let published = &bed.document["paths"]["/shelves/old"]["get"];
    assert_eq!(published["deprecated"], true);
    assert_eq!(
        (&published["x-deprecated-at"], &published["x-sunset"]),
        (&json!("2026-01-10"), &json!("2026-07-20"))
    );
    assert_eq!(published["x-alternative"], "GET /shelves/search");
    assert!(published["responses"].get("410").is_some());
    assert!(bed.document["paths"]["/shelves"]["post"].get("deprecated").is_none());

    let end = Timestamp::parse("2026-07-20T00:00:00Z").unwrap();
    let left = Duration::milliseconds(end.millis() - bed.app.db().now().millis());
    bed.app.data.clock.advance(left - Duration::milliseconds(1));
    ask().key(&bed.key).send().await.expect(200);
    bed.app.data.clock.advance(Duration::milliseconds(1));
    let retired = ask().key(&bed.key).send().await;
    retired.expect_error(410, "endpoint_retired");
    assert!(retired.body["error"]["message"].as_str().unwrap().contains("GET /shelves/search"));
    assert_eq!(retired.headers["link"], "</api/v1/shelves/search>; rel=\"successor-version\"");
    assert_eq!(retired.headers["sunset"], sunset);
    ask().send().await.expect_error(401, "missing_api_key");
}

#[testkit::both]
async fn a_repetition_has_the_headers_of_the_answer(kind: Kind) {
    let bed = Bed::new(kind).await;
    let ask =
        || bed.client.ask("POST", "/shelves/kept").key(&bed.key).header("idempotency-key", "once").send();
    let first = ask().await;
    assert!(first.headers.contains_key("x-once"));
    let again = ask().await;
    assert_eq!(
        (again.expect(200), &again.headers["idempotent-replayed"]),
        (first.expect(200), &"true".to_owned())
    );
    for name in ["etag", "location"] {
        assert_eq!(again.headers[name], first.headers[name]);
    }
    assert!(!again.headers.contains_key("x-once"));
}

#[testkit::both]
async fn a_body_that_is_announced_too_large_is_refused_first(kind: Kind) {
    let bed = Bed::new(kind).await;
    let announce = async |path: &str, length: usize| {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(&bed.address).await.unwrap();
        let head = format!(
            "POST /api/v1{path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    // Nothing of it was sent, and no key.
    assert_eq!(announce("/shelves", (3 << 20) + 1).await, "413");
    assert_eq!(announce("/shelves", 3 << 20).await, "401");
    assert_eq!(announce("/shelves/kept", (1 << 20) + 1).await, "413");
    assert_eq!(announce("/nowhere", (1 << 20) + 1).await, "401");
    assert_eq!(announce("/nowhere", 27 << 20).await, "413");
}

#[testkit::both]
async fn what_is_beside_the_api(kind: Kind) {
    let bed = Bed::new(kind).await;
    let published = bed
        .client
        .ask_beside("PROPFIND", "/echo/a%2Fb/c?x=%20y&z")
        .header("x-signature", "v1,abc")
        .bytes("text/xml", b"<a/>")
        .send()
        .await;
    assert_eq!((published.status, published.headers["x-echo"].as_str()), (207, "yes"));
    assert_eq!(published.headers["content-type"], "application/vnd.echo");
    assert_eq!(
        published.body,
        json!({
            "method": "PROPFIND", "rest": "a%2Fb/c", "query": "x=%20y&z", "signature": "v1,abc",
            "peer": "127.0.0.1", "body": "<a/>",
        })
    );
    let large = bed.client.ask_beside("POST", "/echo/").bytes("text/plain", &[b'x'; 1001]).send().await;
    assert_eq!(large.status, 413);
    let headers =
        bed.client.ask_beside("GET", "/echo/").header("x-filler", &"x".repeat(17 * 1024)).send().await;
    assert_eq!(headers.status, 400);
    // The API itself is where it was.
    bed.app.get("/me", &bed.key).await.expect(200);
    bed.client.ask_beside("GET", "/echoes").send().await.expect_error(404, "route_not_found");
}

#[testkit::both]
async fn streams_are_sent_whole_and_end_with_their_reader(kind: Kind) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let bed = Bed::new(kind).await;
    let whole = bed.client.ask_beside("GET", "/flood/160").send().await;
    assert_eq!((whole.status, whole.text.len()), (200, 160 * 64 * 1024));

    bed.flood.ended.store(false, Ordering::SeqCst);
    let before = bed.flood.chunks.load(Ordering::SeqCst);
    let mut reader = tokio::net::TcpStream::connect(&bed.address).await.unwrap();
    reader.write_all(b"GET /flood/endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    reader.read_exact(&mut [0; 1000]).await.unwrap();
    drop(reader);
    let ended = async || bed.flood.ended.load(Ordering::SeqCst).then_some(());
    until("the end of the stream", ended).await;
    // What was made went out or waits in the sockets' buffers; nothing piled up.
    assert!(bed.flood.chunks.load(Ordering::SeqCst) - before < 1000);
}
