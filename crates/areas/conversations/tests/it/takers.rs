//! Who takes what contacts write before an agent answers: the order, and what commits together.

use crate::support::Desk;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Text};
use model::{ContactId, Error, Result, WorkspaceId};
use ports::{IncomingMessages, MessageTaker, MessageTakers, TakerRank, Taking};
use serde_json::{Value, json};
use simulator::{Action, User};
use std::sync::{Arc, Mutex};
use store::{Read, Tx, each};
use testkit::Kind;

/// Notes what it is offered, and does with it what it was told.
struct Recorder {
    rank: TakerRank,
    does: Mutex<Option<Taking>>,
    awaits: bool,
}

impl Recorder {
    fn new(rank: TakerRank, does: Taking) -> Arc<Self> {
        Arc::new(Self { rank, does: Mutex::new(Some(does)), awaits: false })
    }

    fn does(&self, what: Option<Taking>) {
        *self.does.lock().unwrap() = what;
    }
}

impl MessageTaker for Recorder {
    fn rank(&self) -> TakerRank {
        self.rank
    }

    fn awaits_choice(&self, _: &mut Read, _: WorkspaceId, _: ContactId) -> Result<bool> {
        Ok(self.awaits)
    }

    fn offer(&self, tx: &mut Tx, _: WorkspaceId, offered: &IncomingMessages) -> Result<Taking> {
        let texts: Vec<&str> = offered.messages.iter().map(|message| message.text.as_str()).collect();
        let insert =
            diesel::sql_query("INSERT INTO taken (taker, texts, autopilot, epoch) VALUES ($1, $2, $3, $4)")
                .bind::<Text, _>(format!("{:?}", self.rank))
                .bind::<Text, _>(texts.join("|"))
                .bind::<Bool, _>(offered.contact.autopilot)
                .bind::<BigInt, _>(offered.contact.epoch);
        each!(tx.connection(), |connection| insert.execute(connection))?;
        self.does.lock().unwrap().ok_or_else(|| Error::internal("the taker cannot decide"))
    }
}

/// A service with takers, and a customer.
struct Shop {
    desk: Desk,
    ana: User,
}

impl Shop {
    async fn open(kind: Kind, debounce_ms: i64) -> Self {
        let desk = Desk::with_settings(kind, |settings| settings.reply_debounce_ms = debounce_ms).await;
        let id = if kind == Kind::Postgres { "BIGINT GENERATED ALWAYS AS IDENTITY" } else { "INTEGER" };
        let columns = "taker TEXT, texts TEXT, autopilot BOOLEAN, epoch BIGINT";
        desk.app.sql(format!("CREATE TABLE taken (id {id} PRIMARY KEY, {columns})")).await;
        let ana = desk.customer("Ana", "+5511987654321");
        Self { desk, ana }
    }

    fn connect(&self, takers: &[&Arc<Recorder>]) {
        let all = takers.iter().map(|taker| (*taker).clone() as Arc<dyn MessageTaker>);
        self.desk.app.service.pipeline.services.get::<MessageTakers>().unwrap().connect(all);
    }

    /// What was offered since the last look: to whom, which texts, and whether an agent would answer.
    async fn taken(&self) -> Vec<(String, String, bool)> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Text)]
            taker: String,
            #[diesel(sql_type = Text)]
            texts: String,
            #[diesel(sql_type = Bool)]
            autopilot: bool,
        }
        let read = self.desk.app.db().read(|read| {
            let query = diesel::sql_query("SELECT taker, texts, autopilot FROM taken ORDER BY id");
            Ok(query.load::<Row>(read.connection())?)
        });
        let rows = read.await.unwrap();
        self.desk.app.sql("DELETE FROM taken").await;
        rows.into_iter().map(|row| (row.taker, row.texts, row.autopilot)).collect()
    }

    /// Who was offered what, by a person that answers or an agent.
    async fn expect(&self, takers: &[&str], texts: &str, autopilot: bool) {
        let expected: Vec<_> =
            takers.iter().map(|taker| ((*taker).to_owned(), texts.to_owned(), autopilot)).collect();
        assert_eq!(self.taken().await, expected);
    }

    fn answers(&self) -> usize {
        self.desk.sent(&self.ana).len()
    }

    async fn due(&self) -> i64 {
        self.desk.count("SELECT count(*) AS n FROM conversations WHERE reply_due_at IS NOT NULL").await
    }
}

#[testkit::both]
async fn takers_are_asked_in_their_order_and_the_agent_comes_last(kind: Kind) {
    let shop = Shop::open(kind, 0).await;
    let message = Recorder::new(TakerRank::Message, Taking::Declined);
    let waiting = Recorder::new(TakerRank::WaitingRun, Taking::Declined);
    let keyword = Recorder::new(TakerRank::Keyword, Taking::Declined);
    let interrupting = Recorder::new(TakerRank::Interrupting, Taking::Declined);
    shop.connect(&[&message, &waiting, &keyword, &interrupting]);
    let all = ["Interrupting", "WaitingRun", "Keyword", "Message"];
    shop.desk.hear(&shop.ana, "Hello").await;
    shop.expect(&all, "Hello", true).await;
    assert_eq!((shop.answers(), shop.due().await), (1, 0));
    // The first that takes the message is the last that is asked.
    waiting.does(Some(Taking::Taken));
    shop.desk.hear(&shop.ana, "Blue").await;
    shop.expect(&all[..2], "Blue", true).await;
    assert_eq!((shop.answers(), shop.due().await), (1, 0));
    // Unless it lets others have it, too.
    waiting.does(Some(Taking::Declined));
    keyword.does(Some(Taking::TakenAlso));
    shop.desk.hear(&shop.ana, "Prices").await;
    shop.expect(&all, "Prices", true).await;
    assert_eq!((shop.answers(), shop.due().await), (2, 0));
    // What was taken is not the agent's to answer later.
    keyword.does(Some(Taking::Declined));
    shop.desk.hear(&shop.ana, "And now?").await;
    let prompt = shop.desk.app.model.prompts().pop().unwrap();
    assert!(prompt.messages.last().unwrap().content.ends_with("And now?"), "{:?}", prompt.messages.last());
}

