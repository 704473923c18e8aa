//! Serialization of messages for the network's API.

use crate::{
    Interactive, MediaKind, MediaSource, MessageButton, OutboundContent, OutboundMessage, Recipient,
    TemplateButtonParam, TemplateMessage,
};
use serde_json::{Map, Value, json};

/// The network truncates references to this length.
const LONGEST_REFERENCE: usize = 512;

/// Returns the body of a request that sends `message`.
pub(super) fn message_body(message: &OutboundMessage, reference: &str) -> Value {
    let mut body = Map::new();
    body.insert("messaging_product".to_owned(), json!("whatsapp"));
    body.insert("recipient_type".to_owned(), json!("individual"));
    match &message.to {
        Recipient::Phone(phone) => body.insert("to".to_owned(), json!(phone)),
        Recipient::UserId(id) => body.insert("recipient".to_owned(), json!(id)),
    };
    if let Some(replied) = &message.reply_to {
        body.insert("context".to_owned(), json!({ "message_id": replied }));
    }
    if !reference.is_empty() && reference.len() <= LONGEST_REFERENCE {
        body.insert("biz_opaque_callback_data".to_owned(), json!(reference));
    }
    let (kind, content) = content(&message.content);
    body.insert("type".to_owned(), json!(kind));
    body.insert(kind.to_owned(), content);
    Value::Object(body)
}

fn content(content: &OutboundContent) -> (&'static str, Value) {
    match content {
        OutboundContent::Text { body, preview_url } => {
            ("text", json!({ "preview_url": preview_url, "body": body }))
        }
        OutboundContent::Media { kind, source, caption, file_name } => {
            let mut media = media(*kind, source, file_name.as_deref());
            let has_caption = !matches!(kind, MediaKind::Audio | MediaKind::Sticker);
            if let (Some(caption), true, Value::Object(media)) = (caption, has_caption, &mut media) {
                media.insert("caption".to_owned(), json!(caption));
            }
            (kind.as_str(), media)
        }
        OutboundContent::Interactive(message) => ("interactive", interactive(message)),
        OutboundContent::Template(template) => ("template", self::template(template)),
        OutboundContent::Reaction { message, emoji } => {
            ("reaction", json!({ "message_id": message, "emoji": emoji.as_deref().unwrap_or_default() }))
        }
    }
}

fn media(kind: MediaKind, source: &MediaSource, file_name: Option<&str>) -> Value {
    let mut media = match source {
        MediaSource::Id(id) => json!({ "id": id }),
        MediaSource::Link(link) => json!({ "link": link }),
    };
    if let (Some(name), MediaKind::Document, Value::Object(media)) = (file_name, kind, &mut media) {
        media.insert("filename".to_owned(), json!(name));
    }
    media
}

fn interactive(message: &Interactive) -> Value {
    let mut body = Map::new();
    let action = match &message.list {
        None => {
            body.insert("type".to_owned(), json!("button"));
            let button = |button: &MessageButton| json!({ "type": "reply", "reply": button });
            json!({ "buttons": message.buttons.iter().map(button).collect::<Vec<_>>() })
        }
        Some(list) => {
            body.insert("type".to_owned(), json!("list"));
            json!(list)
        }
    };
    if let Some(header) = &message.header {
        body.insert("header".to_owned(), json!({ "type": "text", "text": header }));
    }
    body.insert("body".to_owned(), json!({ "text": message.body }));
    if let Some(footer) = &message.footer {
        body.insert("footer".to_owned(), json!({ "text": footer }));
    }
    body.insert("action".to_owned(), action);
    Value::Object(body)
}

fn template(template: &TemplateMessage) -> Value {
    let text = |text: &String| json!({ "type": "text", "text": text });
    let mut components = Vec::new();
    let mut header: Vec<Value> = template.header_params.iter().map(text).collect();
    if let Some((kind, source, file_name)) = &template.header_media {
        header.push(
            json!({ "type": kind.as_str(), (kind.as_str()): media(*kind, source, file_name.as_deref()) }),
        );
    }
    if !header.is_empty() {
        components.push(json!({ "type": "header", "parameters": header }));
    }
    if !template.body_params.is_empty() {
        let parameters: Vec<Value> = template
            .body_params
            .iter()
            .map(|(name, value)| match name {
                Some(name) => json!({ "type": "text", "parameter_name": name, "text": value }),
                None => text(value),
            })
            .collect();
        components.push(json!({ "type": "body", "parameters": parameters }));
    }
    components.extend(template.button_params.iter().map(button_param));
    let mut body = json!({ "name": template.name, "language": { "code": template.language } });
    if let (false, Value::Object(body)) = (components.is_empty(), &mut body) {
        body.insert("components".to_owned(), Value::Array(components));
    }
    body
}

