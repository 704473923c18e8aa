//! Both areas behind the whole pipeline.

use crate::bed::{Bed, Key};
use accounts::SessionTokens;
use auth::{Directory, Quotas, RateWindows, Seal, Spending};
use billing::{Billing, BillingSettings, Identity, Traces};
use model::{RunId, StepId};
use oauth::AccessTokens;
use operation::{
    Audience, Head, Limits, Pipeline, Registry, RequestLog, RequestMetrics, ResponseBody, Services,
};
use ports::TraceStep;
use serde_json::Value;
use std::sync::Arc;
use store::Db;
use telemetry::Tracer;
use testkit::Kind;

pub struct App {
    pub bed: Bed,
    pub pipeline: Pipeline,
    pub key: Key,
    _stop: tokio::sync::watch::Sender<bool>,
}

pub fn registry() -> Registry {
    Registry::new().with::<Identity>().unwrap().with::<Billing>().unwrap()
}

impl App {
    pub async fn new(kind: Kind) -> Self {
        let bed = Bed::new(kind).await;
        let db = bed.db().clone();
        Self::on(bed, db).await
    }

    /// A second replica on the same database.
    pub async fn replica(&self) -> Self {
        Self::on(self.bed.share(), self.bed.test.reopen()).await
    }

    async fn on(bed: Bed, db: Db) -> Self {
        let key = bed.key(Some(100), false).await;
        let quotas = Arc::new(Quotas::new(db.clone()));
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let (log, _) = RequestLog::start(db.clone(), quotas.clone(), stopped).unwrap();
        let seal = Arc::new(Seal::new(&[7; 32]).unwrap());
        let directory = Arc::new(Directory::new(db.clone()));
        let settings = BillingSettings { recharge_url: Some("https://svc.test/billing".into()) };
        let services =
            Services::default().with(settings).with_shared(seal.clone()).with(Traces(bed.trace.clone()));
        let pipeline = Pipeline {
            registry: Arc::new(registry()),
            session_tokens: Arc::new(SessionTokens::new(
                db.clone(),
                directory.clone(),
                seal.clone(),
                "http://svc.test",
            )),
            access_tokens: Arc::new(AccessTokens::new(db.clone(), directory.clone())),
            directory,
            rates: Arc::new(RateWindows::local()),
            quotas,
            spending: Arc::new(Spending::new(db.clone(), billing::ledger::spent_micros)),
            seal,
            claims: auth::idempotency::Claims::default(),
            log,
            metrics: Some(RequestMetrics::new(&registry()).unwrap()),
            services: Arc::new(services),
            limits: Limits::default(),
            tracer: Tracer::off(db.random()),
            db,
        };
        Self { bed, pipeline, key, _stop: stop }
    }

    pub async fn get_with(&self, key: &Key, address: &str) -> (u16, Value) {
        self.get_as(key.secret.reveal(), Audience::Rest, address).await
    }

    /// Asks with any credential, as a request to one of the interfaces.
    pub async fn get_as(&self, secret: &str, audience: Audience, address: &str) -> (u16, Value) {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let bearer = format!("Bearer {secret}");
        let headers = |name: &str| (name == "authorization").then_some(bearer.as_bytes());
        let head =
            Head { method: "GET", path, query, peer: [127, 0, 0, 1].into(), audience, headers: &headers };
        let response = match self.pipeline.admit(&head).await {
            Ok(admitted) => self.pipeline.run(admitted, b"").await,
            Err(response) => response,
        };
        let ResponseBody::Json(body) = response.body else { unreachable!("nothing of billing streams") };
        (response.status, serde_json::from_str(&body).unwrap())
    }

    /// The whole body of a success.
    pub async fn page(&self, address: &str) -> Value {
        let (status, body) = self.get_with(&self.key, address).await;
        assert_eq!(status, 200, "{address}: {body}");
        assert_eq!(body["success"], true);
        body
    }

    pub async fn get(&self, address: &str) -> Value {
        self.page(address).await["data"].clone()
    }

    /// Status, code and param of a refusal.
    pub async fn refused(&self, address: &str) -> (u16, String, String) {
        let (status, body) = self.get_with(&self.key, address).await;
        let word = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
        (status, word("code"), word("param"))
    }

    /// Writes steps into a run's trace: a call of the model, and behind it tools.
    pub fn write_steps(&self, run: &RunId, positions: std::ops::Range<i64>) {
        let now = self.bed.db().clock().now();
        let first = positions.start;
        let step = |position| TraceStep {
            id: StepId::new(now, &*self.bed.db().random()),
            position,
            kind: if position == first { "model" } else { "tool" }.into(),
            name: "test-model".into(),
            status: "completed".into(),
            input_tokens: 11,
            output_tokens: 12,
            energy: if position == first { 20 } else { 0 },
            started_at: now,
            completed_at: None,
        };
        let mut traces = self.bed.trace.0.lock().unwrap();
        traces.entry(run.clone()).or_default().extend(positions.map(step));
    }

    pub async fn spend(&self, energy: i64) -> RunId {
        let run = self.bed.run(&self.key);
        self.bed.hold(&run, energy, energy).await.unwrap();
        self.bed.close(&run, 0, energy).await;
        run.run
    }
}

pub fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

pub fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}