#[testkit::both]
async fn what_is_left_to_people_is_offered_too(kind: Kind) {
    let shop = Shop::open(kind, 0).await;
    let keyword = Recorder::new(TakerRank::Keyword, Taking::Declined);
    shop.connect(&[&keyword]);
    shop.desk.hear(&shop.ana, "Hello").await;
    shop.expect(&["Keyword"], "Hello", true).await;
    let contact = shop.desk.only_contact().await["id"].clone();
    let off = json!({ "enabled": false });
    shop.desk.app.put(&format!("/contacts/{contact}/autopilot"), &shop.desk.key, off).await.expect(200);
    shop.desk.hear(&shop.ana, "Is anybody there?").await;
    shop.expect(&["Keyword"], "Is anybody there?", false).await;
    assert_eq!((shop.answers(), shop.due().await), (1, 0));
    keyword.does(Some(Taking::Taken));
    shop.desk.hear(&shop.ana, "Goodbye").await;
    shop.expect(&["Keyword"], "Goodbye", false).await;
    assert_eq!((shop.answers(), shop.due().await), (1, 0));
}

#[testkit::both]
async fn a_person_who_takes_over_in_time_leaves_nothing_to_take(kind: Kind) {
    let shop = Shop::open(kind, 5_000).await;
    let waiting = Recorder::new(TakerRank::WaitingRun, Taking::Taken);
    shop.connect(&[&waiting]);
    shop.desk.hear(&shop.ana, "Hello").await;
    assert_eq!(shop.due().await, 1);
    let contact = shop.desk.only_contact().await["id"].clone();
    let message = json!({ "text": "This is Marta." });
    shop.desk.post(&format!("/contacts/{contact}/operator-messages"), message).await.expect(200);
    shop.desk.let_pass(6).await;
    assert_eq!((shop.taken().await, shop.due().await), (Vec::new(), 0));
    shop.desk.hear(&shop.ana, "Thanks").await;
    shop.desk.let_pass(6).await;
    shop.expect(&["WaitingRun"], "Thanks", true).await;
}

#[testkit::both]
async fn an_offer_that_fails_leaves_no_trace_and_is_made_again(kind: Kind) {
    let shop = Shop::open(kind, 0).await;
    let keyword = Recorder::new(TakerRank::Keyword, Taking::TakenAlso);
    let message = Recorder::new(TakerRank::Message, Taking::Taken);
    message.does(None);
    shop.connect(&[&message, &keyword]);
    shop.desk.hear(&shop.ana, "Hello").await;
    assert_eq!((shop.taken().await, shop.answers(), shop.due().await), (Vec::new(), 0, 1));
    message.does(Some(Taking::Taken));
    shop.desk.let_pass(3).await;
    shop.expect(&["Keyword", "Message"], "Hello", true).await;
    assert_eq!((shop.answers(), shop.due().await), (0, 0));
}

#[testkit::both]
async fn a_button_that_is_awaited_is_not_kept_waiting(kind: Kind) {
    let buttons = json!([{ "id": "yes", "title": "Yes" }, { "id": "no", "title": "No" }]);
    expect_choice_at_once(kind, json!({ "body": "Go on?", "buttons": buttons })).await;
}

#[testkit::both]
async fn a_row_that_is_awaited_is_not_kept_waiting(kind: Kind) {
    let rows = json!([{ "id": "yes", "title": "Yes" }, { "id": "no", "title": "No" }]);
    let list = json!({ "button": "Choose", "sections": [{ "title": "Answers", "rows": rows }] });
    expect_choice_at_once(kind, json!({ "body": "Go on?", "list": list })).await;
}

/// Expects that a choice is due at once if a taker waits for it, and otherwise after the debounce.
async fn expect_choice_at_once(kind: Kind, interactive: Value) {
    for (awaits, seconds) in [(true, 0), (false, 31)] {
        let shop = Shop::open(kind, 30_000).await;
        let waiting = Recorder {
            awaits,
            ..Arc::into_inner(Recorder::new(TakerRank::WaitingRun, Taking::Taken)).unwrap()
        };
        shop.desk.hear(&shop.ana, "Hello").await;
        shop.desk.let_pass(31).await;
        let path = shop.desk.path("/chatnet/send-interactive");
        let contact = shop.desk.only_contact().await["id"].clone();
        shop.desk.post(&path, json!({ "contact_id": contact, "interactive": interactive })).await.expect(200);
        shop.desk.settle().await;
        let waiting = Arc::new(waiting);
        shop.connect(&[&waiting]);
        shop.desk.network.act(&shop.ana.user_id, &Action::Press { button: None }).unwrap();
        shop.desk.settle().await;
        assert_eq!(shop.due().await, i64::from(!awaits));
        shop.desk.let_pass(seconds).await;
        shop.expect(&["WaitingRun"], "Yes", true).await;
    }
}
