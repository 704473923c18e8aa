//! `kill -9` while apps refresh their tokens, with the real program: an honest client, which sends a request again whose answer was
//! lost, is never signed out.

use accounts::schema::accounts;
use chrono::TimeDelta;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use futures::future::join_all;
use model::{AccountId, Clock, Env, MemberId, ScopeSet, SystemClock, WorkspaceId};
use oauth::schema::oauth_used_refresh_tokens;
use oauth::{Authorization, CodeExchange, Resource, TokenReply};
use serde_json::{Value, json};
use store::schema::events;
use store::{Db, Tx};
use testkit::{Answer, Client, Kind, Program, until};

/// Clients that refresh at once.
const CLIENTS: usize = 4;
const REDIRECT: &str = "http://127.0.0.1/callback";
/// The example of RFC 7636.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

fn account(tx: &mut Tx) -> model::Result<AccountId> {
    let (now, id) = (tx.now(), AccountId::new(tx.now(), &*tx.random()));
    let row = (
        accounts::id.eq(&id),
        accounts::email.eq("owner@shop.example"),
        accounts::email_key.eq("owner@shop.example"),
        accounts::name.eq("Owner"),
        accounts::operator.eq(false),
        accounts::created_at.eq(now),
        accounts::updated_at.eq(now),
    );
    diesel::insert_into(accounts::table).values(row).execute(tx.connection())?;
    Ok(id)
}

/// Signs a client in, and returns its first refresh token.
fn family(tx: &mut Tx, account: &AccountId, workspace: WorkspaceId, client: &str) -> model::Result<String> {
    let new = Authorization {
        account: account.clone(),
        member: MemberId(1),
        workspace,
        env: Env::Live,
        client_id: client.to_owned(),
        client_key: client.to_owned(),
        client_name: "Desk".into(),
        redirect_uri: REDIRECT.into(),
        challenge: CHALLENGE.into(),
        resource: Resource::Service,
        scopes: ScopeSet::parse_stored("contacts:read"),
    };
    let code = oauth::authorize(tx, &new)?.reveal().to_owned();
    let request = CodeExchange {
        client_id: client.to_owned(),
        code,
        redirect_uri: REDIRECT.into(),
        verifier: VERIFIER.into(),
        resource: None,
    };
    let TokenReply::Issued(body) = oauth::exchange(tx, &request)? else { panic!("no tokens") };
    let body: Value = serde_json::from_str(&body).unwrap();
    Ok(body["refresh_token"].as_str().unwrap().to_owned())
}

async fn refresh(client: &Client, id: &str, token: &str) -> Option<Answer> {
    let form = format!("grant_type=refresh_token&client_id={id}&refresh_token={token}");
    let ask = client.ask_beside("POST", "/oauth/token");
    ask.bytes("application/x-www-form-urlencoded", form.as_bytes()).try_send().await.ok()
}

fn successor(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body["refresh_token"].as_str().unwrap().to_owned()
}

async fn used(db: &Db) -> i64 {
    let count = db.read(|read| Ok(oauth_used_refresh_tokens::table.count().get_result(read.connection())?));
    count.await.unwrap()
}

/// What this process writes has the time of the machine, as what the program writes.
fn as_late_as_the_machine(program: &Program) {
    let clock = &program.data.clock;
    clock.advance(TimeDelta::milliseconds(SystemClock.now().millis() - clock.now().millis()));
}

/// A client may ask again for 30 seconds of the machine's time, which a slow start of the program must not use up.
async fn used_just_now(program: &Program) {
    as_late_as_the_machine(program);
    let updated = program.data.db.write(|tx| {
        let now = tx.now();
        let rows = diesel::update(oauth_used_refresh_tokens::table);
        Ok(rows.set(oauth_used_refresh_tokens::used_at.eq(now)).execute(tx.connection())?)
    });
    updated.await.unwrap();
}

#[testkit::both]
async fn a_killed_refresh_signs_no_honest_client_out(kind: Kind) {
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let (client, db) = (program.client(), &program.data.db);
    let workspace = program.key("contacts:read").workspace;
    as_late_as_the_machine(&program);
    let mut serving = program.serve().await;
    let metadata = json!({
        "client_name": "Desk", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none",
    });
    let made = client.ask_beside("POST", "/oauth/register").json(&metadata).send().await;
    let id = made.body["client_id"].as_str().unwrap().to_owned();
    let name = id.clone();
    let families = db.write(move |tx| {
        let account = account(tx)?;
        (0..CLIENTS).map(|_| family(tx, &account, workspace, &name)).collect::<model::Result<Vec<_>>>()
    });
    let mut tokens = families.await.unwrap();

    for _ in 0..2 {
        let before = used(db).await;
        // Each client refreshes on and on, until the answer to a request is lost.
        let refreshing = tokens.iter().map(async |first| {
            let mut token = first.clone();
            while let Some(answer) = refresh(&client, &id, &token).await {
                token = successor(&answer);
            }
            token
        });
        let killing = async {
            let enough = before + 3 * i64::try_from(CLIENTS).unwrap();
            until("tokens are refreshed", async || (used(db).await >= enough).then_some(())).await;
            serving.kill();
        };
        let (unanswered, ()) = tokio::join!(join_all(refreshing), killing);
        serving = program.serve().await;
        used_just_now(&program).await;
        tokens.clear();
        for token in unanswered {
            let answer = refresh(&client, &id, &token).await.expect("the service answers again");
            tokens.push(successor(&answer));
        }
    }
    for token in &tokens {
        successor(&refresh(&client, &id, token).await.unwrap());
    }
    let ended = db.read(|read| {
        let query = events::table.filter(events::kind.eq("app.authorization.revoked")).count();
        Ok(query.get_result::<i64>(read.connection())?)
    });
    assert_eq!(ended.await.unwrap(), 0);
    serving.stop().await;
}
