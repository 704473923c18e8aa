use crate::support::Net;
use chatnet::{
    ChannelAdapter, NewNetworkTemplate, Quality, QualityUpdate, TemplateCategory, TemplateStatus,
    TemplateUpdate, Update,
};
use serde_json::json;
use simulator::Review;
use std::time::Duration;

fn new(name: &str) -> NewNetworkTemplate {
    NewNetworkTemplate {
        name: name.to_owned(),
        language: "pt_BR".to_owned(),
        category: TemplateCategory::Utility,
        components: json!([{ "type": "BODY", "text": "Olá {{1}}", "example": { "body_text": [["Ana"]] } }]),
    }
}

fn templates_of(updates: &[Update]) -> Vec<TemplateUpdate> {
    let template = |update: &Update| match update {
        Update::Template(template) => Some(template.clone()),
        _ => None,
    };
    updates.iter().filter_map(template).collect()
}

#[tokio::test]
async fn templates_are_submitted_and_approved_after_a_while() {
    let net = Net::start().await;
    let submitted = net.adapter.create_template(&net.account, &new("order")).await.unwrap();
    assert_eq!(submitted.status, Some(TemplateStatus::Pending));
    let error = net.adapter.create_template(&net.account, &new("order")).await.unwrap_err();
    assert!(error.message.contains("already"), "{error:?}");
    let error = net.adapter.create_template(&net.account, &new("Order!")).await.unwrap_err();
    assert_eq!((error.provider_code, error.is_retryable), (Some(100), false));
    net.sim.advance(Duration::from_secs(3));
    let updates = net.until(|updates| !templates_of(updates).is_empty()).await;
    let approved = &templates_of(&updates)[0];
    assert_eq!(
        (&approved.provider_id, approved.status),
        (&submitted.provider_id, Some(TemplateStatus::Approved))
    );
    let [listed] = &net.adapter.list_templates(&net.account).await.unwrap()[..] else { panic!("not one") };
    assert_eq!(
        (listed.status, listed.category),
        (Some(TemplateStatus::Approved), Some(TemplateCategory::Utility))
    );
    assert_eq!(listed.components.as_ref(), Some(&new("order").components));
    assert_eq!(listed.rejection_reason, None);
}

#[tokio::test]
async fn all_pages_are_listed() {
    let net = Net::start().await;
    for number in 0..205 {
        net.template(&format!("t_{number}"), "UTILITY", json!([{ "type": "BODY", "text": "x" }]));
    }
    let listed = net.adapter.list_templates(&net.account).await.unwrap();
    assert_eq!(listed.len(), 205);
    let first = listed[0].clone();
    net.adapter.delete_template(&net.account, &first.name, &first.provider_id).await.unwrap();
    net.adapter.delete_template(&net.account, &first.name, &first.provider_id).await.unwrap();
    assert_eq!(net.adapter.list_templates(&net.account).await.unwrap().len(), 204);
}

#[tokio::test]
async fn reviews_are_called_back() {
    let net = Net::with(|settings| settings.approve_after = None).await;
    net.adapter.create_template(&net.account, &new("order")).await.unwrap();
    net.sim.advance(Duration::from_secs(3600));
    for review in [
        Review::Reject { reason: "INVALID_FORMAT".to_owned() },
        Review::Approve,
        Review::Pause,
        Review::Disable,
        Review::Recategorise { category: "MARKETING".to_owned() },
        Review::Rate { quality: "RED".to_owned() },
    ] {
        net.sim.review("order", "pt_BR", &review).unwrap();
    }
    let updates = templates_of(&net.until(|updates| templates_of(updates).len() == 6).await);
    let statuses: Vec<_> = updates.iter().filter_map(|update| update.status).collect();
    assert_eq!(
        statuses,
        [
            TemplateStatus::Rejected,
            TemplateStatus::Approved,
            TemplateStatus::Paused,
            TemplateStatus::Disabled
        ]
    );
    assert_eq!(updates[0].rejection_reason.as_deref(), Some("INVALID_FORMAT: The review says so."));
    assert_eq!(updates[4].category, Some(TemplateCategory::Marketing));
    assert_eq!(updates[5].quality, Some(Quality::Low));
    net.sim.review("other", "pt_BR", &Review::Approve).unwrap_err();
}

#[tokio::test]
async fn numbers_are_rated() {
    let net = Net::start().await;
    net.sim.rate_number(&net.account.number_id, "RED", "TIER_1K").unwrap();
    let updates = net.until(|updates| !updates.is_empty()).await;
    let expected = QualityUpdate {
        display_number: Some("15550783881".to_owned()),
        quality: Some(Quality::Low),
        messaging_limit: Some(1000),
        at: None,
    };
    let [Update::Quality(rated)] = &updates[..] else { panic!("{updates:?}") };
    assert!(rated.at.is_some());
    assert_eq!(QualityUpdate { at: None, ..rated.clone() }, expected);
    let health = net.adapter.health(&net.account).await.unwrap();
    assert_eq!((health.quality, health.messaging_limit), (Quality::Low, Some(1000)));
}
