//! Every kind of verification against a recorded request: published examples where the vendor has one, and otherwise
//! signatures made by other software (Python's `hmac` and `cryptography`) after the vendor's published scheme.

use crate::webhooks::{at, bare, log, made, path};
use model::Timestamp;
use ring::hmac;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// A recorded request.
struct Recorded {
    verification: Value,
    /// The same with a secret or key that did not sign it.
    wrong: Value,
    /// Seconds since 1970, where the time of sending is signed.
    time: Option<i64>,
    headers: Vec<(&'static str, &'static str)>,
    content_type: &'static str,
    body: &'static str,
    /// What a wrong secret is called in the log.
    reason: &'static str,
}

fn recorded(
    verification: Value,
    wrong: Value,
    time: Option<i64>,
    headers: &[(&'static str, &'static str)],
    body: &'static str,
) -> Recorded {
    let headers = headers.to_vec();
    let reason = "wrong_signature";
    Recorded { verification, wrong, time, headers, content_type: "application/json", body, reason }
}

/// A preset with one secret.
fn preset(
    kind: &str,
    secret: &str,
    time: Option<i64>,
    headers: &[(&'static str, &'static str)],
    body: &'static str,
) -> Recorded {
    let of = |secret: &str| json!({ "type": kind, "secrets": [secret] });
    recorded(of(secret), of("d3Jvbmc="), time, headers, body)
}

/// A request whose secret is sent as it is.
fn plain(verification: Value, wrong: Value, header: (&'static str, &'static str)) -> Recorded {
    Recorded { reason: "wrong_secret", ..recorded(verification, wrong, None, &[header], "{}") }
}

const SLACK_BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
const ED25519: &str = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
const OTHER_KEY: &str = "dd74e21b0698ca4a6a983a7134a422d4b353611e0029dee93197d0cb57efee98";
const SENT: i64 = 1_614_265_330;

