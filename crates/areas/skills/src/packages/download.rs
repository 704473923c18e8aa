//! The route `/skill-packages/…`: signed links to packages, which need no API key.

use super::pack::{Packed, packed};
use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use files::{Files, attachment, guarded};
use model::{Code, Result, SkillId, WorkspaceId};
use operation::{BaseUrl, BoxFuture, RawAnswer, RawRequest, RawRoute};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::Db;

/// The place of the signatures (see [`Seal::sign`]).
const PLACE: &str = "skill-package";

/// The longest link in bytes. Longer than any that was made.
const LONGEST: usize = 1024;

/// The target of a link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PackageLink {
    #[serde(rename = "w")]
    pub(super) workspace: WorkspaceId,
    #[serde(rename = "s")]
    pub(super) skill: SkillId,
    #[serde(rename = "v")]
    pub(super) version: Option<i64>,
    /// The digest of the files.
    #[serde(rename = "d")]
    pub(super) digest: String,
    /// The end, in milliseconds since 1970.
    #[serde(rename = "e")]
    pub(super) until: i64,
}

/// Makes and reads links.
#[derive(Clone)]
pub(crate) struct PackageLinks {
    seal: Arc<Seal>,
    base_url: String,
}

impl PackageLinks {
    pub(crate) fn new(seal: Arc<Seal>, base_url: &BaseUrl) -> Self {
        Self { seal, base_url: base_url.0.clone() }
    }

    /// The URL of a link.
    pub(super) fn url(&self, link: &PackageLink) -> String {
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(link).unwrap_or_default());
        let signature = URL_SAFE_NO_PAD.encode(self.seal.sign(PLACE, &text));
        format!("{}/skill-packages/{text}.{signature}", self.base_url)
    }

    fn read(&self, rest: &str) -> Option<PackageLink> {
        let (text, signature) = rest.split_once('.').filter(|_| rest.len() <= LONGEST)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let is_signed = self.seal.is_signed(PLACE, text, &signature);
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|_| is_signed)?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// The route of the links.
pub(crate) struct PackageRoute {
    pub(crate) db: Db,
    pub(crate) objects: Arc<Files>,
    pub(crate) links: PackageLinks,
}

impl RawRoute for PackageRoute {
    fn prefix(&self) -> &'static str {
        "/skill-packages/"
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let (db, objects) = (self.db.clone(), self.objects.clone());
        let link = self.links.read(&request.rest);
        Box::pin(async move {
            if request.method != "GET" && request.method != "HEAD" {
                return said(405, "The link can only be read.").header("allow", "GET, HEAD");
            }
            let Some(link) = link else { return said(404, "There is nothing at this link.") };
            if link.until <= db.now().millis() {
                return said(410, "The link has expired. Ask for a new one.");
            }
            match packed(&db, &objects, link.workspace, link.skill, link.version).await {
                Ok(packed) if packed.digest == link.digest => sent(packed, request.method == "HEAD"),
                Ok(_) => said(410, "The skill has changed. Ask for a new link."),
                Err(error) if error.code() == Code::NotFound => said(410, "The skill was deleted."),
                Err(error) => {
                    tracing::error!(?error, "a package could not be sent");
                    said(500, "The package could not be sent. Try again later.")
                }
            }
        })
    }
}

fn sent(packed: Packed, is_head: bool) -> RawAnswer {
    let answer = guarded(RawAnswer::status(200))
        .header("cache-control", "no-store")
        .header("content-disposition", attachment("attachment", &packed.name));
    answer.body("application/zip", if is_head { Vec::new() } else { packed.bytes })
}

fn said(status: u16, message: &str) -> RawAnswer {
    RawAnswer::status(status).body("text/plain; charset=utf-8", message.to_owned())
}

/// The links as a service.
///
/// # Errors
/// `internal_error` when the program does not hand in what links need.
pub(crate) fn links(services: &operation::Services) -> Result<PackageLinks> {
    Ok(PackageLinks::new(services.get()?, &*services.get::<BaseUrl>()?))
}
