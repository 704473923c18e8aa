//! Profiles: the URL of a service and an API key, one file each in the user's configuration folder.

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;

/// What `svc login` stores.
#[derive(Serialize, Deserialize)]
pub(super) struct Profile {
    /// Where the service is, without `/api/v1`.
    pub(super) url: String,
    /// The API key.
    pub(super) key: String,
}

impl Profile {
    /// The profile of this name; `None` where there is none.
    pub(super) fn load(name: &str) -> anyhow::Result<Option<Self>> {
        let path = path(name)?;
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        // The parser's message quotes the line, which may be the key's.
        let profile = toml::from_str(&text);
        profile
            .map(Some)
            .map_err(|_| anyhow::anyhow!("{} is not a profile: log in anew with `svc login`", path.display()))
    }

    /// Stores the profile in place of an earlier one of the same name. Gives its file, which only its owner can read.
    pub(super) fn store(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = path(name)?;
        let folder = folder()?;
        let writing = || -> anyhow::Result<()> {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
            // A temporary file is readable by its owner only, and replaces the old one in one step.
            let mut file = tempfile::NamedTempFile::new_in(&folder)?;
            file.write_all(toml::to_string(self)?.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        writing().with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// Deletes the profile of this name.
    pub(super) fn delete(name: &str) -> anyhow::Result<()> {
        let path = path(name)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!("there is no profile `{name}`"),
            done => done.with_context(|| format!("deleting {}", path.display())),
        }
    }
}

fn path(name: &str) -> anyhow::Result<PathBuf> {
    Ok(folder()?.join(format!("{name}.toml")))
}

/// `svc/profiles` in the user's configuration folder, as the XDG base directory specification finds it.
fn folder() -> anyhow::Result<PathBuf> {
    // The specification ignores relative paths.
    let configured = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = configured.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    Ok(base.context("the user has no home folder: set XDG_CONFIG_HOME")?.join("svc").join("profiles"))
}
