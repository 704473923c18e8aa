//! Where the bytes of files are, as the settings say.

use crate::Config;
use crate::operator_error::cause;
use crate::tiers::operator_policy;
use anyhow::Context;
use egress::Connector;
use files::{Objects, S3Settings, objects_in, objects_in_s3};
use std::path::PathBuf;

/// Where files are kept.
pub(crate) enum Place {
    /// In a folder.
    Folder(PathBuf),
    /// In an S3-compatible object store, reached through the connector.
    S3(Box<S3Settings>, Box<Connector>),
}

impl Place {
    /// # Errors
    /// When the settings name no place.
    pub(crate) fn read(config: &Config, connector: &Connector) -> anyhow::Result<Self> {
        let Some(url) = &config.object_store else {
            return Ok(Self::Folder(config.data_dir.join("files")));
        };
        let rest = url
            .strip_prefix("s3://")
            .context("SVC_OBJECT_STORE must be s3://BUCKET or s3://BUCKET/PREFIX")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        anyhow::ensure!(!bucket.is_empty(), "SVC_OBJECT_STORE names no bucket");
        let required = |value: &Option<String>, setting: &str| {
            value.clone().with_context(|| format!("SVC_OBJECT_STORE needs {setting}"))
        };
        let settings = S3Settings {
            bucket: bucket.to_owned(),
            prefix: prefix.trim_matches('/').to_owned(),
            endpoint: config.object_store_endpoint.clone(),
            region: config.object_store_region.clone(),
            access_key_id: required(&config.object_store_key_id, "AWS_ACCESS_KEY_ID")?,
            secret_access_key: required(&config.object_store_secret, "AWS_SECRET_ACCESS_KEY")?,
            session_token: config.object_store_token.clone(),
        };
        let connector = match &config.object_store_endpoint {
            Some(endpoint) => connector.under(operator_policy("SVC_OBJECT_STORE_ENDPOINT", endpoint)?)?,
            None => connector.clone(),
        };
        Ok(Self::S3(Box::new(settings), Box::new(connector)))
    }

    /// The place, made where it is a folder that does not exist.
    ///
    /// # Errors
    /// When the folder cannot be made, or the settings of the object store are not accepted.
    pub(crate) fn open(self) -> anyhow::Result<Objects> {
        match self {
            Self::Folder(folder) => {
                objects_in(&folder).map_err(cause).with_context(|| format!("making {}", folder.display()))
            }
            Self::S3(settings, connector) => objects_in_s3(*settings, *connector).map_err(cause),
        }
    }
}
