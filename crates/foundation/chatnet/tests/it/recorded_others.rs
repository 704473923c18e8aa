use crate::support::{OURS, USER, account, adapter, fixture, fixtures, parse, update};
use chatnet::{
    Account, ChannelAdapter, Echo, IdentityChange, InboundContent, Party, Quality, QualityUpdate,
    TemplateCategory, TemplateStatus, TemplateUpdate, Update,
};
use model::Timestamp;

fn sheena() -> Party {
    Party {
        user_id: Some(USER.to_owned()),
        phone: Some("+16505551234".to_owned()),
        username: None,
        name: Some("Sheena Nelson".to_owned()),
    }
}

/// Parts that are broken, unknown or for other numbers do not affect the rest of a batch.
#[test]
fn a_batch_is_read_part_by_part() {
    let kinds: Vec<String> = parse(&fixture("batch"))
        .iter()
        .map(|update| match update {
            Update::Message(message) => match &message.content {
                InboundContent::Text(text) => {
                    format!("text {text} of {}", message.from.name.as_deref().unwrap_or_default())
                }
                other => format!("{other:?}").split(' ').next().unwrap_or_default().to_owned(),
            },
            Update::Status(status) => format!("status {}", status.status.as_str()),
            Update::Unknown { kind, .. } => format!("unknown {kind}"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "text One of Sheena Nelson",
            "text Oi of Lia",
            "Unsupported",
            "unknown messages.text",
            "status sent",
            "status delivered",
            "unknown statuses.shredded",
            "text Two of Sheena Nelson",
            "unknown brand_new_field",
        ]
    );
}

#[test]
fn what_is_for_others_is_left_out() {
    let other = Account { number_id: "999".to_owned(), business_id: "777".to_owned(), ..account() };
    let updates = adapter().parse_webhook(&other, &fixture("batch"));
    assert!(
        matches!(&updates[..], [Update::Message(message), Update::Template(template)]
            if message.content == InboundContent::Text("Elsewhere".to_owned()) && template.name == "other"),
        "{updates:?}"
    );
    for name in fixtures().into_iter().filter(|name| name != "batch") {
        assert_eq!(adapter().parse_webhook(&other, &fixture(&name)), [], "{name}");
    }
}

#[test]
fn contacts_refuse_and_want_marketing() {
    for (name, wants_marketing) in [("user_preferences_stop", false), ("user_preferences_resume", true)] {
        let at = Some(Timestamp::from_millis(1_731_705_721_000));
        assert_eq!(update(name), Update::Consent { party: sheena(), wants_marketing, at });
    }
}

fn template(name: &str) -> TemplateUpdate {
    match update(name) {
        Update::Template(template) => TemplateUpdate { at: None, ..template },
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn templates_are_reviewed() {
    let unchanged = TemplateUpdate {
        provider_id: "1689556908129832".to_owned(),
        name: "order_confirmation".to_owned(),
        language: "en_US".to_owned(),
        status: None,
        category: None,
        rejection_reason: None,
        quality: None,
        components: None,
        at: None,
    };
    let utility = TemplateUpdate { category: Some(TemplateCategory::Utility), ..unchanged.clone() };
    let of_status = |status| TemplateUpdate { status: Some(status), ..utility.clone() };
    assert_eq!(template("template_approved"), of_status(TemplateStatus::Approved));
    assert_eq!(template("template_paused"), of_status(TemplateStatus::Paused));
    assert_eq!(template("template_disabled"), of_status(TemplateStatus::Disabled));
    let rejection_reason = Some("INVALID_FORMAT: Variables at the end.".to_owned());
    let rejected = TemplateUpdate { rejection_reason, ..of_status(TemplateStatus::Rejected) };
    assert_eq!(template("template_rejected"), rejected);
    let flagged = TemplateUpdate { quality: Some(Quality::Low), ..utility.clone() };
    assert_eq!(template("template_flagged"), flagged);
    let rated = TemplateUpdate { quality: Some(Quality::Medium), ..unchanged.clone() };
    assert_eq!(template("template_quality"), rated);
    assert_eq!(template("template_quality_under_status"), rated);
    let marketing = TemplateUpdate { category: Some(TemplateCategory::Marketing), ..unchanged };
    assert_eq!(template("template_category"), marketing);
    assert_eq!(template("template_category_announced"), utility);
}

#[test]
fn numbers_are_rated() {
    let of = |quality, messaging_limit| {
        let display_number = Some("15550783881".to_owned());
        let at = Some(Timestamp::from_millis(1_748_454_394_000));
        Update::Quality(QualityUpdate { display_number, quality, messaging_limit, at })
    };
    assert_eq!(update("number_limit"), of(None, Some(10_000)));
    assert_eq!(update("number_flagged"), of(Some(Quality::Low), Some(10_000)));
    assert_eq!(update("number_throughput"), of(None, None));
}

#[test]
fn people_move() {
    let at = Some(Timestamp::from_millis(1_750_269_342_000));
    let new_id = Some("US.20000000000000000001".to_owned());
    let nameless = Party { name: None, ..sheena() };
    let moved = Party { user_id: new_id.clone(), phone: Some("+12195555358".to_owned()), ..Party::default() };
    let change = IdentityChange { old: nameless.clone(), new: moved, at };
    assert_eq!(update("number_changed"), Update::Identity(change));

    let old = Party { phone: None, ..nameless };
    let new = Party { user_id: new_id.clone(), ..Party::default() };
    assert_eq!(update("user_id_changed"), Update::Identity(IdentityChange { old, new, at }));

    let old = Party { name: None, ..sheena() };
    let new = Party { user_id: new_id, ..sheena() };
    assert_eq!(update("user_id_update"), Update::Identity(IdentityChange { old, new, at }));
}

#[test]
fn what_the_business_writes_itself_is_an_echo() {
    let echo = Echo {
        provider_id: OURS.replace("OUR", "ECH"),
        to: Party { name: None, ..sheena() },
        sent_at: Timestamp::from_millis(1_739_321_024_000),
        content: InboundContent::Text("Here's the info you requested!".to_owned()),
        reply_to: None,
    };
    assert_eq!(update("echo"), Update::Echo(echo));
}

#[test]
fn templates_say_when_they_were_reviewed() {
    let Update::Template(quality) = update("template_quality") else { panic!("no template") };
    assert_eq!(quality.at, Some(Timestamp::from_millis(1_674_864_290_000)));
}

#[test]
fn what_has_no_time_is_of_now() {
    for name in ["user_preferences_stop", "number_changed", "number_flagged"] {
        let raw = String::from_utf8(fixture(name)).unwrap();
        let raw = raw.replace("\"timestamp\"", "\"other\"").replace("\"time\"", "\"other\"");
        let at = match &parse(raw.as_bytes())[..] {
            [Update::Consent { at, .. }] => *at,
            [Update::Identity(change)] => change.at,
            [Update::Quality(quality)] => quality.at,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(at, None, "{name}");
    }
}
