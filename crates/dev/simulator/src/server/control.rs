//! The control routes.

use super::inbox;
use super::local::{Done, done, is_own, parsed};
use crate::connection::{connection, verify};
use crate::control::{NewTemplate, Review};
use crate::control_error::ControlError;
use crate::settings::Settings;
use crate::world::{Action, Behaviour, Faults, NewUser, Number, SendFault, Shared, World};
use actix_web::guard::fn_guard;
use actix_web::web::{self, Bytes, Data, Path, Query, ServiceConfig};
use egress::Connector;
use model::Clock;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) fn routes(app: &mut ServiceConfig) {
    app.service(
        web::scope("/control")
            .guard(fn_guard(is_own))
            .route("/connection", web::get().to(get_connection))
            .route("/state", web::get().to(state))
            .route("/callback", web::put().to(set_callback))
            .route("/numbers", web::post().to(add_number))
            .route("/numbers/{id}/token", web::put().to(set_token))
            .route("/numbers/{id}/rating", web::put().to(rate))
            .route("/users", web::get().to(users))
            .route("/users", web::post().to(add_user))
            .route("/users/{user}/behaviour", web::put().to(behave))
            .route("/users/{user}/actions", web::post().to(act))
            .route("/users/{user}/chat", web::get().to(chat))
            .route("/echo", web::post().to(echo))
            .route("/faults", web::get().to(faults))
            .route("/faults", web::put().to(set_faults))
            .route("/faults/next", web::post().to(next_faults))
            .route("/clock", web::get().to(clock))
            .route("/clock", web::post().to(advance))
            .route("/templates", web::get().to(templates))
            .route("/templates", web::post().to(add_template))
            .route("/templates/review", web::post().to(review))
            .route("/marks", web::get().to(marks))
            .route("/transcript", web::get().to(transcript))
            .route("/transcript", web::delete().to(clear_transcript))
            .configure(inbox::routes),
    );
}

/// Returns the given number, or else the number of the settings.
fn number_or_first(world: &World, number_id: Option<String>) -> String {
    number_id.unwrap_or_else(|| world.settings.number_id.clone())
}

async fn get_connection(shared: Data<Shared>) -> Done {
    done(Ok(connection(&shared)))
}

