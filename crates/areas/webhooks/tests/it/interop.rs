//! The public Standard Webhooks libraries verify what we deliver, byte for byte as it came in.
//!
//! `scripts/webhook-libraries`, which `make test` runs, fetches them; where one cannot be had its part is skipped.

use crate::{contact, key};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{Delivered, Kind, Receiver, TestApp};

const PYTHON: &str = r#"
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
case = json.load(open(sys.argv[1], encoding="utf-8"))
body = open(sys.argv[2], "rb").read()
event = Webhook(case["secret"]).verify(body, case["headers"])
assert event["id"] == case["headers"]["webhook-id"], event
try:
    Webhook(case["secret"]).verify(body.replace(b"livemode", b"livemood"), case["headers"])
except WebhookVerificationError:
    print("verified")
"#;

const NODE: &str = r#"
const fs = require("fs");
const { Webhook } = require("standardwebhooks");
const given = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const body = fs.readFileSync(process.argv[3], "utf8");
const event = new Webhook(given.secret).verify(body, given.headers);
if (event.id !== given.headers["webhook-id"]) throw new Error("another event");
try {
  new Webhook(given.secret).verify(body.replace("livemode", "livemood"), given.headers);
} catch (error) {
  console.log("verified");
}
"#;

fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.cache/webhooks")
}

/// Runs a library's check on a delivery.
fn verified(mut library: Command, folder: &Path, secret: &str, delivered: &Delivered) {
    let (given, body) = (folder.join("given.json"), folder.join("body"));
    let headers = &delivered.headers;
    std::fs::write(&given, json!({ "secret": secret, "headers": headers }).to_string()).unwrap();
    std::fs::write(&body, &delivered.body).unwrap();
    let output = library.arg(&given).arg(&body).output().unwrap();
    let reported = String::from_utf8_lossy(&output.stdout);
    assert_eq!(reported.trim(), "verified", "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn public_libraries_verify_deliveries() {
    let app = TestApp::new(Kind::Sqlite).await;
    // The libraries refuse what is older than five minutes by the machine's clock.
    let now = std::process::Command::new("date").arg("+%s").output().unwrap().stdout;
    let now: i64 = String::from_utf8(now).unwrap().trim().parse().unwrap();
    app.data.clock.advance(chrono::Duration::seconds(now - app.db().now().seconds()));
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    let secret = endpoint["secret"].as_str().unwrap();
    app.emit(key.workspace, contact(7, "héllo \u{1f980} \"quoted\" \\ 1.0")).await;
    receiver.answer_status(500);
    app.deliver().await;
    app.data.clock.advance(chrono::Duration::seconds(6));
    receiver.answer_status(200);
    app.deliver().await;
    let delivered = receiver.delivered();
    assert_eq!(delivered[0].body, delivered[1].body, "the second attempt sends the same bytes");
    let folder = tempfile::tempdir().unwrap();
    let python = cache().join("venv/bin/python");
    let modules = cache().join("npm/node_modules");
    let mut checked = 0;
    for one in &delivered {
        if python.exists() {
            let mut library = Command::new(&python);
            library.args(["-c", PYTHON]);
            verified(library, folder.path(), secret, one);
            checked += 1;
        }
        if modules.join("standardwebhooks").exists() {
            let script = folder.path().join("verify.js");
            std::fs::write(&script, NODE).unwrap();
            let mut library = Command::new("node");
            library.env("NODE_PATH", &modules).arg(&script);
            verified(library, folder.path(), secret, one);
            checked += 1;
        }
    }
    if checked < 4 {
        println!("skipped: a Standard Webhooks library is missing, run scripts/webhook-libraries");
    }
}
