//! Chains of causes: what a tool, a reminder, a received webhook, a broadcast or a run leads to has the root of what led to it, and
//! is one step further, also where the way leads over HTTP through the service's own address.

use model::{Chain, EventId, Random, SeededRandom};
use operation::CauseHeader;
use serde_json::{Value, json};
use testkit::{Answer, ChannelApp, Key, Kind, Script, TestApp, assert_absent};

/// A service whose agent has tools, with all that can cause something.
struct Bench {
    of: ChannelApp,
    /// The path of an inbound webhook.
    hook: String,
    made: usize,
}

impl Bench {
    async fn open(kind: Kind) -> Self {
        let of = ChannelApp::around(TestApp::at_own_address(kind).await, |_| {}).await;
        of.template("notice", "utility", "We are open.", &[]).await;
        let customer = of.customer("Ana", "+5511987654321");
        of.hear(&customer, "Hi").await;
        let hook = of.post("/inbound-webhooks", json!({ "name": "Own" })).await.expect(201);
        let hook = hook["url"].as_str().unwrap().to_owned();
        let agent = of.get("/agents").await.expect(200)[0]["id"].clone();
        let app = &of.app;
        let tool = json!({ "type": "tasks", "access": "read_write" });
        app.put(&format!("/agents/{agent}/tools/tasks"), &of.key, tool).await.expect(200);
        let http = json!({
            "type": "http", "description": "Calls the service back.", "http": { "method": "POST", "url": hook },
        });
        app.put(&format!("/agents/{agent}/tools/back"), &of.key, http).await.expect(200);
        let hook = hook.replace(&app.origin, "");
        Self { of, hook, made: 0 }
    }

    fn app(&self) -> &TestApp {
        &self.of.app
    }

    /// The header of a request at a place in a chain, as the service itself would send it.
    fn header(&self, chain: Option<&Chain>) -> (String, String) {
        let app = self.app();
        let header = app.service.pipeline.services.get::<CauseHeader>().unwrap();
        let sealed = chain.map(|chain| header.of(&app.origin, chain, app.db().now()).unwrap());
        sealed.unwrap_or_else(|| ("x-nothing".to_owned(), String::new()))
    }

    /// Posts a body with the key, at a place in a chain.
    async fn post(&self, path: &str, body: Value, chain: Option<&Chain>) -> Answer {
        let (name, value) = self.header(chain);
        self.app().ask("POST", path).key(&self.of.key).header(&name, &value).json(&body).send().await
    }

    /// Runs the agent, whose model follows the script.
    async fn run(&self, script: Vec<Script>, chain: Option<&Chain>) {
        for step in script {
            self.app().model.then(step);
        }
        let run = self.post("/runs", json!({ "input": "Go on." }), chain).await.expect(200);
        assert_eq!(run["status"], "completed", "{run}");
    }

    /// The newest event of a type.
    async fn newest(&self, kind: &str) -> Value {
        self.app().deliver().await;
        self.of.get(&format!("/events?type={kind}&limit=1")).await.expect(200)[0].clone()
    }

