//! The account's templates.

use super::{answer, segment, unreadable};
use crate::cloud::Chatnet;
use crate::cloud::limits::{quality, template_category, template_status};
use crate::{Account, NetworkError, NewNetworkTemplate, TemplateUpdate};
use egress::Method;
use serde_json::{Value, json};

const FIELDS: &str = "id,name,language,status,category,components,rejected_reason,quality_score";

/// A business has at most 6,000 templates, so more pages than this are an error of the network.
const MOST_PAGES: usize = 100;

impl Chatnet {
    pub(in crate::cloud) async fn all_templates(
        &self,
        account: &Account,
    ) -> Result<Vec<TemplateUpdate>, NetworkError> {
        let first = format!("{}/message_templates?limit=100&fields={FIELDS}", segment(&account.business_id));
        let mut path = first.clone();
        let mut templates = Vec::new();
        for _ in 0..MOST_PAGES {
            let page = self.ask(account, self.request(account, Method::GET, &path)).await?;
            let rows = page.get("data").and_then(Value::as_array).ok_or_else(unreadable)?;
            templates.extend(rows.iter().filter_map(template));
            // Follow the cursor instead of the URL in `paging/next`, which contains the token and could name another
            // host.
            let after = page.pointer("/paging/cursors/after").and_then(Value::as_str);
            match (page.pointer("/paging/next"), after) {
                (Some(Value::String(_)), Some(after)) => path = format!("{first}&after={}", segment(after)),
                _ => return Ok(templates),
            }
        }
        Err(unreadable())
    }

    pub(in crate::cloud) async fn submit_template(
        &self,
        account: &Account,
        new: &NewNetworkTemplate,
    ) -> Result<TemplateUpdate, NetworkError> {
        let body = json!({
            "name": new.name,
            "language": new.language,
            "category": new.category.as_str().to_ascii_uppercase(),
            "components": new.components,
        });
        let path = format!("{}/message_templates", segment(&account.business_id));
        let answer = self.ask(account, self.json_request(account, &path, &body)).await?;
        let text = |key| answer.get(key).and_then(Value::as_str);
        Ok(TemplateUpdate {
            provider_id: text("id").ok_or_else(unreadable)?.to_owned(),
            name: new.name.clone(),
            language: new.language.clone(),
            status: text("status").and_then(template_status),
            category: text("category").and_then(template_category),
            rejection_reason: None,
            quality: None,
            components: None,
            at: None,
        })
    }

    pub(in crate::cloud) async fn remove_template(
        &self,
        account: &Account,
        name: &str,
        provider_id: &str,
    ) -> Result<(), NetworkError> {
        let query = format!("name={}&hsm_id={}", segment(name), segment(provider_id));
        let path = format!("{}/message_templates?{query}", segment(&account.business_id));
        let request = self.request(account, Method::DELETE, &path);
        let response = self.connector.send(request).await.map_err(super::failed)?;
        match answer(account, &response) {
            Err(error) if !error.is_gone => Err(error),
            _ => Ok(()),
        }
    }
}

fn template(raw: &Value) -> Option<TemplateUpdate> {
    let text = |key| raw.get(key).and_then(Value::as_str);
    let score = raw.pointer("/quality_score/score").and_then(Value::as_str);
    Some(TemplateUpdate {
        provider_id: text("id")?.to_owned(),
        name: text("name")?.to_owned(),
        language: text("language")?.to_owned(),
        status: text("status").and_then(template_status),
        category: text("category").and_then(template_category),
        rejection_reason: text("rejected_reason").filter(|reason| *reason != "NONE").map(str::to_owned),
        quality: score.map(quality),
        components: raw.get("components").cloned(),
        at: None,
    })
}