async fn state(shared: Data<Shared>) -> Done {
    let world = shared.lock();
    let numbers: Vec<Value> = world
        .numbers
        .values()
        .map(|number| json!({ "number_id": number.id, "callback_url": number.callback_url, "quality": number.quality }))
        .collect();
    done(Ok(json!({
        "now": world.now(),
        "numbers": numbers,
        "users": world.people.len(),
        "accepted": world.transcript.total,
        "callbacks": world.counts,
        "planned": world.queue.len(),
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewCallback {
    number_id: Option<String>,
    url: Option<String>,
    /// If given, the URL is verified first.
    verify_token: Option<String>,
}

async fn set_callback(shared: Data<Shared>, connector: Data<Connector>, body: Bytes) -> Done {
    let new: NewCallback = parsed(&body)?;
    if let (Some(url), Some(token)) = (&new.url, &new.verify_token) {
        verify(&connector, url, token).await?;
    }
    done(shared.change(|world| {
        let id = number_or_first(world, new.number_id);
        world.number_mut(&id)?.callback_url.clone_from(&new.url);
        Ok(json!({ "number_id": id, "url": new.url }))
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewNumber {
    number_id: String,
    display_number: String,
    business_id: Option<String>,
    verified_name: Option<String>,
    access_token: Option<String>,
    app_secret: Option<String>,
    callback_url: Option<String>,
}

async fn add_number(shared: Data<Shared>, body: Bytes) -> Done {
    let new: NewNumber = parsed(&body)?;
    done(shared.change(|world| {
        if world.numbers.contains_key(&new.number_id) {
            return Err(ControlError::invalid("There is such a number already."));
        }
        let first = world.settings.clone();
        let settings = Settings {
            business_id: new.business_id.unwrap_or(first.business_id),
            verified_name: new.verified_name.unwrap_or(first.verified_name),
            access_token: new.access_token.unwrap_or(first.access_token),
            app_secret: new.app_secret.unwrap_or(first.app_secret),
            number_id: new.number_id.clone(),
            display_number: new.display_number,
            callback_url: new.callback_url,
            ..Settings::default()
        };
        world.numbers.insert(new.number_id.clone(), Number::of(&settings));
        Ok(json!({ "number_id": new.number_id }))
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Token {
    revoked: bool,
}

async fn set_token(shared: Data<Shared>, id: Path<String>, body: Bytes) -> Done {
    let token: Token = parsed(&body)?;
    done(shared.change(|world| {
        world.number_mut(&id)?.is_revoked = token.revoked;
        Ok(json!({ "revoked": token.revoked }))
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rating {
    quality: String,
    tier: String,
}

async fn rate(shared: Data<Shared>, id: Path<String>, body: Bytes) -> Done {
    let rating: Rating = parsed(&body)?;
    done(shared.change(|world| {
        world.rate_number(&id, &rating.quality, &rating.tier).map(|()| json!({ "quality": rating.quality }))
    }))
}

async fn users(shared: Data<Shared>) -> Done {
    let world = shared.lock();
    let mut users: Vec<_> = world.people.values().map(|person| person.user.clone()).collect();
    users.sort_by(|one, other| one.user_id.cmp(&other.user_id));
    done(Ok(json!({ "data": users })))
}

async fn add_user(shared: Data<Shared>, body: Bytes) -> Done {
    let new: NewUser = parsed(&body)?;
    done(shared.change(|world| world.add_user(new)))
}

async fn behave(shared: Data<Shared>, user: Path<String>, body: Bytes) -> Done {
    let behaviour: Behaviour = parsed(&body)?;
    done(shared.change(|world| {
        let key = world.key_of(&user)?;
        let person = world.people.get_mut(&key).ok_or_else(|| ControlError::missing("user", &key))?;
        person.user.behaviour = behaviour;
        person.step = 0;
        Ok(person.user.clone())
    }))
}

#[derive(Deserialize)]
struct Towards {
    number_id: Option<String>,
}

async fn act(shared: Data<Shared>, user: Path<String>, body: Bytes) -> Done {
    let action: Action = parsed(&body)?;
    let Towards { number_id } = parsed(&body)?;
    done(shared.change(|world| {
        let key = world.key_of(&user)?;
        let number_id = number_or_first(world, number_id);
        world.act(&key, &number_id, &action).map(|id| json!({ "id": id }))
    }))
}

#[derive(Deserialize)]
struct Looking {
    /// Whether a person views the conversation. Its messages are then read.
    #[serde(default)]
    read: bool,
}

async fn chat(shared: Data<Shared>, user: Path<String>, looking: Query<Looking>) -> Done {
    let read = |world: &mut World| {
        let key = world.key_of(&user)?;
        let number = world.settings.number_id.clone();
        if looking.read {
            world.act(&key, &number, &Action::Read)?;
        }
        Ok(json!({ "data": world.chat(&key) }))
    };
    if looking.read { done(shared.change(read)) } else { done(read(&mut shared.lock())) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Echo {
    number_id: Option<String>,
    user: String,
    body: String,
}

async fn echo(shared: Data<Shared>, body: Bytes) -> Done {
    let echo: Echo = parsed(&body)?;
    done(shared.change(|world| {
        let number_id = number_or_first(world, echo.number_id);
        world.echo(&number_id, &echo.user, &echo.body).map(|id| json!({ "id": id }))
    }))
}

async fn faults(shared: Data<Shared>) -> Done {
    done(Ok(shared.lock().faults.clone()))
}

async fn set_faults(shared: Data<Shared>, body: Bytes) -> Done {
    let faults: Faults = parsed(&body)?;
    shared.change(|world| world.faults = faults.clone());
    done(Ok(faults))
}

async fn next_faults(shared: Data<Shared>, body: Bytes) -> Done {
    let faults: Vec<SendFault> = parsed(&body)?;
    shared.change(|world| world.next_sends.extend(faults.iter().copied()));
    done(Ok(faults))
}

async fn clock(shared: Data<Shared>) -> Done {
    done(Ok(json!({ "now": shared.clock.now() })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    advance_ms: u32,
}

async fn advance(shared: Data<Shared>, body: Bytes) -> Done {
    let by: Advance = parsed(&body)?;
    shared.clock.advance(chrono::Duration::milliseconds(i64::from(by.advance_ms)));
    shared.progress.send_replace(());
    done(Ok(json!({ "now": shared.clock.now() })))
}

async fn templates(shared: Data<Shared>) -> Done {
    let world = shared.lock();
    let rows: Vec<Value> = world.templates.by_id.values().map(crate::world::Template::listed).collect();
    done(Ok(json!({ "data": rows })))
}

async fn add_template(shared: Data<Shared>, body: Bytes) -> Done {
    let new: NewTemplate = parsed(&body)?;
    done(shared.change(|world| world.add_template(&new).map(|id| json!({ "id": id }))))
}

#[derive(Deserialize)]
struct Named {
    name: String,
    language: String,
}

async fn review(shared: Data<Shared>, body: Bytes) -> Done {
    let Named { name, language } = parsed(&body)?;
    let verdict: Review = parsed(&body)?;
    done(shared.change(|world| world.review(&name, &language, &verdict).map(|()| json!({ "name": name }))))
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

async fn transcript(shared: Data<Shared>, page: Query<Page>) -> Done {
    let world = shared.lock();
    let rows = world.transcript.after(page.after, page.limit.unwrap_or(1000).min(10_000));
    done(Ok(json!({ "accepted": world.transcript.total, "data": rows })))
}

async fn marks(shared: Data<Shared>) -> Done {
    done(Ok(json!({ "data": shared.lock().marks })))
}

async fn clear_transcript(shared: Data<Shared>) -> Done {
    shared.change(|world| world.transcript.clear());
    done(Ok(json!({ "cleared": true })))
}
