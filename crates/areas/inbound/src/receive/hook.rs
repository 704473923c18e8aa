//! Compiled inbound webhook, with which the receiver works without looking anything up.

use super::bucket::Bucket;
use crate::dedupe::Rule;
use crate::mapping::Compiled;
use crate::rows::{RateLimit, ResponseSettings, Status, WebhookRow};
use crate::token::TokenHash;
use crate::verify::handshake::Handshake;
use crate::verify::scheme::{Refusal, Scheme};
use crate::verify::verification::Kind;
use auth::Seal;
use ipnet::IpNet;
use model::{InboundWebhookId, Result, Timestamp, WorkspaceId};
use std::net::IpAddr;
use std::sync::Arc;

/// A webhook, ready to receive.
pub(crate) struct Hook {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: InboundWebhookId,
    pub(crate) name: String,
    pub(crate) status: Status,
    pub(crate) scheme: Scheme,
    pub(crate) handshake: Handshake,
    pub(crate) dedupe: Rule,
    pub(crate) mapping: Option<Compiled>,
    pub(crate) response: ResponseSettings,
    pub(crate) rate_limit: RateLimit,
    pub(crate) bucket: Arc<Bucket>,
    /// The header with the sender's secret, which is not to be kept.
    pub(crate) secret_header: Option<String>,
    networks: Vec<IpNet>,
    previous: Option<(Vec<u8>, Timestamp)>,
}

impl Hook {
    /// Compiles a stored webhook.
    ///
    /// # Errors
    /// When its secrets do not open, or what is stored does not fit together.
    pub(crate) fn compile(row: WebhookRow, seal: &Seal, bucket: Arc<Bucket>) -> Result<Self> {
        let status = row.status;
        let settings = row.settings()?;
        let secrets = row.secrets(seal)?;
        let verification = &settings.verification;
        Ok(Self {
            status,
            scheme: Scheme::compile(verification, &secrets)?,
            handshake: Handshake::of(verification.kind, &secrets),
            dedupe: settings.dedupe().compile()?,
            mapping: settings.mapping.as_ref().map(crate::mapping::Mapping::compile).transpose()?,
            networks: settings.networks()?,
            secret_header: verification.header.clone().filter(|_| verification.kind == Kind::HeaderSecret),
            response: settings.response,
            rate_limit: settings.rate_limit,
            bucket,
            previous: row.previous_token_hash.zip(row.previous_token_until),
            workspace: row.workspace_id,
            id: row.id,
            name: row.name,
        })
    }

    /// Whether this token opens it now: the present one does, the one before until its time is over.
    pub(crate) fn opens_with(&self, token: &TokenHash, now: Timestamp) -> bool {
        let previous = self.previous.as_ref().filter(|(hash, _)| hash == token);
        previous.is_none_or(|(_, until)| now < *until)
    }

    /// Whether this address may send.
    pub(crate) fn admits(&self, peer: IpAddr) -> Result<(), Refusal> {
        let peer = peer.to_canonical();
        let admitted =
            self.networks.is_empty() || self.networks.iter().any(|network| network.contains(&peer));
        if admitted { Ok(()) } else { Err(Refusal::AddressNotAllowed) }
    }
}
