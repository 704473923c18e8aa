//! Upload and download of files.

use super::failure::{failed, refused};
use super::{limits, segment, unreadable};
use crate::cloud::Chatnet;
use crate::{Account, Media, NetworkError};
use bytes::Bytes;
use egress::{Limits, Method, Request};
use ring::digest;
use serde_json::Value;

/// The maximum number of redirects of a download. The token is not sent to another host.
const REDIRECTS: u8 = 3;

impl Chatnet {
    pub(in crate::cloud) async fn upload(
        &self,
        account: &Account,
        file_name: &str,
        mime_type: &str,
        content: Bytes,
    ) -> Result<String, NetworkError> {
        let (boundary, form) = form(file_name, mime_type, &content);
        let path = format!("{}/media", segment(&account.number_id));
        let request = self
            .request(account, Method::POST, &path)
            .header("content-type", format!("multipart/form-data; boundary={boundary}"))
            .limits(limits(self.file_patience))
            .body(form);
        let answer = self.ask(account, request).await?;
        answer.get("id").and_then(Value::as_str).map(str::to_owned).ok_or_else(unreadable)
    }

    /// Requests the file's URL, then downloads it. The URL is not cached, because it expires within minutes.
    pub(in crate::cloud) async fn fetch(
        &self,
        account: &Account,
        media_id: &str,
        most_bytes: usize,
    ) -> Result<Media, NetworkError> {
        let path = format!("{}?phone_number_id={}", segment(media_id), segment(&account.number_id));
        let place = self.ask(account, self.request(account, Method::GET, &path)).await?;
        let text = |key| place.get(key).and_then(Value::as_str);
        let url = text("url").ok_or_else(unreadable)?;
        let limits =
            Limits { max_response_bytes: most_bytes, max_redirects: REDIRECTS, ..limits(self.file_patience) };
        let request = Request::get(url)
            .header("authorization", format!("Bearer {}", account.access_token))
            .limits(limits);
        let response = self.connector.send(request).await.map_err(failed)?;
        if !(200..=299).contains(&response.status) {
            let error = refused(account, response.status, &response.headers, &response.body);
            // The URL may have expired, or the file may not be available yet. The network still knows the file, so
            // retry.
            return Err(NetworkError { is_retryable: true, is_gone: false, is_unauthorized: false, ..error });
        }
        let served = response.headers.get("content-type").and_then(|value| value.to_str().ok());
        let mime_type = text("mime_type").or(served).map(str::to_owned);
        Ok(Media { mime_type, content: response.body })
    }
}

/// Builds a multipart form with the file, and returns its boundary. The boundary is a hash of the content, so the
/// content cannot contain it.
fn form(file_name: &str, mime_type: &str, content: &[u8]) -> (String, Vec<u8>) {
    let hash = digest::digest(&digest::SHA256, content);
    let boundary: String = hash.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let printable = |text: &str| text.chars().filter(|letter| !letter.is_control()).collect::<String>();
    let name = printable(file_name).replace('\\', "_").replace('"', "%22");
    let mime_type = printable(mime_type);
    let field = |name: &str, value: &str| {
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let mut form = Vec::with_capacity(content.len() + 600);
    form.extend_from_slice(field("messaging_product", "whatsapp").as_bytes());
    form.extend_from_slice(field("type", &mime_type).as_bytes());
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         Content-Type: {mime_type}\r\n\r\n"
    );
    form.extend_from_slice(head.as_bytes());
    form.extend_from_slice(content);
    form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (boundary, form)
}

#[cfg(test)]
mod tests {
    use super::form;

    #[test]
    fn names_cannot_break_out_of_their_header() {
        let (boundary, form) = form("a\"b\r\nc.pdf", "application/pdf\r\nx: y", b"%PDF");
        let form = String::from_utf8(form).unwrap();
        assert!(
            form.contains("filename=\"a%22bc.pdf\"\r\nContent-Type: application/pdfx: y\r\n\r\n%PDF\r\n")
        );
        assert!(form.ends_with(&format!("--{boundary}--\r\n")));
    }
}