fn own_kinds() -> Vec<Recorded> {
    let hmac = |secret: &str, algorithm: &str, encoding: &str, prefix: &str| json!({ "type": "hmac", "header": "X-Sig", "secrets": [secret], "algorithm": algorithm, "encoding": encoding, "prefix": prefix });
    let timed = |secret: &str| {
        json!({ "type": "hmac", "header": "X-Sig", "secrets": [secret], "algorithm": "sha512", "encoding": "base64",
                "signed": "{timestamp}:{body}", "timestamp_header": "X-Time" })
    };
    let ed25519 =
        |key: &str| json!({ "type": "ed25519", "header": "X-Sig", "public_key": key, "encoding": "base64" });
    vec![
        plain(
            json!({ "type": "bearer", "secrets": ["s3cret"] }),
            json!({ "type": "bearer", "secrets": ["s3cre"] }),
            ("authorization", "bearer s3cret"),
        ),
        plain(
            json!({ "type": "header_secret", "header": "X-Own", "secrets": ["s3cret"] }),
            json!({ "type": "header_secret", "header": "X-Own", "secrets": ["s3crets"] }),
            ("x-own", "s3cret"),
        ),
        plain(
            json!({ "type": "basic", "username": "shop", "secrets": ["s3cret"] }),
            json!({ "type": "basic", "username": "shop", "secrets": ["other"] }),
            ("authorization", "Basic c2hvcDpzM2NyZXQ="),
        ),
        plain(
            json!({ "type": "gitlab", "secrets": ["s3cret"] }),
            json!({ "type": "gitlab", "secrets": ["other"] }),
            ("x-gitlab-token", "s3cret"),
        ),
        recorded(
            hmac("It's a Secret to Everybody", "sha1", "hex", "sha1="),
            hmac("other", "sha1", "hex", "sha1="),
            None,
            &[("x-sig", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59")],
            "Hello, World!",
        ),
        recorded(
            hmac("key", "sha512", "base64", ""),
            hmac("other", "sha512", "base64", ""),
            None,
            &[(
                "x-sig",
                "3H2KankmBZ6YaX71SmX3Rdkk/D4TwRdoedzchOrEgLrjd/oG0evMb6sTdc2b1hGhiZaUzEyn3A9inYuBM8XIPQ==",
            )],
            "{\"a\":1}",
        ),
        recorded(
            timed("k1"),
            timed("k2"),
            Some(SENT),
            &[
                (
                    "x-sig",
                    "PqfZjZPAOdIEnliS5AWjvV9xkJN2nfAsfNgvn/V0ptFcLBNBsg02YOJD73JN+e4n582jg/25EOAylF4Q91+gyA==",
                ),
                ("x-time", "1614265330"),
            ],
            "{\"a\":1}",
        ),
        recorded(
            ed25519(ED25519),
            ed25519(OTHER_KEY),
            None,
            &[(
                "x-sig",
                "MlAD/WNr5cjHBezpFUU/lAoXucrT9YuZpXuCX5b55i/WqJsW3uzMoAjexiI+n+51gb/bkEssj5Fg+ZA8YSZYBg==",
            )],
            "{\"a\":1}",
        ),
    ]
}

fn vendors() -> Vec<Recorded> {
    let standard = [("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"), ("webhook-timestamp", "1614265330")];
    let svix = [("svix-id", standard[0].1), ("svix-timestamp", standard[1].1)];
    let symmetric = "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    let asymmetric =
        "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";
    let test = "{\"test\": 2432232314}";
    let discord = |key: &str| json!({ "type": "discord", "public_key": key });
    vec![
        // The examples of Standard Webhooks and of Svix.
        preset(
            "standard_webhooks",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            Some(SENT),
            &[standard[0], standard[1], ("webhook-signature", symmetric)],
            test,
        ),
        preset(
            "standard_webhooks",
            "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
            Some(SENT),
            &[svix[0], svix[1], ("svix-signature", asymmetric)],
            test,
        ),
        // The example of GitHub's documentation.
        preset(
            "github",
            "It's a Secret to Everybody",
            None,
            &[(
                "x-hub-signature-256",
                "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            )],
            "Hello, World!",
        ),
        // The example of Slack's documentation.
        Recorded {
            content_type: "application/x-www-form-urlencoded",
            ..preset(
                "slack",
                "8f742231b10e8888abcd99yyyzzz85a5",
                Some(1_531_420_618),
                &[
                    (
                        "x-slack-signature",
                        "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
                    ),
                    ("x-slack-request-timestamp", "1531420618"),
                ],
                SLACK_BODY,
            )
        },
        preset(
            "stripe",
            "whsec_test_secret",
            Some(SENT),
            &[(
                "stripe-signature",
                "t=1614265330,v1=00,v1=fbd6bf5496b9d6310e422a2c072578f95f5eb492111ab57a5510e9cd79c1b304,v0=6ffb",
            )],
            "{\"id\":\"evt_test\",\"object\":\"event\"}",
        ),
        preset(
            "shopify",
            "hush",
            None,
            &[("x-shopify-hmac-sha256", "QPF8T1ti8Gpf6xXRoKZDI2G/2Fp8v4tKnau8MqDdx3o=")],
            "{\"id\":450789469}",
        ),
        preset(
            "meta",
            "app-secret",
            None,
            &[(
                "x-hub-signature-256",
                "sha256=e6e9d7a842a48e17f43a34d6125d0d933e2aab92ee37f0993a4d493b50e3d438",
            )],
            "{\"object\":\"page\",\"entry\":[]}",
        ),
        preset(
            "zendesk",
            "dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==",
            Some(1_616_648_967),
            &[
                ("x-zendesk-webhook-signature", "nq4fwcqAdxvlkQIcldf0l5I/02evgx9Aoi1uJ85IlWM="),
                ("x-zendesk-webhook-signature-timestamp", "2021-03-25T05:09:27Z"),
            ],
            "{\"ticket\":1}",
        ),
        preset(
            "calendly",
            "signing-key",
            Some(SENT),
            &[(
                "calendly-webhook-signature",
                "t=1614265330,v1=2de7744e284e74c55781b6d0d222a0c44f94efc7af6a18974b4e134d764573b9",
            )],
            "{\"event\":\"invitee.created\"}",
        ),
        preset(
            "typeform",
            "typeform-secret",
            None,
            &[("typeform-signature", "sha256=XC0kgkKoTsvzyNVvI85UDoGmKVpjjyeT6sXDKbt4M3M=")],
            "{\"event_id\":\"01H\"}",
        ),
        preset(
            "dropbox",
            "app-secret",
            None,
            &[("x-dropbox-signature", "ec937ec87a3d6b100588bc2cb51f1e2577b33d1553230100b9bf1bbb663d1661")],
            "{\"list_folder\":{\"accounts\":[\"dbid:AAH4f99T0taONIb-OurWxbNQ6ywGRopQngc\"]}}",
        ),
        preset(
            "zoom",
            "zoom-secret",
            Some(SENT),
            &[
                ("x-zm-signature", "v0=6aae2d5868755f4203934841cfe7e253ce72665e28fd02aeba9dde59f91abebe"),
                ("x-zm-request-timestamp", "1614265330"),
            ],
            "{\"event\":\"meeting.started\"}",
        ),
        recorded(
            discord("dd74e21b0698ca4a6a983a7134a422d4b353611e0029dee93197d0cb57efee99"),
            discord(ED25519),
            Some(1_784_500_000),
            &[
                (
                    "x-signature-ed25519",
                    "19b5f25cadc7328f685e47836d3465336e3d8735a89cbecc09cdd2d362aade414cffdee34f2968784057dc4175b8b1019f642823146ab17967e85b6a0d397109",
                ),
                ("x-signature-timestamp", "1784500000"),
            ],
            "{\"type\":1}",
        ),
    ]
}

/// Moves the clock to a moment.
fn set_clock(app: &TestApp, at: Timestamp) {
    let now = app.db().now();
    app.data.clock.advance(chrono::Duration::milliseconds(at.millis() - now.millis()));
}

struct Sender<'a> {
    app: &'a TestApp,
    key: &'a Key,
    webhook: Value,
}

impl Sender<'_> {
    async fn send(&self, recorded: &Recorded, body: &str, without: Option<&str>) -> Answer {
        let mut asking = self.app.ask_beside("POST", &path(&self.webhook));
        for (name, value) in recorded.headers.iter().filter(|(name, _)| Some(*name) != without) {
            asking = asking.header(name, value);
        }
        asking.bytes(recorded.content_type, body.as_bytes()).send().await
    }

    /// Checks that it is refused as this, says nothing to the sender, and keeps no body.
    async fn refused(&self, recorded: &Recorded, body: &str, without: Option<&str>, reason: &str) {
        let before = log(self.app, self.key, &self.webhook).await;
        let answer = self.send(recorded, body, without).await;
        let what = format!("{} {reason}: {}", recorded.verification, answer.text);
        assert_eq!(answer.expect_error(400, "invalid_signature"), None, "{what}");
        assert!(!answer.body["error"]["message"].as_str().unwrap().contains(reason), "{what}");
        let mut rows = log(self.app, self.key, &self.webhook).await;
        rows.retain(|row| !before.contains(row));
        let [last] = &rows[..] else { panic!("{what}: {rows:?}") };
        assert_eq!(
            (&last["status"], &last["error"]["message"]),
            (&json!("rejected"), &json!(reason)),
            "{what}"
        );
        assert_eq!((&last["body"], &last["body_bytes"]), (&json!(""), &json!(body.len())), "{what}");
    }
}

#[testkit::both]
async fn recorded_requests_are_verified(kind: Kind) {
    let app = TestApp::new(kind).await;
    let today = app.db().now();
    for recorded in own_kinds().into_iter().chain(vendors()) {
        set_clock(&app, today);
        let key = bare(&app).await;
        // The first secret is not the one that signed: while a secret is replaced, both count.
        let mut verification = recorded.verification.clone();
        if let Some(secrets) = verification["secrets"].as_array_mut() {
            secrets.insert(0, "d3Jvbmc=".into());
        }
        let new = json!({ "verification": verification, "dedupe": { "by": "none" }, "rate_limit": { "per_minute": 1000 } });
        let webhook = made(&app, &key, new).await;
        let sender = Sender { app: &app, key: &key, webhook };
        let sent = recorded.time.map(|seconds| Timestamp::from_millis(seconds * 1000));
        set_clock(&app, sent.unwrap_or(today));

        let right = sender.send(&recorded, recorded.body, None).await;
        assert!(matches!(right.status, 200 | 202), "{}: {}", recorded.verification, right.text);
        // Without its own time header a signature is missing something; without its signature it is none.
        for (place, (name, _)) in recorded.headers.iter().enumerate() {
            let is_id = name.ends_with("-id");
            let is_time = name.contains("time");
            let reason = if is_id {
                "wrong_signature"
            } else if is_time {
                "missing_timestamp"
            } else {
                "missing_header"
            };
            sender.refused(&recorded, recorded.body, Some(name), reason).await;
            assert!(place < 3);
        }
        if recorded.reason == "wrong_signature" {
            sender.refused(&recorded, &format!("{} ", recorded.body), None, "wrong_signature").await;
        }
        if let Some(sent) = sent {
            for (seconds, taken) in [(300, true), (-300, true), (301, false), (-301, false)] {
                set_clock(&app, sent.plus_seconds(seconds));
                if taken {
                    let status = sender.send(&recorded, recorded.body, None).await.status;
                    assert!(matches!(status, 200 | 202), "{}", recorded.verification);
                } else {
                    sender.refused(&recorded, recorded.body, None, "stale_timestamp").await;
                }
            }
            set_clock(&app, sent);
        }
        app.patch(&at(&sender.webhook), &key, json!({ "verification": recorded.wrong })).await.expect(200);
        sender.refused(&recorded, recorded.body, None, recorded.reason).await;
    }
}

#[testkit::both]
async fn malformed_signatures_are_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    for (verification, header, value) in [
        (json!({ "type": "github", "secrets": ["s"] }), "x-hub-signature-256", "sha256="),
        (json!({ "type": "github", "secrets": ["s"] }), "x-hub-signature-256", "sha256=xyz"),
        (json!({ "type": "github", "secrets": ["s"] }), "x-hub-signature-256", "sha1=00"),
        (json!({ "type": "github", "secrets": ["s"] }), "x-hub-signature-256", "é"),
        (json!({ "type": "stripe", "secrets": ["s"] }), "stripe-signature", "nonsense"),
        (json!({ "type": "stripe", "secrets": ["s"] }), "stripe-signature", "t=1768478400"),
        (json!({ "type": "stripe", "secrets": ["s"] }), "stripe-signature", "t=99999999999999999999,v1=00"),
        (json!({ "type": "stripe", "secrets": ["s"] }), "stripe-signature", "t=-1,v1=00"),
        (json!({ "type": "shopify", "secrets": ["s"] }), "x-shopify-hmac-sha256", "!!"),
        (json!({ "type": "bearer", "secrets": ["s"] }), "authorization", "Basic s"),
        (json!({ "type": "bearer", "secrets": ["s"] }), "authorization", "Bearer"),
        (json!({ "type": "basic", "username": "u", "secrets": ["s"] }), "authorization", "Basic"),
        (json!({ "type": "twilio", "secrets": ["s"] }), "x-twilio-signature", "!"),
        (json!({ "type": "microsoft_graph", "secrets": ["s"] }), "x-a", "b"),
    ] {
        let webhook = made(&app, &key, json!({ "verification": verification })).await;
        let answer =
            app.ask_beside("POST", &path(&webhook)).header(header, value).json(&json!({})).send().await;
        assert_eq!(answer.status, 400, "{verification} {value}: {}", answer.text);
        let reason = log(&app, &key, &webhook).await[0]["error"]["message"].clone();
        assert!(
            matches!(reason.as_str(), Some("malformed_signature" | "wrong_signature" | "missing_timestamp")),
            "{verification} {value}: {reason}"
        );
    }
}

#[testkit::both]
async fn twilio_signs_the_address_and_the_form(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook =
        made(&app, &key, json!({ "verification": { "type": "twilio", "secrets": ["12345"] } })).await;
    let sign = |text: &str| {
        use base64::Engine;
        let signing = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"12345");
        base64::engine::general_purpose::STANDARD.encode(hmac::sign(&signing, text.as_bytes()))
    };
    let url = webhook["url"].as_str().unwrap();
    let send = async |query: &str, signature: &str, content_type: &str, body: &str| {
        let asking = app
            .ask_beside("POST", &format!("{}{query}", path(&webhook)))
            .header("x-twilio-signature", signature);
        asking.bytes(content_type, body.as_bytes()).send().await.status
    };
    let form = "application/x-www-form-urlencoded";
    let signed = sign(&format!("{url}?foo=1&bar=2BodyHi you!From+14158675310"));
    assert_eq!(send("?foo=1&bar=2", &signed, form, "From=%2B14158675310&Body=Hi+you%21").await, 202);
    assert_eq!(send("?foo=1&bar=3", &signed, form, "From=%2B14158675310&Body=Hi+you%21").await, 400);
    assert_eq!(send("?foo=1&bar=2", &signed, form, "From=%2B14158675310&Body=Hi+me%21").await, 400);
    let digest = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862";
    let query = format!("?bodySHA256={digest}");
    let signed = sign(&format!("{url}{query}"));
    assert_eq!(send(&query, &signed, "application/json", "{\"a\":1}").await, 202);
    assert_eq!(send(&query, &signed, "application/json", "{\"a\":2}").await, 400);
    let mapped = &log(&app, &key, &webhook).await;
    assert_eq!(mapped.iter().filter(|row| row["status"] == "accepted").count(), 2);
}

