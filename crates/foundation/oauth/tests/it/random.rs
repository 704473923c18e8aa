//! Random schedules of apps, attackers, crashes and time on two replicas, against a model that knows only the rules.

use crate::bed::{Bed, CLIENT, Tokens, exchanging, issued, refreshing, refused};
use diesel::prelude::*;
use jobs::Runner;
use model::{Cause, Error, ScopeSet};
use oauth::schema::{oauth_families, oauth_used_refresh_tokens};
use oauth::{CodeExchange, Refresh, TokenReply};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use testkit::Kind;

const CLIENTS: [&str; 2] = [CLIENT, "reg_another"];
const SCOPES: [&str; 3] = ["contacts:read", "contacts:read,tasks:read", "tasks:write"];
const DAY: i64 = 24 * 3600;

#[derive(Debug, Clone)]
enum Act {
    Authorize {
        client: usize,
        scopes: usize,
    },
    Exchange {
        code: usize,
        wrong: Option<Wrong>,
        first: bool,
    },
    ExchangeTwice {
        code: usize,
    },
    /// `scopes` narrows, or asks for more than is granted. A `stranger` has the token and is another client.
    Refresh {
        token: usize,
        scopes: Option<usize>,
        stranger: bool,
        first: bool,
    },
    RefreshTwice {
        token: usize,
    },
    /// The process dies before the commit.
    Crash {
        token: usize,
    },
    SignOut {
        token: usize,
    },
    RevokeAccess {
        token: usize,
    },
    RevokeGrant {
        client: usize,
    },
    Wait(i64),
    Purge,
}

#[derive(Debug, Clone, Copy)]
enum Wrong {
    Verifier,
    Client,
}

fn act() -> impl Strategy<Value = Act> {
    // Mostly the newest ones.
    let place = || prop_oneof![3 => 0usize..2, 1 => 0usize..12];
    prop_oneof![
        5 => (0usize..2, 0usize..3).prop_map(|(client, scopes)| Act::Authorize { client, scopes }),
        6 => (place(), proptest::option::weighted(0.15, prop_oneof![Just(Wrong::Verifier), Just(Wrong::Client)]), any::<bool>())
            .prop_map(|(code, wrong, first)| Act::Exchange { code, wrong, first }),
        1 => place().prop_map(|code| Act::ExchangeTwice { code }),
        12 => (place(), proptest::option::weighted(0.3, 0usize..3), proptest::bool::weighted(0.1), any::<bool>())
            .prop_map(|(token, scopes, stranger, first)| Act::Refresh { token, scopes, stranger, first }),
        5 => place().prop_map(|token| Act::RefreshTwice { token }),
        2 => place().prop_map(|token| Act::Crash { token }),
        1 => place().prop_map(|token| Act::SignOut { token }),
        1 => place().prop_map(|token| Act::RevokeAccess { token }),
        1 => (0usize..2).prop_map(|client| Act::RevokeGrant { client }),
        8 => prop_oneof![Just(1), Just(14), Just(29), Just(30), Just(61), Just(3600), Just(40 * DAY), Just(61 * DAY)]
            .prop_map(Act::Wait),
        1 => Just(Act::Purge),
    ]
}

struct Grant {
    client: usize,
    scopes: ScopeSet,
    alive: bool,
}

struct Code {
    text: String,
    grant: usize,
    scopes: ScopeSet,
    until: i64,
    used: bool,
    family: Option<usize>,
}

struct Family {
    grant: usize,
    alive: bool,
    idle_end: i64,
    end: i64,
}

struct Token {
    text: String,
    family: usize,
    /// When it was used, and the answer that it got.
    used: Option<(i64, String)>,
}

struct Access {
    text: String,
    family: usize,
    until: i64,
    scopes: ScopeSet,
    revoked: bool,
}

