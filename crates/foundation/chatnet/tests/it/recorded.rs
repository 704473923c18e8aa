use crate::support::{MESSAGE, OURS, USER, fixture, parse, update};
use chatnet::{
    InboundContent, InboundMedia, InboundMessage, MediaKind, NetworkStatus, Party, RefusalCode, StatusUpdate,
    Update,
};
use model::Timestamp;
use serde_json::json;

fn message(name: &str) -> InboundMessage {
    match update(name) {
        Update::Message(message) => message,
        other => panic!("{name}: {other:?}"),
    }
}

fn content(name: &str) -> InboundContent {
    let message = message(name);
    assert_eq!(message.provider_id, MESSAGE);
    message.content
}

fn media(kind: MediaKind, id: &str, mime_type: &str) -> InboundMedia {
    InboundMedia {
        kind,
        media_id: id.to_owned(),
        mime_type: Some(mime_type.to_owned()),
        caption: None,
        file_name: None,
        is_voice: false,
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_text_has_its_author_and_time() {
    let text = message("text");
    assert_eq!(
        text,
        InboundMessage {
            provider_id: MESSAGE.to_owned(),
            from: Party {
                user_id: some(USER),
                phone: some("+16505551234"),
                username: None,
                name: some("Sheena Nelson"),
            },
            sent_at: Timestamp::from_millis(1_749_416_383_000),
            content: InboundContent::Text("Does it come in another color?".to_owned()),
            reply_to: None,
            referral: None,
            product: None,
        }
    );
    assert_eq!(message("text_reply").reply_to.as_deref(), Some(OURS));
}

#[test]
fn half_an_emoji_and_a_byte_order_mark_lose_no_message() {
    let question = "Does it come in another color?";
    let text = String::from_utf8(fixture("text")).unwrap().replace(question, "Red? \\ud83d");
    for raw in [text.clone(), format!("\u{feff}{text}")] {
        let updates = parse(raw.as_bytes());
        let [Update::Message(message)] = &updates[..] else { panic!("{updates:?}") };
        assert_eq!(message.content, InboundContent::Text("Red? \u{fffd}".to_owned()));
    }
}

#[test]
fn a_user_may_have_no_number() {
    let party = message("text_username_only").from;
    assert_eq!(party.user_id.as_deref(), Some(USER));
    assert_eq!(party.username.as_deref(), Some("sheena.n"));
    assert_eq!(party.phone, None);
}

#[test]
fn a_user_id_in_the_place_of_a_number_is_one() {
    let raw = String::from_utf8(fixture("text_username_only")).unwrap();
    let raw = raw.replace("\"from_user_id\"", "\"from\"");
    let [Update::Message(message)] = &parse(raw.as_bytes())[..] else { panic!("no message") };
    assert_eq!(message.from.user_id.as_deref(), Some(USER));
    assert_eq!(message.from.phone, None);
    assert_eq!(message.from.name.as_deref(), Some("Sheena Nelson"));
}

#[test]
fn files() {
    let image = InboundMedia {
        caption: some("Is this the one?"),
        ..media(MediaKind::Image, "1003383421387256", "image/jpeg")
    };
    assert_eq!(content("image"), InboundContent::Media(image));
    let voice = InboundMedia {
        is_voice: true,
        ..media(MediaKind::Audio, "1908647269898587", "audio/ogg; codecs=opus")
    };
    assert_eq!(content("audio_voice"), InboundContent::Media(voice));
    let sound = media(MediaKind::Audio, "1908647269898588", "audio/mpeg");
    assert_eq!(content("audio_file"), InboundContent::Media(sound));
    let video =
        InboundMedia { caption: some("Look"), ..media(MediaKind::Video, "1908647269898589", "video/mp4") };
    assert_eq!(content("video"), InboundContent::Media(video));
    let document = InboundMedia {
        caption: some("The form"),
        file_name: some("form.pdf"),
        ..media(MediaKind::Document, "1908647269898590", "application/pdf")
    };
    assert_eq!(content("document"), InboundContent::Media(document));
    let sticker = media(MediaKind::Sticker, "1908647269898591", "image/webp");
    assert_eq!(content("sticker"), InboundContent::Media(sticker));
}

#[test]
fn places_and_cards() {
    let InboundContent::Location { latitude, longitude, name, address } = content("location") else {
        panic!("no location")
    };
    assert!((latitude - 40.782_910_059_774).abs() < 1e-9 && (longitude + 73.959_075_808_525).abs() < 1e-9);
    assert_eq!(name.as_deref(), Some("Solomon R. Guggenheim Museum"));
    assert_eq!(address.as_deref(), Some("1071 5th Ave, New York, NY 10128"));
    let InboundContent::Contacts(cards) = content("contacts") else { panic!("no cards") };
    assert_eq!(cards[0]["name"]["formatted_name"], "Barbara J. Johnson");
}

#[test]
fn buttons_and_lists() {
    let button = |id: &str, title: &str, of_template| {
        let (id, title) = (id.to_owned(), title.to_owned());
        InboundContent::ButtonReply { id, title, of_template }
    };
    assert_eq!(content("button"), button("Unsubscribe", "Unsubscribe", true));
    assert_eq!(content("interactive_button_reply"), button("cancel-button", "Cancel", false));
    let row = InboundContent::ListReply {
        id: "priority_express".to_owned(),
        title: "Priority Mail Express".to_owned(),
    };
    assert_eq!(content("interactive_list_reply"), row);
    assert_eq!(message("button").reply_to.as_deref(), Some(OURS));
}

#[test]
fn reactions_come_and_go() {
    let reaction = |emoji| InboundContent::Reaction { message: OURS.to_owned(), emoji };
    assert_eq!(content("reaction"), reaction(some("👍")));
    assert_eq!(content("reaction_removed"), reaction(None));
    let empty = String::from_utf8(fixture("reaction")).unwrap().replace('👍', "");
    let [Update::Message(message)] = &parse(empty.as_bytes())[..] else { panic!("no message") };
    assert_eq!(message.content, reaction(None));
}

#[test]
fn messages_are_edited_and_deleted() {
    let original = MESSAGE.replace("A1", "A0");
    let edited = |text: &str| InboundContent::Edited { message: original.clone(), text: text.to_owned() };
    assert_eq!(content("edit"), edited("In blue, please"));
    assert_eq!(content("edit_caption"), edited("The other one"));
    assert_eq!(content("revoke"), InboundContent::Deleted { message: original.clone() });
}

#[test]
fn a_caption_can_be_taken_away() {
    let raw = String::from_utf8(fixture("edit_caption")).unwrap().replace("\"caption\"", "\"other\"");
    let [Update::Message(message)] = &parse(raw.as_bytes())[..] else { panic!("no message") };
    let original = MESSAGE.replace("A1", "A0");
    assert_eq!(message.content, InboundContent::Edited { message: original, text: String::new() });
}

#[test]
fn orders_have_their_products() {
    let InboundContent::Order(order) = content("order") else { panic!("no order") };
    assert_eq!(order.catalog_id.as_deref(), Some("194836987003835"));
    assert_eq!(order.readable(), "Love these!\n2 × di9ozbzfi4 (30 USD each)");
    let raw = String::from_utf8(fixture("order")).unwrap();
    let product = |from: &str, to: &str| match &parse(raw.replace(from, to).as_bytes())[..] {
        [Update::Message(InboundMessage { content: InboundContent::Order(order), .. })] => {
            order.items.first().cloned()
        }
        _ => None,
    };
    for (price, text) in
        [("10.5", "10.5"), ("0.1", "0.1"), ("\"19.90\"", "19.90"), ("1234567.89", "1234567.89")]
    {
        let item = product("\"item_price\": 30", &format!("\"item_price\": {price}")).unwrap();
        assert_eq!(item.price.as_deref(), Some(text));
    }
    assert_eq!(product("\"quantity\": 2", "\"quantity\": \"3\"").unwrap().quantity, 3);
    assert_eq!(product("\"quantity\": 2", "\"quantity\": 0.5"), None);
}

#[test]
fn answers_to_forms_are_read() {
    let InboundContent::Form(form) = content("interactive_form_reply") else { panic!("no form") };
    assert_eq!((form.name.as_deref(), form.text.as_deref()), (Some("flow"), Some("Sent")));
    assert_eq!(serde_json::Value::Object(form.answers), json!({ "a": 1 }));
    let raw = String::from_utf8(fixture("interactive_form_reply")).unwrap().replace("{\\\"a\\\":1}", "[1");
    let [Update::Message(message)] = &parse(raw.as_bytes())[..] else { panic!("no message") };
    assert!(matches!(&message.content, InboundContent::Unsupported { kind, .. } if kind == "interactive"));
}

#[test]
fn messages_say_from_where_they_come() {
    let mut raw: serde_json::Value = serde_json::from_slice(&fixture("text_reply")).unwrap();
    let message = raw.pointer_mut("/entry/0/changes/0/value/messages/0").unwrap();
    message["context"]["referred_product"] = json!({ "catalog_id": "1", "product_retailer_id": "SKU-77" });
    message["referral"] = json!({
        "source_url": "https://example.com/ad", "source_id": 1202, "source_type": "ad", "headline": "Sale", "body": "Today",
        "media_type": "video", "video_url": "https://example.com/v", "thumbnail_url": "https://example.com/t",
        "ctwa_clid": "CLICK-77", "welcome_message": { "text": "Hi!" },
    });
    let [Update::Message(message)] = &parse(raw.to_string().as_bytes())[..] else { panic!("no message") };
    let referral = serde_json::to_value(message.referral.as_ref().unwrap()).unwrap();
    assert_eq!(
        referral,
        json!({
            "source_type": "ad", "source_id": "1202", "source_url": "https://example.com/ad", "headline": "Sale",
            "body": "Today", "media_type": "video", "image_url": null, "video_url": "https://example.com/v",
            "thumbnail_url": "https://example.com/t", "click_id": "CLICK-77", "welcome_text": "Hi!",
        })
    );
    assert_eq!(message.product.as_ref().unwrap().product_id, "SKU-77");
    assert_eq!(message.target(), Some(OURS));
}

#[test]
fn what_is_not_understood_is_kept() {
    for (name, kind) in [("unsupported", "unsupported"), ("unknown_type", "hologram")] {
        let InboundContent::Unsupported { kind: found, raw } = content(name) else {
            panic!("{name} is supported")
        };
        assert_eq!((found.as_str(), &raw["id"]), (kind, &json!(MESSAGE)), "{name}");
    }
    let Update::Unknown { kind, raw } = update("group_message") else { panic!("a group's message is known") };
    assert_eq!((kind.as_str(), &raw["group_id"]), ("messages.text", &json!("Y2FwaV9ncm91cDox")));
    let Update::Unknown { kind, .. } = update("errors") else { panic!("errors are known") };
    assert_eq!(kind, "errors");
}

fn status(name: &str) -> StatusUpdate {
    match update(name) {
        Update::Status(status) => status,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn statuses_echo_the_reference() {
    for (name, expected) in [
        ("status_sent", NetworkStatus::Sent),
        ("status_delivered", NetworkStatus::Delivered),
        ("status_read", NetworkStatus::Read),
        ("status_played", NetworkStatus::Read),
        ("status_failed", NetworkStatus::Failed),
    ] {
        let status = status(name);
        assert_eq!(status.status, expected, "{name}");
        assert_eq!(status.provider_id, OURS);
        assert_eq!(status.reference.as_deref(), Some("msg_01"));
        assert_eq!(status.at, Timestamp::from_millis(1_750_030_073_000));
        assert_eq!(status.recipient.phone.as_deref(), Some("+16505551234"));
        assert_eq!(status.recipient.user_id.as_deref(), Some(USER));
        assert_eq!(status.error.is_some(), expected == NetworkStatus::Failed);
    }
    let hidden = status("status_username_only").recipient;
    assert_eq!((hidden.phone, hidden.username.as_deref()), (None, Some("sheena.n")));
}

#[test]
fn a_failure_says_why() {
    let error = status("status_failed").error.unwrap();
    assert_eq!((error.code, error.provider_code), (RefusalCode::WindowClosed, Some(131_047)));
    assert!(error.message.starts_with("Message failed to send because more than 24 hours"));
}
