//! Sending of messages.

use super::failure::{Problem, no_answer, retry_after};
use super::segment;
use crate::cloud::codes::meaning;
use crate::cloud::{Chatnet, compose};
use crate::{Account, OutboundMessage, Refusal, RefusalCode, SendOutcome};
use egress::HeaderMap;
use serde_json::Value;

impl Chatnet {
    pub(in crate::cloud) async fn send_message(
        &self,
        account: &Account,
        message: &OutboundMessage,
        reference: &str,
    ) -> SendOutcome {
        let path = format!("{}/messages", segment(&account.number_id));
        let request = self.json_request(account, &path, &compose::message_body(message, reference));
        // Read the headers first: if the body is lost, the status may still tell the outcome.
        let response = match self.connector.stream(request).await {
            Ok(response) => response,
            Err(error) => return without_answer(error),
        };
        let (status, headers) = (response.status, response.headers.clone());
        match response.collect().await {
            Ok(response) => outcome(account, status, &headers, &response.body),
            // The status alone already says that the message was refused.
            Err(_) if (300..=499).contains(&status) => outcome(account, status, &headers, b""),
            Err(error) => SendOutcome::Unknown { reason: no_answer(error) },
        }
    }
}

fn without_answer(error: egress::Error) -> SendOutcome {
    // The network may have received the request, so a retry could send the message twice.
    if error.is_sent() {
        return SendOutcome::Unknown { reason: no_answer(error) };
    }
    SendOutcome::Refused(Refusal {
        code: RefusalCode::NetworkError,
        provider_code: None,
        message: no_answer(error),
        is_retryable: !error.is_refusal(),
        retry_after: None,
    })
}

fn outcome(account: &Account, status: u16, headers: &HeaderMap, body: &[u8]) -> SendOutcome {
    if (200..=299).contains(&status) {
        let answer: Option<Value> = serde_json::from_slice(body).ok();
        let id = answer.as_ref().and_then(|answer| answer.pointer("/messages/0/id")?.as_str());
        return match id.filter(|id| !id.is_empty()) {
            Some(id) => SendOutcome::Accepted { provider_id: id.to_owned() },
            None => SendOutcome::Unknown { reason: "The network's answer cannot be read.".to_owned() },
        };
    }
    let problem = Problem::read(account, body);
    // A gateway that fails does not know whether the message was accepted behind it.
    if status >= 500 && problem.is_none() {
        return SendOutcome::Unknown { reason: format!("The network answered with status {status}.") };
    }
    let problem = problem.unwrap_or_else(|| Problem::of_status(status));
    let (code, is_retryable) = meaning(problem.code, Some(status));
    SendOutcome::Refused(Refusal {
        code,
        provider_code: problem.code,
        message: problem.message,
        is_retryable,
        retry_after: retry_after(headers),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn account() -> Account {
        Account {
            base_url: "http://127.0.0.1:1/v23.0".to_owned(),
            number_id: "1".to_owned(),
            business_id: "2".to_owned(),
            access_token: "EAAG".to_owned(),
        }
    }

    fn of(status: u16, body: &str) -> SendOutcome {
        outcome(&account(), status, &HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn only_an_id_is_an_acceptance() {
        let accepted = of(200, r#"{"messages":[{"id":"wamid.1","message_status":"accepted"}]}"#);
        assert_eq!(accepted, SendOutcome::Accepted { provider_id: "wamid.1".to_owned() });
        for unclear in ["", "{}", "{\"messages\":[]}", "<html>", r#"{"messages":[{"id":""}]}"#] {
            assert!(matches!(of(200, unclear), SendOutcome::Unknown { .. }), "{unclear}");
        }
    }

    #[test]
    fn a_5xx_is_a_no_only_in_the_networks_own_words() {
        assert!(matches!(of(502, "<html>Bad gateway"), SendOutcome::Unknown { .. }));
        assert!(matches!(of(503, ""), SendOutcome::Unknown { .. }));
        let SendOutcome::Refused(refusal) =
            of(500, r#"{"error":{"code":131000,"message":"Something went wrong"}}"#)
        else {
            panic!("not refused")
        };
        assert_eq!((refusal.code, refusal.is_retryable), (RefusalCode::NetworkError, true));
    }

    #[test]
    fn a_no_keeps_its_number_and_wait_but_no_token() {
        let headers = [("retry-after".parse().unwrap(), "7".parse().unwrap())].into_iter().collect();
        let body =
            r#"{"error":{"code":190,"message":"Malformed access token EAAG","type":"OAuthException"}}"#;
        let SendOutcome::Refused(refusal) = outcome(&account(), 401, &headers, body.as_bytes()) else {
            panic!("not refused")
        };
        assert_eq!(refusal.code, RefusalCode::CredentialsInvalid);
        assert_eq!(refusal.provider_code, Some(190));
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(refusal.message, "Malformed access token …");
        assert!(matches!(of(404, ""), SendOutcome::Refused(_)));
        assert!(matches!(of(302, ""), SendOutcome::Refused(_)));
    }

    #[test]
    fn what_was_never_sent_is_refused() {
        let unsent = without_answer(egress::Error::Connect { reason: "refused" });
        assert!(matches!(unsent, SendOutcome::Refused(Refusal { is_retryable: true, .. })));
        let forbidden = without_answer(egress::Error::Forbidden { reason: "private" });
        assert!(matches!(forbidden, SendOutcome::Refused(Refusal { is_retryable: false, .. })));
        let broken = without_answer(egress::Error::Http { reason: "hung up" });
        assert!(matches!(broken, SendOutcome::Unknown { .. }));
    }
}