/// What the rules say to a request.
#[derive(Debug, PartialEq)]
enum Rule {
    Refused(&'static str),
    Repeated(String),
    Issued(ScopeSet),
}

#[derive(Default)]
struct Model {
    now: i64,
    grants: Vec<Grant>,
    codes: Vec<Code>,
    families: Vec<Family>,
    tokens: Vec<Token>,
    access: Vec<Access>,
    events: usize,
}

impl Model {
    fn grant(&self, client: usize) -> Option<usize> {
        self.grants.iter().rposition(|grant| grant.client == client && grant.alive)
    }

    fn lives(&self, family: usize) -> bool {
        let family = &self.families[family];
        family.alive && self.now < family.idle_end && self.grants[family.grant].alive
    }

    fn end_family(&mut self, family: usize) {
        let grant = self.families[family].grant;
        if self.families[family].alive && self.grants[grant].alive {
            self.families[family].alive = false;
            self.events += 1;
        }
    }

    fn exchange(&mut self, place: usize, wrong: bool) -> Rule {
        let refused = Rule::Refused("invalid_grant");
        let code = &mut self.codes[place];
        if code.used {
            if let Some(family) = code.family {
                self.end_family(family);
            }
            return refused;
        }
        code.used = true;
        let granted = self.grants[code.grant].alive && self.now < code.until && !wrong;
        if granted { Rule::Issued(code.scopes) } else { refused }
    }

    fn refresh(&mut self, place: usize, asked: Option<ScopeSet>, stranger: bool) -> Rule {
        let refused = Rule::Refused("invalid_grant");
        let token = &self.tokens[place];
        let family = token.family;
        if stranger || !self.lives(family) {
            return refused;
        }
        if let Some((at, answer)) = &token.used {
            if self.now < at + 30 {
                return Rule::Repeated(answer.clone());
            }
            self.end_family(family);
            return refused;
        }
        let granted = self.grants[self.families[family].grant].scopes;
        let scopes = asked.unwrap_or(granted);
        if scopes.iter().any(|scope| !granted.contains(scope)) {
            return Rule::Refused("invalid_scope");
        }
        Rule::Issued(scopes)
    }

    fn note_tokens(&mut self, family: usize, tokens: &Tokens, scopes: ScopeSet) {
        assert_eq!(tokens.scope, scopes.to_string().replace(',', " "));
        let until = (self.now + 3600).min(self.families[family].end);
        assert_eq!(tokens.expires_in, until - self.now);
        assert!(self.tokens.iter().all(|token| token.text != tokens.refresh), "a token is issued once");
        self.tokens.push(Token { text: tokens.refresh.clone(), family, used: None });
        let text = tokens.access.clone();
        self.access.push(Access { text, family, until, scopes, revoked: false });
    }

    fn sign_out(&mut self, place: usize) {
        let family = self.tokens[place].family;
        if !self.lives(family) {
            return;
        }
        self.end_family(family);
        let grant = self.families[family].grant;
        let families =
            (0..self.families.len()).any(|other| self.families[other].grant == grant && self.lives(other));
        let codes = self.codes.iter().any(|code| code.grant == grant && !code.used && self.now < code.until);
        if !families && !codes {
            self.grants[grant].alive = false;
        }
    }
}

struct Bench {
    bed: Bed,
    model: Model,
}

/// The place that counts from the newest one.
fn back(place: usize, len: usize) -> Option<usize> {
    (len > 0).then(|| len - 1 - place % len)
}

impl Bench {
    async fn play(&mut self, act: &Act) {
        match act {
            Act::Authorize { client, scopes } => self.authorize(*client, SCOPES[*scopes]).await,
            Act::Exchange { code, wrong, first } => self.exchange(*code, *wrong, *first).await,
            Act::ExchangeTwice { code } => self.exchange_twice(*code).await,
            Act::Refresh { token, scopes, stranger, first } => {
                self.refresh(*token, scopes.map(|scopes| SCOPES[scopes]), *stranger, *first).await;
            }
            Act::RefreshTwice { token } => self.refresh_twice(*token).await,
            Act::Crash { token } => self.crash(*token).await,
            Act::SignOut { token } => {
                let Some(place) = back(*token, self.model.tokens.len()) else { return };
                self.bed.revoke(self.client(place), &self.model.tokens[place].text).await;
                self.model.sign_out(place);
            }
            Act::RevokeAccess { token } => {
                let Some(place) = back(*token, self.model.access.len()) else { return };
                let token = &mut self.model.access[place];
                token.revoked = true;
                let client = CLIENTS[self.model.grants[self.model.families[token.family].grant].client];
                let text = token.text.clone();
                self.bed.revoke(client, &text).await;
            }
            Act::RevokeGrant { client } => self.revoke_grant(*client).await,
            Act::Wait(seconds) => self.wait(*seconds),
            Act::Purge => self.purge().await,
        }
    }

