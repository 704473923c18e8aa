//! The simulated chat network. It accepts messages, reports their statuses, and lets customers write.

use crate::child::words;
use crate::machine::quantile;
use anyhow::{Result, bail};
use model::Clock as _;
use serde_json::{Value, json};
use simulator::{NewTemplate, NewUser, Settings, Simulator};
use std::collections::HashMap;
use std::time::Duration;

/// The number of customers, who write in turn. There are enough that each gets its answer before it writes again.
const CUSTOMERS: u32 = 1_000;
/// The timeout for the last answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves the network and obeys commands. `callback URL` sets the address for callbacks. `talk RATE SECONDS` lets
/// customers write at this rate, and returns the latency of the answers. `sent` returns the number of accepted
/// messages and the times of the first and the last one, and forgets them.
pub async fn serve() -> Result<()> {
    let simulator = Simulator::start(Settings {
        rates: false,
        callback_connections: 8,
        transcript_limit: 2_000_000,
        seed: Settings::random_seed(),
        ..Settings::default()
    })?;
    simulator.add_template(&NewTemplate {
        name: "spring_sale".to_owned(),
        language: "en".to_owned(),
        category: "MARKETING".to_owned(),
        components: json!([{
            "type": "BODY",
            "text": "Hello {{1}}, everything is cheaper this week.",
            "example": { "body_text": [["Ana"]] },
        }]),
    })?;
    let connection = simulator.connection();
    println!("{}", json!({ "base_url": connection.base_url }));
    let mut words = words();
    while let Some(line) = words.recv().await {
        let answer = match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["callback", url] => {
                simulator.set_callback(&connection.number_id, Some(url))?;
                json!({})
            }
            ["talk", rate, seconds] => talk(&simulator, rate.parse()?, seconds.parse()?).await?,
            ["sent"] => sent(&simulator),
            _ => bail!("unknown: {line}"),
        };
        println!("{answer}");
    }
    Ok(())
}

/// Lets customers write, each message at its time, and waits for the answers.
async fn talk(simulator: &Simulator, rate: f64, seconds: f64) -> Result<Value> {
    if simulator.users().is_empty() {
        for number in 0..CUSTOMERS {
            let phone = Some(format!("55119{:08}", 10_000_000 + number));
            let name = Some(format!("Customer {number}"));
            simulator.add_user(NewUser { phone, name, ..NewUser::default() })?;
        }
    }
    let users: Vec<String> = simulator.users().into_iter().map(|user| user.user_id).collect();
    simulator.clear_transcript();
    let began = tokio::time::Instant::now();
    let mut asked: HashMap<String, Vec<i64>> = HashMap::new();
    let messages = (rate * seconds) as usize;
    for (number, user) in (0..messages).zip(users.iter().cycle()) {
        tokio::time::sleep_until(began + Duration::from_secs_f64(number as f64 / rate)).await;
        asked.entry(user.clone()).or_default().push(simulator.clock().now().millis());
        simulator.write(user, "Do you have it in another color?")?;
    }
    let done = |simulator: &Simulator| simulator.transcript().len() >= messages;
    let all = tokio::time::timeout(PATIENCE, simulator.wait_until(done)).await;
    let mut answered: HashMap<String, Vec<i64>> = HashMap::new();
    for message in simulator.transcript() {
        answered.entry(message.user_id).or_default().push(message.at.millis());
    }
    let mut millis = Vec::with_capacity(messages);
    for (user, asked) in asked {
        let answers = answered.remove(&user).unwrap_or_default();
        millis.extend(
            asked.iter().zip(answers).map(|(asked, answer)| u32::try_from(answer - asked).unwrap_or(0)),
        );
    }
    millis.sort_unstable();
    Ok(json!({
        "asked": messages,
        "answered": if all.is_ok() { millis.len() } else { simulator.transcript().len() },
        "p50": quantile(&millis, 0.5),
        "p99": quantile(&millis, 0.99),
        "max": quantile(&millis, 1.0),
    }))
}

fn sent(simulator: &Simulator) -> Value {
    let transcript = simulator.transcript();
    simulator.clear_transcript();
    let at = |message: Option<&simulator::Sent>| message.map_or(0, |message| message.at.millis());
    json!({ "count": transcript.len(), "first": at(transcript.first()), "last": at(transcript.last()) })
}