#[testkit::both]
async fn redeliveries_of_svix_are_recognized_by_its_own_header(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let recorded = vendors().remove(1);
    let webhook = made(&app, &key, json!({ "verification": recorded.verification })).await;
    set_clock(&app, Timestamp::from_millis(SENT * 1000));
    let sender = Sender { app: &app, key: &key, webhook };
    let first = sender.send(&recorded, recorded.body, None).await.expect(202);
    let repeated = sender.send(&recorded, recorded.body, None).await.expect(200);
    assert_eq!(repeated, json!({ "id": first["id"], "duplicate": true }));
}

#[testkit::both]
async fn notifications_of_microsoft_graph_carry_the_secret(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook =
        made(&app, &key, json!({ "verification": { "type": "microsoft_graph", "secrets": ["state"] } }))
            .await;
    for (body, status) in [
        (json!({ "value": [{ "clientState": "state" }, { "clientState": "state", "resource": "x" }] }), 202),
        (json!({ "value": [{ "clientState": "state" }, { "clientState": "other" }] }), 400),
        (json!({ "value": [{}] }), 400),
        (json!({ "value": [] }), 400),
        (json!([]), 400),
    ] {
        let answer = app.ask_beside("POST", &path(&webhook)).json(&body).send().await;
        assert_eq!(answer.status, status, "{body}");
    }
}