    fn wait(&mut self, seconds: i64) {
        self.bed.advance(seconds.unsigned_abs());
        self.model.now += seconds;
    }

    /// The client of a refresh token.
    fn client(&self, token: usize) -> &'static str {
        let family = &self.model.families[self.model.tokens[token].family];
        CLIENTS[self.model.grants[family.grant].client]
    }

    async fn authorize(&mut self, client: usize, scopes: &str) {
        let text = self.bed.authorize(self.bed.authorization(CLIENTS[client], scopes)).await;
        let asked = ScopeSet::parse_stored(scopes);
        let grant = self.model.grant(client).unwrap_or(self.model.grants.len());
        if grant == self.model.grants.len() {
            self.model.grants.push(Grant { client, scopes: asked, alive: true });
        }
        let all = &mut self.model.grants[grant].scopes;
        *all = all.iter().chain(asked.iter()).collect();
        let until = self.model.now + 60;
        self.model.codes.push(Code { text, grant, scopes: asked, until, used: false, family: None });
    }

    fn code_request(&self, place: usize, wrong: Option<Wrong>) -> CodeExchange {
        let code = &self.model.codes[place];
        let client = self.model.grants[code.grant].client;
        let right = CodeExchange { client_id: CLIENTS[client].into(), ..exchanging(&code.text) };
        match wrong {
            None => right,
            Some(Wrong::Verifier) => CodeExchange { verifier: "a".repeat(43), ..right },
            Some(Wrong::Client) => CodeExchange { client_id: CLIENTS[1 - client].into(), ..right },
        }
    }

    fn check_exchange(&mut self, place: usize, wrong: bool, reply: &TokenReply) {
        match self.model.exchange(place, wrong) {
            Rule::Issued(scopes) => {
                let (family, now) = (self.model.families.len(), self.model.now);
                let grant = self.model.codes[place].grant;
                self.model.families.push(Family {
                    grant,
                    alive: true,
                    idle_end: now + 60 * DAY,
                    end: now + 365 * DAY,
                });
                self.model.codes[place].family = Some(family);
                self.model.note_tokens(family, &issued(reply), scopes);
            }
            Rule::Refused(code) => assert_eq!(refused(reply), code),
            Rule::Repeated(_) => unreachable!("no code has an answer twice"),
        }
    }

    async fn exchange(&mut self, code: usize, wrong: Option<Wrong>, first: bool) {
        let Some(place) = back(code, self.model.codes.len()) else { return };
        let request = self.code_request(place, wrong);
        let reply = self.bed.exchange_at(self.bed.replica(first), request).await;
        self.check_exchange(place, wrong.is_some(), &reply);
    }

    async fn exchange_twice(&mut self, code: usize) {
        let Some(place) = back(code, self.model.codes.len()) else { return };
        let request = self.code_request(place, None);
        let (one, two) =
            tokio::join!(self.bed.exchange(request.clone()), self.bed.exchange_at(&self.bed.other, request));
        let (one, two) = if matches!(two, TokenReply::Issued(_)) { (two, one) } else { (one, two) };
        self.check_exchange(place, false, &one);
        self.check_exchange(place, false, &two);
    }

    fn refresh_request(&self, place: usize) -> Refresh {
        Refresh { client_id: self.client(place).into(), ..refreshing(&self.model.tokens[place].text) }
    }