    /// Does a step at a place in a chain, and gives the types of the events that follow, each with how many steps it is further.
    async fn step(&mut self, step: Step, chain: Option<&Chain>) -> Vec<(&'static str, u32)> {
        self.made += 1;
        match step {
            Step::Run => {
                self.run(vec![Script::Say("Done.".into())], chain).await;
                vec![("run.completed", 0)]
            }
            Step::Tool => {
                let create = json!({ "title": format!("Task {}", self.made) });
                let calls =
                    vec![("tasks_create".to_owned(), create), ("back".to_owned(), json!({ "n": self.made }))];
                self.run(vec![Script::Call(calls), Script::Say("Done.".into())], chain).await;
                vec![("run.completed", 0), ("task.created", 1), ("webhook.received", 1)]
            }
            Step::Reminder => {
                let due = self.app().db().now().plus_seconds(5).rfc3339();
                let action = json!({ "type": "run_agent", "config": { "input": "Remind them." } });
                let new =
                    json!({ "title": format!("Reminder {}", self.made), "due_at": due, "action": action });
                self.post("/reminders", new, chain).await.expect(201);
                self.app().model.then(Script::Say("Done.".into()));
                self.of.let_pass(11).await;
                self.app().service.engine.idle().await;
                vec![("reminder.fired", 1), ("run.completed", 2)]
            }
            Step::InboundWebhook => {
                let (name, value) = self.header(chain);
                let body = json!({ "n": self.made });
                let sent =
                    self.app().ask_beside("POST", &self.hook).header(&name, &value).json(&body).send().await;
                assert_eq!(sent.status, 202, "{}", sent.text);
                vec![("webhook.received", 0)]
            }
            Step::Broadcast => {
                let new = json!({
                    "name": format!("Notice {}", self.made), "channel_id": self.of.channel,
                    "template": { "name": "notice", "language": "en" },
                    "audience": { "filter_tree": { "not": { "field": "$name", "op": "eq", "value": "" } } },
                });
                let id = self.of.post("/broadcasts", new).await.expect(201)["id"].clone();
                self.post(&format!("/broadcasts/{id}/send"), json!({}), chain).await.expect(200);
                self.of.let_pass(4).await;
                vec![("broadcast.started", 0), ("contact.message.sent", 1), ("broadcast.completed", 1)]
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Run,
    Tool,
    Reminder,
    InboundWebhook,
    Broadcast,
}

const STEPS: [Step; 5] = [Step::Run, Step::Tool, Step::Reminder, Step::InboundWebhook, Step::Broadcast];

/// The place of an event in its chain.
fn place(event: &Value) -> Chain {
    let root = EventId::parse(event["caused_by"]["root_event_id"].as_str().unwrap()).unwrap();
    let depth = event["caused_by"]["depth"].as_u64().unwrap().try_into().unwrap();
    Chain { depth, ..Chain::starting(root) }
}

/// Report 19 (twentyhq/twenty#11322 and others): without the chain a flow that causes itself is not found.
#[testkit::both]
async fn whatever_follows_has_the_same_root_and_is_one_step_further(kind: Kind) {
    let mut bench = Bench::open(kind).await;
    for (seed, first) in (1..).zip(STEPS) {
        let random = SeededRandom::new(seed);
        let mut drawn = [0_u8; 3];
        random.fill(&mut drawn);
        let sequence = std::iter::once(first).chain(drawn.map(|byte| STEPS[usize::from(byte) % STEPS.len()]));
        let mut chain: Option<Chain> = None;
        for step in sequence {
            let events = bench.step(step, chain.as_ref()).await;
            // A reminder that a person set starts a chain when it fires.
            let start = if chain.is_some() { 0 } else { events[0].1 };
            for (kind, further) in events {
                let event = bench.newest(kind).await;
                let about = format!("{step:?} of {seed}: {kind} {}", event["id"]);
                assert!(event["id"].is_string(), "{about}");
                let found = place(&event);
                // The first event of a chain is its root.
                let before = chain.get_or_insert_with(|| Chain::starting(found.root.clone()));
                assert_eq!(
                    found,
                    Chain { depth: before.depth + further - start, ..before.clone() },
                    "{about}"
                );
            }
            // What the last event leads to.
            chain = chain.map(|chain| chain.next());
        }
    }
}

/// Report 19 (PostHog/posthog PR#65548, elastic/kibana PR#258370): a call of the product's own address loses the chain.
#[testkit::both]
async fn calls_of_the_own_address_go_on_with_the_chain(kind: Kind) {
    let bench = Bench::open(kind).await;
    let second = bench.of.post("/inbound-webhooks", json!({ "name": "Second" })).await.expect(201);
    let endpoint = json!({ "url": second["url"], "enabled_events": ["task.created"] });
    let endpoint = bench.of.post("/webhook-endpoints", endpoint).await.expect(201);
    let create = vec![("tasks_create".to_owned(), json!({ "title": "Follow up" }))];
    bench.run(vec![Script::Call(create), Script::Say("Done.".into())], None).await;
    let (run, task) = (bench.newest("run.completed").await, bench.newest("task.created").await);
    bench.app().deliver().await;
    let received = bench.newest("webhook.received").await;
    let root = run["id"].as_str().unwrap();
    for (event, depth) in [(&run, 0), (&task, 1), (&received, 2)] {
        let caused_by = (&event["caused_by"]["root_event_id"], &event["caused_by"]["depth"]);
        assert_eq!(caused_by, (&json!(root), &json!(depth)), "{event}");
    }
    // The mark is shown to nobody, who could send it again.
    let requests = format!("/inbound-webhooks/{}/requests", second["id"].as_str().unwrap());
    let kept = bench.of.get(&requests).await.expect(200);
    assert_absent(&kept[0].to_string(), &format!("\"{}\"", CauseHeader::NAME));
    let attempts = format!("/webhook-endpoints/{}/deliveries", endpoint["id"].as_str().unwrap());
    let attempts = bench.of.get(&attempts).await.expect(200);
    assert_absent(&attempts[0].to_string(), &format!("\"{}\"", CauseHeader::NAME));
}

#[testkit::both]
async fn a_mark_that_is_forged_or_old_is_ignored(kind: Kind) {
    let app = TestApp::at_own_address(kind).await;
    let key: Key = app.bare_key().await;
    let header = app.service.pipeline.services.get::<CauseHeader>().unwrap();
    let root = app.emit(key.workspace, testkit::ConversionSent::new("a")).await;
    let (name, value) = header.of(&app.origin, &Chain::after(&root, None), app.db().now()).unwrap();
    let create = async |value: &str| {
        let new = json!({ "data": { "$name": "Ana" } });
        app.ask("POST", "/contacts").key(&key).header(&name, value).json(&new).send().await.expect(201);
        app.deliver().await;
        let event = app.get("/events?type=contact.created&limit=1", &key).await.expect(200)[0].clone();
        (event["caused_by"]["depth"].clone(), event["caused_by"]["root_event_id"] == root.as_str())
    };
    assert_eq!(create(&value).await, (json!(1), true));
    assert_eq!(create(&format!("{value}A")).await, (json!(0), false));
    app.data.clock.advance(chrono::Duration::seconds(121));
    assert_eq!(create(&value).await, (json!(0), false));
}