fn button_param(param: &TemplateButtonParam) -> Value {
    let (kind, index, parameter) = match param {
        TemplateButtonParam::Url { index, value } => ("url", index, json!({ "type": "text", "text": value })),
        TemplateButtonParam::QuickReply { index, payload } => {
            ("quick_reply", index, json!({ "type": "payload", "payload": payload }))
        }
        TemplateButtonParam::CopyCode { index, code } => {
            ("copy_code", index, json!({ "type": "coupon_code", "coupon_code": code }))
        }
    };
    json!({ "type": "button", "sub_type": kind, "index": index.to_string(), "parameters": [parameter] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageButton, MessageList, MessageListRow, MessageListSection};

    fn body(content: OutboundContent) -> Value {
        let to = Recipient::Phone("+5511999990000".to_owned());
        message_body(&OutboundMessage { to, reply_to: None, content }, "msg_1")
    }

    #[test]
    fn a_text_names_its_recipient_and_reference() {
        let text = OutboundContent::Text { body: "Hello".to_owned(), preview_url: false };
        assert_eq!(
            body(text.clone()),
            json!({
                "messaging_product": "whatsapp", "recipient_type": "individual", "to": "+5511999990000",
                "biz_opaque_callback_data": "msg_1", "type": "text",
                "text": { "preview_url": false, "body": "Hello" }
            })
        );
        let to = Recipient::UserId("US.1".to_owned());
        let message = OutboundMessage { to, reply_to: Some("wamid.1".to_owned()), content: text };
        let body = message_body(&message, &"r".repeat(513));
        assert_eq!(body["recipient"], "US.1");
        assert_eq!(body["context"], json!({ "message_id": "wamid.1" }));
        assert!(body.get("to").is_none() && body.get("biz_opaque_callback_data").is_none());
    }

    #[test]
    fn captions_and_names_are_sent_where_the_network_takes_them() {
        let media = |kind| {
            body(OutboundContent::Media {
                kind,
                source: MediaSource::Id("7".to_owned()),
                caption: Some("c".to_owned()),
                file_name: Some("f.pdf".to_owned()),
            })
        };
        assert_eq!(
            media(MediaKind::Document)["document"],
            json!({ "id": "7", "filename": "f.pdf", "caption": "c" })
        );
        assert_eq!(media(MediaKind::Image)["image"], json!({ "id": "7", "caption": "c" }));
        assert_eq!(media(MediaKind::Audio)["audio"], json!({ "id": "7" }));
    }

    #[test]
    fn buttons_and_lists() {
        let mut message = Interactive {
            header: Some("H".to_owned()),
            body: "B".to_owned(),
            footer: None,
            buttons: vec![MessageButton { id: "yes".to_owned(), title: "Yes".to_owned() }],
            list: None,
        };
        assert_eq!(
            body(OutboundContent::Interactive(message.clone()))["interactive"],
            json!({
                "type": "button", "header": { "type": "text", "text": "H" }, "body": { "text": "B" },
                "action": { "buttons": [{ "type": "reply", "reply": { "id": "yes", "title": "Yes" } }] }
            })
        );
        message.buttons.clear();
        let row =
            MessageListRow { id: "1".to_owned(), title: "One".to_owned(), description: Some("d".to_owned()) };
        let sections = vec![MessageListSection { title: None, rows: vec![row] }];
        message.list = Some(MessageList { button: "Choose".to_owned(), sections });
        assert_eq!(
            body(OutboundContent::Interactive(message))["interactive"]["action"],
            json!({ "button": "Choose", "sections": [{ "rows": [{ "id": "1", "title": "One", "description": "d" }] }] })
        );
    }

    #[test]
    fn templates_have_a_component_for_each_part_with_values() {
        let template = TemplateMessage {
            name: "order".to_owned(),
            language: "en_US".to_owned(),
            header_params: vec![],
            header_media: Some((MediaKind::Image, MediaSource::Link("https://a/b.png".to_owned()), None)),
            body_params: vec![(None, "Ana".to_owned()), (Some("day".to_owned()), "Monday".to_owned())],
            button_params: vec![
                TemplateButtonParam::Url { index: 0, value: "42".to_owned() },
                TemplateButtonParam::QuickReply { index: 1, payload: "p".to_owned() },
                TemplateButtonParam::CopyCode { index: 2, code: "X".to_owned() },
            ],
        };
        assert_eq!(
            body(OutboundContent::Template(template))["template"],
            json!({
                "name": "order", "language": { "code": "en_US" },
                "components": [
                    { "type": "header", "parameters": [{ "type": "image", "image": { "link": "https://a/b.png" } }] },
                    { "type": "body", "parameters": [
                        { "type": "text", "text": "Ana" },
                        { "type": "text", "parameter_name": "day", "text": "Monday" }
                    ] },
                    { "type": "button", "sub_type": "url", "index": "0", "parameters": [{ "type": "text", "text": "42" }] },
                    { "type": "button", "sub_type": "quick_reply", "index": "1",
                      "parameters": [{ "type": "payload", "payload": "p" }] },
                    { "type": "button", "sub_type": "copy_code", "index": "2",
                      "parameters": [{ "type": "coupon_code", "coupon_code": "X" }] }
                ]
            })
        );
    }
}
