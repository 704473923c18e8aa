//! PocketBase, the peer of the data engine, with the same rows in real columns and with indexes on the same fields.

use super::items::{CATEGORIES, WORDS};
use crate::http::Server;
use anyhow::{Context, Result, ensure};
use diesel::connection::SimpleConnection;
use diesel::{Connection, SqliteConnection};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EMAIL: &str = "bench@example.com";
const PASSWORD: &str = "bench-bench-bench";

/// A running PocketBase. It is killed when dropped.
pub struct PocketBase {
    process: Child,
    /// Its address, with a superuser's token.
    pub server: Server,
}

/// Returns the program from `POCKETBASE`, if that is set.
pub fn program() -> Option<PathBuf> {
    std::env::var_os("POCKETBASE").map(PathBuf::from).filter(|path| path.is_file())
}

impl PocketBase {
    /// Starts PocketBase with `rows` products in a new folder.
    pub fn with_products(program: &Path, folder: &Path, rows: u64) -> Result<Self> {
        Self::with_rows(program, folder, &products(), |connection| fill(connection, rows))
    }

    /// Starts PocketBase with a collection in a new folder. `fill` writes the rows while it is not running.
    pub fn with_rows(
        program: &Path,
        folder: &Path,
        collection: &Value,
        fill: impl FnOnce(&mut SqliteConnection) -> Result<()>,
    ) -> Result<Self> {
        // PocketBase writes migrations next to its folder and applies them to every database there, so each database
        // has a parent folder of its own.
        let data = folder.join("pb_data");
        std::fs::create_dir_all(&data)?;
        let dir = format!("--dir={}", data.display());
        let made = Command::new(program)
            .args(["superuser", "upsert", EMAIL, PASSWORD, &dir])
            .stdout(Stdio::null())
            .status()?;
        ensure!(made.success(), "PocketBase made no superuser");
        let fresh = Self::start(program, &dir)?;
        fresh.server.ask("POST", "/api/collections", Some(collection))?;
        drop(fresh);
        fill(&mut SqliteConnection::establish(&data.join("data.db").display().to_string())?)?;
        Self::start(program, &dir)
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    fn start(program: &Path, dir: &str) -> Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let process = Command::new(program)
            .args(["serve", dir, &format!("--http={address}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut running = Self { process, server: Server { address, token: String::new() } };
        let deadline = Instant::now() + Duration::from_secs(60);
        while running.server.exchange("GET", "/api/health", "").is_err() {
            ensure!(Instant::now() < deadline, "PocketBase does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        let body = json!({ "identity": EMAIL, "password": PASSWORD });
        let path = "/api/collections/_superusers/auth-with-password";
        let answer = running.server.ask("POST", path, Some(&body))?;
        let token = answer.get("token").and_then(serde_json::Value::as_str);
        running.server.token = token.context("PocketBase gave no token")?.to_owned();
        Ok(running)
    }

    /// Replaces the indexes of a collection by these single-field indexes.
    pub fn set_indexes(&self, collection: &str, fields: &[&str]) -> Result<()> {
        let indexes: Vec<String> = fields.iter().map(|field| index(collection, field)).collect();
        let path = format!("/api/collections/{collection}");
        self.server.ask("PATCH", &path, Some(&json!({ "indexes": indexes })))?;
        Ok(())
    }
}

fn index(collection: &str, field: &str) -> String {
    format!("CREATE INDEX by_{field} ON {collection} ({field})")
}

/// Returns the fields for the times of creation and of the last change, which collections do not have by default.
pub fn autodates() -> [Value; 2] {
    [
        json!({ "name": "created", "type": "autodate", "onCreate": true }),
        json!({ "name": "updated", "type": "autodate", "onCreate": true, "onUpdate": true }),
    ]
}

/// Builds the collection of products.
fn products() -> Value {
    let field = |name: &str, kind: &str| json!({ "name": name, "type": kind });
    let mut fields = vec![
        field("name", "text"),
        field("sku", "text"),
        json!({ "name": "category", "type": "select", "maxSelect": 1, "values": CATEGORIES }),
        field("price", "number"),
        field("stock", "number"),
        field("active", "bool"),
        json!({ "name": "description", "type": "text", "max": 10_000 }),
        field("released_on", "date"),
    ];
    fields.extend(autodates());
    let indexes = ["price", "category", "created", "updated"].map(|field| index("products", field));
    json!({ "name": "products", "type": "base", "fields": fields, "indexes": indexes })
}

impl Drop for PocketBase {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes the products, the same as those of [`super::items::row`].
fn fill(connection: &mut SqliteConnection, rows: u64) -> Result<()> {
    let choose = |list: &[&str], number: &str| {
        let cases: Vec<String> =
            list.iter().enumerate().map(|(place, word)| format!("WHEN {place} THEN '{word}'")).collect();
        format!("CASE ({number}) % {} {} END", list.len(), cases.join(" "))
    };
    let moment = "strftime('%Y-%m-%d %H:%M:%S', 1700000000 + n * 7919 % 31536000, 'unixepoch') || '.000Z'";
    let words: Vec<String> = (0..8).map(|place| choose(&WORDS, &format!("n * {}", 31 + place * 2))).collect();
    connection.batch_execute(&format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})
         INSERT INTO products (id, name, sku, category, price, stock, active, description, released_on, created, updated)
         SELECT printf('%015d', n), 'Product ' || n, 'SKU-' || printf('%07d', n), {category}, n * 7919 % 100000 / 100.0,
            n % 500, n % 3 > 0, {description}, '2026-01-01 00:00:00.000Z', {moment}, {moment} FROM numbers",
        category = choose(&CATEGORIES, "n"),
        description = words.join(" || ' ' || "),
    ))?;
    Ok(())
}
