//! A webhook endpoint. It answers every delivery at once with 204 and records the time of its first byte. It
//! implements only as much HTTP as the service's client needs.

use crate::child::words;
use crate::machine::{quantile, wall_micros};
use crate::stub::request_end;
use model::Timestamp;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// A received delivery.
struct Arrival {
    /// The time of its first byte, in microseconds.
    at: i64,
    /// The delay since the `created_at` of its event, which is before the commit, in microseconds.
    late: u32,
}

type Arrivals = Rc<RefCell<Vec<Arrival>>>;

/// Serves the endpoint and obeys commands. `count` returns the number of deliveries and the times of the first and
/// the last one. `take` also returns their delays, and forgets them.
pub async fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", json!({ "address": listener.local_addr()?.to_string() }));
    let arrivals = Arrivals::default();
    let kept = arrivals.clone();
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::task::spawn_local(converse(stream, kept.clone()));
        }
    });
    let mut words = words();
    while let Some(word) = words.recv().await {
        println!("{}", report(&arrivals.borrow()));
        if word == "take" {
            arrivals.take();
        }
    }
    Ok(())
}

fn report(arrivals: &[Arrival]) -> Value {
    let mut late: Vec<u32> = arrivals.iter().map(|arrival| arrival.late).collect();
    late.sort_unstable();
    json!({
        "count": arrivals.len(),
        "first": arrivals.first().map_or(0, |arrival| arrival.at),
        "last": arrivals.last().map_or(0, |arrival| arrival.at),
        "p50": quantile(&late, 0.5),
        "p99": quantile(&late, 0.99),
        "max": quantile(&late, 1.0),
    })
}

async fn converse(mut stream: TcpStream, arrivals: Arrivals) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(16 * 1024);
    let mut began = 0;
    loop {
        let is_first = buffer.is_empty();
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        if is_first {
            began = wall_micros();
        }
        // The service sends the next delivery after the response, so there is at most one.
        if let Some(end) = request_end(&buffer) {
            let created =
                created_at(buffer.get(..end).unwrap_or_default()).map_or(began, |at| at.millis() * 1000);
            let late = u32::try_from(began - created).unwrap_or_default();
            arrivals.borrow_mut().push(Arrival { at: began, late });
            buffer.drain(..end);
            stream.write_all(ANSWER).await?;
        }
    }
}

/// Returns the time of a delivery's event. It comes before the event's data.
fn created_at(request: &[u8]) -> Option<Timestamp> {
    const NAME: &[u8] = b"\"created_at\":\"";
    let place = request.windows(NAME.len()).position(|window| window == NAME)? + NAME.len();
    let text = request.get(place..)?.split(|byte| *byte == b'"').next()?;
    Timestamp::parse(std::str::from_utf8(text).ok()?)
}
