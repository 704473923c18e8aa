//! Two processes of the program on one PostgreSQL: customers write in bursts, and one process is killed while a broadcast is
//! sent.

use crate::shop::Shop;
use conversations::schema::messages;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use serde_json::{Value, json};
use simulator::{NewUser, Simulator, User};
use testkit::{Client, Kind, Program, completion};

const CUSTOMERS: usize = 20;
const BURST: usize = 3;
const RECIPIENTS: usize = 200;

/// Answers with what was asked.
fn repeat(body: &Value) -> Value {
    let asked = body["messages"].as_array().and_then(|messages| messages.last());
    completion(&format!(
        "You wrote: {}",
        asked.and_then(|last| last["content"].as_str()).unwrap_or("nothing")
    ))
}

fn text(round: usize, number: usize) -> String {
    format!("round {round} number {number}")
}

/// What the network got for a customer, in its order.
fn answers(network: &Simulator, customer: &User) -> Vec<String> {
    let all = network
        .transcript()
        .into_iter()
        .filter(|sent| sent.user_id == customer.user_id && sent.kind == "text");
    all.map(|sent| sent.content["body"].as_str().unwrap().to_owned()).collect()
}

/// Every customer writes a burst, and each gets one answer to it.
async fn burst(shop: &Shop, customers: &[User], round: usize) {
    for number in 0..BURST {
        for customer in customers {
            shop.network.write(&customer.user_id, &text(round, number)).unwrap();
        }
    }
    let answered =
        |network: &Simulator| customers.iter().all(|customer| answers(network, customer).len() > round);
    assert!(shop.network.wait_until(answered).await, "round {round} is not answered");
}

#[tokio::test]
async fn two_processes_answer_and_send_as_one() {
    let shop = Shop::open(Kind::Postgres, 60, 1).await;
    shop.program.model.answer(repeat);
    let customer = |number: usize| {
        let new = NewUser {
            phone: Some(format!("+55118{:08}", 70_000_000 + number)),
            name: Some("Ana".to_owned()),
            ..NewUser::default()
        };
        shop.network.add_user(new).unwrap()
    };
    let customers: Vec<User> = (0..CUSTOMERS).map(customer).collect();
    let first = shop.program.serve().await;
    let client = shop.program.client();
    let agent = json!({ "name": "Assistant", "status": "active" });
    shop.post(&client, "/agents", agent).await;
    burst(&shop, &customers, 0).await;
    // The first has the channel; the second takes the network's callbacks.
    let other = Program::address();
    let second = shop.program.serve_at(&other).await;
    let client = Client::new(&format!("http://{other}"));
    shop.call_back_at(&other);
    burst(&shop, &customers, 1).await;

    let broadcast = shop.broadcast(&client, RECIPIENTS).await;
    shop.accepted(2 * CUSTOMERS + RECIPIENTS / 4).await;
    first.kill();
    shop.let_leases_end().await;
    burst(&shop, &customers, 2).await;
    shop.completed(&client, broadcast).await;
    let unknown = shop.expect_exactly_one_each(&client, broadcast, RECIPIENTS).await;
    assert!(unknown <= 128, "no more than was under way: {unknown}");

    let heard: Vec<(model::ContactId, String)> = shop
        .program
        .data
        .db
        .read(|read| {
            let heard = messages::table
                .filter(messages::direction.eq("inbound"))
                .order((messages::contact_id, messages::id));
            Ok(heard.select((messages::contact_id, messages::content)).load(read.connection())?)
        })
        .await
        .unwrap();
    let written: Vec<String> =
        (0..3).flat_map(|round| (0..BURST).map(move |number| text(round, number))).collect();
    assert_eq!(heard.len(), CUSTOMERS * written.len());
    for of_contact in heard.chunk_by(|(one, _), (other, _)| one == other) {
        let texts: Vec<&String> = of_contact.iter().map(|(_, text)| text).collect();
        assert_eq!(texts, written.iter().collect::<Vec<_>>(), "in the order in which they were written");
    }
    for customer in &customers {
        let expected: Vec<String> =
            written.chunks(BURST).map(|burst| format!("You wrote: {}", burst.join("\n"))).collect();
        assert_eq!(answers(&shop.network, customer), expected, "one answer to each burst");
    }
    second.stop().await;
}