    fn check_refresh(&mut self, place: usize, asked: Option<ScopeSet>, stranger: bool, reply: &TokenReply) {
        match self.model.refresh(place, asked, stranger) {
            Rule::Issued(scopes) => {
                let TokenReply::Issued(body) = reply else { panic!("{reply:?} instead of tokens") };
                let family = self.model.tokens[place].family;
                self.model.tokens[place].used = Some((self.model.now, body.clone()));
                let stands = &mut self.model.families[family];
                stands.idle_end = (self.model.now + 60 * DAY).min(stands.end);
                self.model.note_tokens(family, &issued(reply), scopes);
            }
            Rule::Repeated(body) => assert_eq!(*reply, TokenReply::Issued(body)),
            Rule::Refused(code) => assert_eq!(refused(reply), code),
        }
    }

    async fn refresh(&mut self, token: usize, scopes: Option<&str>, stranger: bool, first: bool) {
        let Some(place) = back(token, self.model.tokens.len()) else { return };
        let mut request = self.refresh_request(place);
        request.scope = scopes.map(|scopes| scopes.replace(',', " "));
        if stranger {
            request.client_id = "https://stranger.example/".into();
        }
        let reply = self.bed.refresh_at(self.bed.replica(first), request).await;
        self.check_refresh(place, scopes.map(ScopeSet::parse_stored), stranger, &reply);
    }

    async fn refresh_twice(&mut self, token: usize) {
        let Some(place) = back(token, self.model.tokens.len()) else { return };
        let request = self.refresh_request(place);
        let (one, two) =
            tokio::join!(self.bed.refresh(request.clone()), self.bed.refresh_at(&self.bed.other, request));
        self.check_refresh(place, None, false, &one);
        self.check_refresh(place, None, false, &two);
    }

    async fn crash(&mut self, token: usize) {
        let Some(place) = back(token, self.model.tokens.len()) else { return };
        let (seal, request) = (self.bed.seal.clone(), self.refresh_request(place));
        let crashed = self.bed.other.write(move |tx| {
            oauth::refresh(tx, &seal, &request)?;
            Err::<(), _>(Error::internal("the process dies"))
        });
        crashed.await.unwrap_err();
    }

    async fn revoke_grant(&mut self, client: usize) {
        let Some(grant) = self.model.grant(client) else { return };
        let (workspace, name) = (self.bed.workspace, CLIENTS[client]);
        let revoked = self.bed.db().write(move |tx| {
            let grants = oauth::grants_of_workspace(tx, workspace)?;
            let grant = grants.into_iter().find(|grant| grant.client_id == name).unwrap();
            oauth::revoke_grant(tx, workspace, &grant.key_id, &Cause::system("test"))
        });
        assert!(revoked.await.unwrap());
        self.model.grants[grant].alive = false;
        self.model.events += 1;
    }

    /// Runs the jobs when they are due. What they delete is forgotten.
    async fn purge(&mut self) {
        self.wait(601);
        Runner::new(self.bed.db().clone()).with(oauth::jobs()).run_due().await.unwrap();
        let now = self.model.now;
        self.model.codes.iter_mut().filter(|code| code.until + DAY <= now).for_each(|code| {
            code.used = true;
            code.family = None;
        });
        self.model.tokens.retain(|token| token.used.as_ref().is_none_or(|(at, _)| now < at + 60 * DAY));
    }

    /// Compares everything that can be seen.
    async fn check(&self) {
        for access in &self.model.access {
            let lives = self.model.lives(access.family) && !access.revoked && self.model.now < access.until;
            let found = self.bed.identity(&access.text).await;
            assert_eq!(found.is_some(), lives);
            if let Some(found) = found {
                assert_eq!(found.scopes, Some(access.scopes));
            }
        }
        assert_eq!(self.bed.events().await.len(), self.model.events);
        // Each generation of a family has one predecessor: no family forks.
        let forks = self.bed.db().read(|read| {
            let families: Vec<(model::FamilyId, i64)> = oauth_families::table
                .select((oauth_families::id, oauth_families::generation))
                .load(read.connection())?;
            let mut forks = 0;
            for (family, generation) in families {
                let used: i64 = oauth_used_refresh_tokens::table
                    .filter(oauth_used_refresh_tokens::family_id.eq(&family))
                    .count()
                    .get_result(read.connection())?;
                forks += usize::from(used > generation);
            }
            Ok(forks)
        });
        assert_eq!(forks.await.unwrap(), 0);
        for family in 0..self.model.families.len() {
            let active = |token: &&Token| token.family == family && token.used.is_none();
            assert!(self.model.tokens.iter().filter(active).count() <= 1, "a family forks");
        }
    }
}

