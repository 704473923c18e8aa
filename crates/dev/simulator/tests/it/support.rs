use actix_web::dev::ServerHandle;
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use chatnet::{
    Account, ChannelAdapter, Chatnet, InboundMessage, OutboundContent, OutboundMessage, Recipient,
    SIGNATURE_HEADER, SendOutcome, StatusUpdate, Update,
};
use egress::{Connector, Policy};
use model::{ManualClock, Timestamp};
use serde_json::Value;
use simulator::{NewTemplate, NewUser, Settings, Simulator, User};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

pub const SECRET: &str = "simulated-app-secret";
pub const PHONE: &str = "16505551234";

/// A callback as it was received.
#[derive(Clone)]
pub struct Called {
    pub signature: Option<String>,
    pub body: Vec<u8>,
    pub taken: bool,
}

#[derive(Default)]
struct Service {
    called: Mutex<Vec<Called>>,
    /// The statuses of the next responses, before 200.
    answers: Mutex<Vec<u16>>,
    changed: watch::Sender<()>,
}

/// A simulator, the adapter, and a service that receives callbacks.
pub struct Net {
    pub sim: Simulator,
    pub adapter: Chatnet,
    pub account: Account,
    pub connector: Connector,
    service: Arc<Service>,
    pub callback_url: String,
    server: ServerHandle,
}

pub fn start_at() -> Timestamp {
    Timestamp::parse("2026-03-01T12:00:00Z").unwrap()
}

impl Net {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let service = Arc::new(Service::default());
        let shared: Data<Service> = Data::from(service.clone());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let callback_url = format!("http://{}/hook", listener.local_addr().unwrap());
        let app = move || {
            App::new()
                .app_data(shared.clone())
                .route("/hook", web::post().to(receive))
                .route("/hook", web::get().to(handshake))
        };
        let server = HttpServer::new(app)
            .workers(1)
            .keep_alive(Duration::from_secs(600))
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run();
        let handle = server.handle();
        tokio::spawn(server);
        let mut settings = Settings {
            clock: Arc::new(ManualClock::new(start_at())),
            callback_url: Some(callback_url.clone()),
            ..Settings::default()
        };
        change(&mut settings);
        let sim = Simulator::start(settings).unwrap();
        let connector = Connector::new(Policy::allowing(["127.0.0.0/8"]).unwrap()).unwrap();
        let adapter = Chatnet::new(connector.clone());
        let account = sim.connection().account();
        Self { sim, adapter, account, connector, service, callback_url, server: handle }
    }

    /// Returns a customer who has just sent a message.
    pub fn customer(&self) -> User {
        let user = self.quiet_customer();
        self.sim.write(&user.user_id, "Hello").unwrap();
        user
    }

    pub fn quiet_customer(&self) -> User {
        let new = NewUser {
            phone: Some(PHONE.to_owned()),
            name: Some("Sheena Nelson".to_owned()),
            ..NewUser::default()
        };
        self.sim.add_user(new).unwrap()
    }

    pub async fn send(&self, content: OutboundContent, reference: &str) -> SendOutcome {
        let to = Recipient::Phone(format!("+{PHONE}"));
        let message = OutboundMessage { to, reply_to: None, content };
        self.adapter.send(&self.account, &message, reference).await
    }

    /// Sends a text that must be accepted, and returns its id.
    pub async fn accepted(&self, body: &str, reference: &str) -> String {
        match self.send(text(body), reference).await {
            SendOutcome::Accepted { provider_id } => provider_id,
            other => panic!("{other:?}"),
        }
    }

    pub fn called(&self) -> Vec<Called> {
        self.service.called.lock().unwrap().clone()
    }

    /// Sets the statuses of the next responses.
    pub fn answer_next(&self, statuses: &[u16]) {
        self.service.answers.lock().unwrap().extend(statuses);
    }

    /// Waits until the received callbacks meet a condition.
    pub async fn wait_for(&self, is_so: impl Fn(&[Called]) -> bool) -> Vec<Called> {
        let mut changed = self.service.changed.subscribe();
        let wait = async {
            loop {
                changed.borrow_and_update();
                let called = self.called();
                if is_so(&called) {
                    return called;
                }
                changed.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(Duration::from_secs(20), wait).await {
            Ok(called) => called,
            Err(_) => panic!("so far: {:?}", self.updates()),
        }
    }

    /// Returns the updates in the accepted callbacks.
    pub fn updates(&self) -> Vec<Update> {
        self.updates_of(&self.called())
    }

    pub fn updates_of(&self, called: &[Called]) -> Vec<Update> {
        called
            .iter()
            .filter(|called| called.taken)
            .flat_map(|called| self.adapter.parse_webhook(&self.account, &called.body))
            .collect()
    }

    /// Waits until the updates in the accepted callbacks meet a condition.
    pub async fn until(&self, is_so: impl Fn(&[Update]) -> bool) -> Vec<Update> {
        let called = self.wait_for(|called| is_so(&self.updates_of(called))).await;
        self.updates_of(&called)
    }

    /// Waits for this number of statuses and returns them.
    pub async fn statuses(&self, count: usize) -> Vec<StatusUpdate> {
        statuses_of(&self.until(|updates| statuses_of(updates).len() >= count).await)
    }

    pub async fn messages(&self, count: usize) -> Vec<InboundMessage> {
        messages_of(&self.until(|updates| messages_of(updates).len() >= count).await)
    }

    pub fn template(&self, name: &str, category: &str, components: Value) {
        let new = NewTemplate {
            name: name.to_owned(),
            language: "en_US".to_owned(),
            category: category.to_owned(),
            components,
        };
        self.sim.add_template(&new).unwrap();
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        drop(self.server.stop(false));
    }
}

pub fn statuses_of(updates: &[Update]) -> Vec<StatusUpdate> {
    let status = |update: &Update| match update {
        Update::Status(status) => Some(status.clone()),
        _ => None,
    };
    updates.iter().filter_map(status).collect()
}

pub fn messages_of(updates: &[Update]) -> Vec<InboundMessage> {
    let message = |update: &Update| match update {
        Update::Message(message) => Some(message.clone()),
        _ => None,
    };
    updates.iter().filter_map(message).collect()
}

pub fn text(body: &str) -> OutboundContent {
    OutboundContent::Text { body: body.to_owned(), preview_url: false }
}

async fn receive(service: Data<Service>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let signature = request.headers().get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok());
    let wanted = chatnet::sign(SECRET, &body);
    let mut status = if signature == Some(&wanted) { 200 } else { 401 };
    {
        let mut answers = service.answers.lock().unwrap();
        if status == 200 && !answers.is_empty() {
            status = answers.remove(0);
        }
    }
    let called =
        Called { signature: signature.map(str::to_owned), body: body.to_vec(), taken: status == 200 };
    service.called.lock().unwrap().push(called);
    service.changed.send_replace(());
    HttpResponse::build(actix_web::http::StatusCode::from_u16(status).unwrap()).finish()
}

async fn handshake(query: web::Query<Vec<(String, String)>>) -> HttpResponse {
    let get = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    if get("hub.mode").as_deref() == Some("subscribe") && get("hub.verify_token").as_deref() == Some("right")
    {
        return HttpResponse::Ok().body(get("hub.challenge").unwrap_or_default());
    }
    HttpResponse::Forbidden().finish()
}
