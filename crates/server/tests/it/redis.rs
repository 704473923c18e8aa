//! Redis that is down, hangs, goes and comes back: no request waits for it, and no limit is lifted.

use auth::RateWindows;
use chrono::Duration;
use model::{Env, SystemRandom};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Instant;
use testkit::{Answer, Key, Kind, Program, TestApp, until};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Stands before Redis and can be taken away.
struct Door {
    address: SocketAddr,
    open: Option<JoinHandle<()>>,
}

/// What becomes of who comes to a [`Door`].
#[derive(Clone)]
enum Behind {
    /// They are heard by nobody.
    Silence,
    /// They are led to the Redis at this address.
    Redis(String),
}

impl Door {
    /// A door that is closed.
    fn new() -> Self {
        Self { address: Program::address().parse().unwrap(), open: None }
    }

    fn url(&self) -> String {
        // A database of its own: the tests beside this one have replicas too.
        format!("redis://{}/7", self.address)
    }

    async fn open(&mut self, behind: Behind) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.open = Some(tokio::spawn(async move {
            let mut guests = JoinSet::new();
            while let Ok((mut guest, _)) = listener.accept().await {
                let behind = behind.clone();
                guests.spawn(async move {
                    match behind {
                        Behind::Silence => std::future::pending().await,
                        Behind::Redis(address) => {
                            let mut redis = TcpStream::connect(address).await.unwrap();
                            let _ = tokio::io::copy_bidirectional(&mut guest, &mut redis).await;
                        }
                    }
                });
            }
        }));
    }

    /// Nobody comes in, and who is in is thrown out.
    async fn close(&mut self) {
        if let Some(open) = self.open.take() {
            open.abort();
            let _ = open.await;
        }
    }

    async fn windows(&self) -> RateWindows {
        RateWindows::shared(&self.url(), &SystemRandom::default()).await.unwrap()
    }
}

fn redis() -> Behind {
    let url = std::env::var("SVC_TEST_REDIS_URL").expect("run tests with `scripts/with-services`");
    Behind::Redis(url.trim_start_matches("redis://").trim_end_matches('/').to_owned())
}

async fn key_with_rpm(app: &TestApp, rpm: i64) -> Key {
    let workspace = app.workspace().await;
    app.key_with(workspace, Env::Live, &["runs:read"], move |new| new.rate_limit_rpm = Some(rpm)).await
}

fn limit(answer: &Answer) -> &str {
    &answer.headers["x-ratelimit-limit"]
}

async fn health(app: &TestApp) -> Value {
    app.ask_beside("GET", "/health").send().await.body
}

/// That requests are counted and answered although Redis is not there.
async fn serves_without_redis(door: &Door) {
    let data = testkit::TestDb::new(Kind::Sqlite);
    let db = data.db.clone();
    let app = TestApp::start(data, db, door.windows().await, None).await;
    let key = key_with_rpm(&app, 3).await;
    let began = Instant::now();
    for request in 0..200 {
        let answer = app.get("/me", &key).await;
        assert_eq!((answer.status, limit(&answer)), (if request < 3 { 200 } else { 429 }, "3"));
        app.data.clock.advance(Duration::milliseconds(100));
    }
    // Twenty seconds of the service's time are twenty attempts to reach it, of a tenth of a second each. If each request
    // made one, they would take twenty seconds.
    assert!(began.elapsed() < std::time::Duration::from_secs(12), "{:?}", began.elapsed());
    assert_eq!(health(&app).await, json!({ "status": "ok", "redis": "down" }));
}

#[tokio::test]
async fn nobody_waits_for_a_redis_that_is_down() {
    serves_without_redis(&Door::new()).await;
}

#[tokio::test]
async fn nobody_waits_for_a_redis_that_hangs() {
    let mut door = Door::new();
    door.open(Behind::Silence).await;
    serves_without_redis(&door).await;
}

#[tokio::test]
async fn while_redis_is_away_each_replica_gives_its_share() {
    let mut door = Door::new();
    door.open(redis()).await;
    let data = testkit::TestDb::new(Kind::Sqlite);
    let db = data.db.clone();
    let first = TestApp::start(data, db, door.windows().await, None).await;
    let app = first.replica(door.windows().await).await;
    let key = key_with_rpm(&first, 10).await;
    app.get("/me", &key).await.expect(200);
    first.get("/me", &key).await.expect(200);
    let third = app.get("/me", &key).await;
    assert_eq!((limit(&third), third.headers["x-ratelimit-remaining"].as_str()), ("10", "7"));
    assert_eq!(health(&app).await, json!({ "status": "ok", "redis": "ok" }));

    // What two replicas let through together is still ten.
    door.close().await;
    let alone = app.get("/me", &key).await;
    assert_eq!((limit(&alone), alone.headers["x-ratelimit-remaining"].as_str()), ("5", "4"));
    assert_eq!(health(&app).await["redis"], "down");

    // It is asked once a second, and counts on where it was.
    door.open(redis()).await;
    let back = until("redis is asked again", async || {
        app.data.clock.advance(Duration::seconds(1));
        let answer = app.get("/me", &key).await;
        (limit(&answer) == "10").then_some(answer)
    });
    assert_eq!(back.await.headers["x-ratelimit-remaining"], "6");
    assert_eq!(health(&app).await["redis"], "ok");
}