fn run<T: std::fmt::Debug>(cases: u32, acts: impl Strategy<Value = Vec<T>>, play: impl AsyncFn(&[T])) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases, max_shrink_iters: 100, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&acts, |acts| {
            runtime.block_on(play(&acts));
            Ok(())
        })
        .unwrap();
}

fn schedules(kind: Kind) {
    run(24, proptest::collection::vec(act(), 30..90), async |acts: &[Act]| {
        let mut bench = Bench { bed: Bed::new(kind).await, model: Model::default() };
        bench.play(&Act::Authorize { client: 0, scopes: 1 }).await;
        bench.play(&Act::Exchange { code: 0, wrong: None, first: true }).await;
        for act in acts {
            bench.play(act).await;
        }
        bench.check().await;
    });
}

#[test]
fn random_schedules_follow_the_rules_on_sqlite() {
    schedules(Kind::Sqlite);
}

#[test]
fn random_schedules_follow_the_rules_on_postgres() {
    schedules(Kind::Postgres);
}

/// One refresh of an honest app: how many of its requests fail before or after the commit, and how long it waits.
#[derive(Debug, Clone)]
struct Attempt {
    /// Of each failed request: whether it was committed, and the seconds until the app tries again.
    failures: Vec<(bool, u64)>,
    /// Whether a second process of the app refreshes at the same moment.
    twin: bool,
    days: u64,
}

fn attempt() -> impl Strategy<Value = Attempt> {
    let failures = proptest::collection::vec((any::<bool>(), 0u64..9), 0..4);
    (failures, any::<bool>(), 0u64..59).prop_map(|(failures, twin, days)| Attempt { failures, twin, days })
}

fn honest(kind: Kind) {
    run(12, proptest::collection::vec(attempt(), 4..12), async |attempts: &[Attempt]| {
        let bed = Bed::new(kind).await;
        let mut tokens = bed.tokens("contacts:read").await;
        let mut seconds = 0;
        for attempt in attempts {
            let request = refreshing(&tokens.refresh);
            for (committed, pause) in &attempt.failures {
                let (seal, request, committed) = (bed.seal.clone(), request.clone(), *committed);
                let lost = bed.other.write(move |tx| {
                    let reply = oauth::refresh(tx, &seal, &request)?;
                    if committed { Ok(reply) } else { Err(Error::internal("the process dies")) }
                });
                // The app does not see the answer.
                lost.await.ok();
                bed.advance(*pause);
                seconds += pause;
            }
            let other = async {
                match attempt.twin {
                    true => Some(bed.refresh_at(&bed.other, request.clone()).await),
                    false => None,
                }
            };
            let (reply, twin) = tokio::join!(bed.refresh(request.clone()), other);
            if let Some(twin) = twin {
                assert_eq!(reply, twin);
            }
            tokens = issued(&reply);
            assert!(bed.identity(&tokens.access).await.is_some());
            seconds += attempt.days * 24 * 3600;
            if seconds > 300 * 24 * 3600 {
                break;
            }
            bed.advance(attempt.days * 24 * 3600);
        }
        assert!(bed.events().await.is_empty());
    });
}

#[test]
fn no_honest_app_is_signed_out_on_sqlite() {
    honest(Kind::Sqlite);
}

#[test]
fn no_honest_app_is_signed_out_on_postgres() {
    honest(Kind::Postgres);
}