#[testkit::both]
async fn handshakes_are_answered(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let of = async |verification: Value| made(&app, &key, json!({ "verification": verification })).await;
    let get = async |webhook: &Value, query: &str| {
        app.ask_beside("GET", &format!("{}?{query}", path(webhook))).send().await
    };

    let meta = of(json!({ "type": "meta", "secrets": ["s"], "verify_token": "mine" })).await;
    let right = get(&meta, "hub.mode=subscribe&hub.verify_token=mine&hub.challenge=1158201444").await;
    assert_eq!((right.status, right.text.as_str()), (200, "1158201444"));
    assert_eq!(
        (&*right.headers["content-type"], &*right.headers["x-content-type-options"]),
        ("text/plain; charset=utf-8", "nosniff")
    );
    for wrong in [
        "hub.mode=subscribe&hub.verify_token=yours&hub.challenge=1",
        "hub.mode=subscribe&hub.challenge=1",
        "hub.mode=other&hub.verify_token=mine&hub.challenge=1",
        "",
    ] {
        get(&meta, wrong).await.expect_error(400, "invalid_signature");
    }

    let dropbox = of(json!({ "type": "dropbox", "secrets": ["s"] })).await;
    let right = get(&dropbox, "challenge=abc%3Cb%3E").await;
    assert_eq!((right.status, right.text.as_str()), (200, "abc<b>"));
    get(&dropbox, "other=1").await.expect_error(400, "invalid_signature");

    let graph = of(json!({ "type": "microsoft_graph", "secrets": ["s"] })).await;
    let right = app
        .ask_beside("POST", &format!("{}?validationToken=Validation%3A+Testing", path(&graph)))
        .bytes("text/plain", b"")
        .send()
        .await;
    assert_eq!((right.status, right.text.as_str()), (200, "Validation: Testing"));

    let signing = |secret: &str| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let hex = |tag: hmac::Tag| tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let now = app.db().now().seconds();
    let slack = of(json!({ "type": "slack", "secrets": ["s"] })).await;
    let question = json!({ "token": "t", "challenge": "3eZbrw1a", "type": "url_verification" });
    let tag = hex(hmac::sign(&signing("s"), format!("v0:{now}:{question}").as_bytes()));
    let ask = async |signature: String| {
        let asking = app.ask_beside("POST", &path(&slack)).header("x-slack-signature", &signature);
        asking.header("x-slack-request-timestamp", &now.to_string()).json(&question).send().await
    };
    let right = ask(format!("v0={tag}")).await;
    assert_eq!((right.status, &right.body), (200, &json!({ "challenge": "3eZbrw1a" })));
    ask(format!("v0={}", "0".repeat(64))).await.expect_error(400, "invalid_signature");

    let zoom = of(json!({ "type": "zoom", "secrets": ["zoom-secret"] })).await;
    let question = json!({ "payload": { "plainToken": "qgg8vlvZRS6UYooatFL8Aw" }, "event_ts": 1, "event": "endpoint.url_validation" });
    let tag = hex(hmac::sign(&signing("zoom-secret"), format!("v0:{now}:{question}").as_bytes()));
    let asking = app.ask_beside("POST", &path(&zoom)).header("x-zm-signature", &format!("v0={tag}"));
    let right = asking.header("x-zm-request-timestamp", &now.to_string()).json(&question).send().await;
    let encrypted = "b17f0320a1322a509340a1a835b3d9edbc491f0b0790ed2d20d0604d39dfe922";
    assert_eq!(right.body, json!({ "plainToken": "qgg8vlvZRS6UYooatFL8Aw", "encryptedToken": encrypted }));

    // Discord's PING of webhook events and of interactions, signed by a key of the test.
    use ring::signature::{Ed25519KeyPair, KeyPair};
    let pair = Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
    let public: String = pair.public_key().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let discord = of(json!({ "type": "discord", "public_key": public })).await;
    for (body, status, text) in
        [(json!({ "version": 1, "type": 0 }), 204, ""), (json!({ "type": 1 }), 200, "{\"type\":1}")]
    {
        let signature = pair.sign(format!("{now}{body}").as_bytes());
        let signature: String = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let asking = app.ask_beside("POST", &path(&discord)).header("x-signature-ed25519", &signature);
        let answer = asking.header("x-signature-timestamp", &now.to_string()).json(&body).send().await;
        assert_eq!((answer.status, answer.text.as_str()), (status, text));
    }
    // A question is no message: nothing but refusals was kept.
    for (webhook, refused) in [(&meta, 4), (&dropbox, 1), (&graph, 0), (&slack, 1), (&zoom, 0), (&discord, 0)]
    {
        let rows = log(&app, &key, webhook).await;
        assert_eq!(rows.len(), refused);
        assert!(rows.iter().all(|row| row["status"] == "rejected"));
    }
    // Whoever has no handshake takes POST only.
    let github = of(json!({ "type": "github", "secrets": ["s"] })).await;
    let answer = get(&github, "challenge=1").await;
    answer.expect_error(405, "method_not_allowed");
    assert_eq!(answer.headers["allow"], "POST");
}
