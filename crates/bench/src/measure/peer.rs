//! PocketBase, the peer of the data engine: the same rows in real columns, with indexes on the same fields.

use super::items::{CATEGORIES, WORDS};
use crate::http::Server;
use anyhow::{Context, Result, ensure};
use diesel::connection::SimpleConnection;
use diesel::{Connection, SqliteConnection};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EMAIL: &str = "bench@example.com";
const PASSWORD: &str = "bench-bench-bench";

/// A running PocketBase. Ended when dropped.
pub struct PocketBase {
    process: Child,
    /// Where it listens, with a superuser's token.
    pub server: Server,
}

/// The program, from `POCKETBASE`; `None` where that is not set.
pub fn program() -> Option<PathBuf> {
    std::env::var_os("POCKETBASE").map(PathBuf::from).filter(|path| path.is_file())
}

impl PocketBase {
    /// Starts PocketBase with `rows` products in a folder of its own.
    pub fn with_rows(program: &Path, folder: &Path, rows: u64) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let dir = format!("--dir={}", folder.display());
        let made = Command::new(program)
            .args(["superuser", "upsert", EMAIL, PASSWORD, &dir])
            .stdout(Stdio::null())
            .status()?;
        ensure!(made.success(), "PocketBase made no superuser");
        let fresh = Self::start(program, &dir)?;
        fresh.make_collection()?;
        drop(fresh);
        fill(&folder.join("data.db"), rows)?;
        Self::start(program, &dir)
    }

    /// Its process.
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

    fn make_collection(&self) -> Result<()> {
        let field = |name: &str, kind: &str| json!({ "name": name, "type": kind });
        let index = |column: &str| format!("CREATE INDEX by_{column} ON products ({column})");
        let body = json!({
            "name": "products",
            "type": "base",
            "fields": [
                field("name", "text"),
                field("sku", "text"),
                { "name": "category", "type": "select", "maxSelect": 1, "values": CATEGORIES },
                field("price", "number"),
                field("stock", "number"),
                field("active", "bool"),
                { "name": "description", "type": "text", "max": 10_000 },
                field("released_on", "date"),
                { "name": "created", "type": "autodate", "onCreate": true },
                { "name": "updated", "type": "autodate", "onCreate": true, "onUpdate": true },
            ],
            "indexes": [index("price"), index("category"), index("created"), index("updated")],
        });
        self.server.ask("POST", "/api/collections", Some(&body))?;
        Ok(())
    }
}

impl Drop for PocketBase {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes the rows while PocketBase is not running: the same as [`super::items::row`] makes.
fn fill(database: &Path, rows: u64) -> Result<()> {
    let mut connection = SqliteConnection::establish(&database.display().to_string())?;
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
