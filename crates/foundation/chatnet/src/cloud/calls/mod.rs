//! Requests to the network.

mod failure;
mod files;
mod send;
mod templates;

use self::failure::{failed, refused};
use super::Chatnet;
use super::limits::{messaging_limit, quality, throughput};
use crate::{Account, NetworkError, NumberHealth, Quality};
use egress::{Limits, Method, Request, Response};
use serde_json::{Value, json};
use std::time::Duration;

const LARGEST_ANSWER: usize = 4 << 20;

/// The requested fields of a number.
const NUMBER_FIELDS: &str =
    "id,display_phone_number,verified_name,quality_rating,messaging_limit_tier,throughput";

impl Chatnet {
    /// Builds a request to `path` below the base URL, with the account's token.
    fn request(&self, account: &Account, method: Method, path: &str) -> Request {
        let url = format!("{}/{path}", account.base_url.trim_end_matches('/'));
        Request::new(method, url)
            .header("authorization", format!("Bearer {}", account.access_token))
            .limits(limits(self.patience))
    }

    fn json_request(&self, account: &Account, path: &str, body: &Value) -> Request {
        self.request(account, Method::POST, path)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// Sends a request that is not a message, and returns the response's JSON.
    async fn ask(&self, account: &Account, request: Request) -> Result<Value, NetworkError> {
        let response = self.connector.send(request).await.map_err(failed)?;
        answer(account, &response)
    }

    pub(super) async fn read_message(
        &self,
        account: &Account,
        message: &str,
        typing: bool,
    ) -> Result<(), NetworkError> {
        let mut body = json!({ "messaging_product": "whatsapp", "status": "read", "message_id": message });
        if let (true, Value::Object(body)) = (typing, &mut body) {
            body.insert("typing_indicator".to_owned(), json!({ "type": "text" }));
        }
        let path = format!("{}/messages", segment(&account.number_id));
        self.ask(account, self.json_request(account, &path, &body)).await?;
        Ok(())
    }

    pub(super) async fn number_health(&self, account: &Account) -> Result<NumberHealth, NetworkError> {
        let path = format!("{}?fields={NUMBER_FIELDS}", segment(&account.number_id));
        let number = self.ask(account, self.request(account, Method::GET, &path)).await?;
        let text = |key: &str| number.get(key).and_then(Value::as_str);
        let level = number.pointer("/throughput/level").and_then(Value::as_str);
        Ok(NumberHealth {
            display_number: text("display_phone_number").map(str::to_owned),
            verified_name: text("verified_name").map(str::to_owned),
            quality: text("quality_rating").map_or(Quality::Unknown, quality),
            messaging_limit: text("messaging_limit_tier")
                .and_then(messaging_limit)
                .filter(|limit| *limit < i64::MAX),
            messages_per_second: level.and_then(throughput),
        })
    }
}

fn limits(patience: Duration) -> Limits {
    Limits { total: patience, max_response_bytes: LARGEST_ANSWER, ..Limits::default() }
}

/// Parses the JSON of a successful response.
fn answer(account: &Account, response: &Response) -> Result<Value, NetworkError> {
    if !(200..=299).contains(&response.status) {
        return Err(refused(account, response.status, &response.headers, &response.body));
    }
    serde_json::from_slice(&response.body).map_err(|_| unreadable())
}

fn unreadable() -> NetworkError {
    failure::passing("The network's answer cannot be read.")
}

/// Escapes a segment of a path or a query value. Ids come from outside and must not change the path.
fn segment(text: &str) -> String {
    text.bytes().fold(String::new(), |mut path, byte| {
        if byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'~')
            || (byte == b'.' && text.len() > 2)
        {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
        path
    })
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn ids_stay_within_their_part_of_a_path() {
        assert_eq!(segment("106540352242922"), "106540352242922");
        assert_eq!(segment("../x?a=b&c#d"), "..%2Fx%3Fa%3Db%26c%23d");
        assert_eq!(segment(".."), "%2E%2E");
    }
}
