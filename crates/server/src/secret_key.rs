//! The keys under which secrets are sealed: where they come from, how they are checked against the database, and how a
//! service goes over to another one while it runs.

use crate::Config;
use crate::operator_error::cause;
use anyhow::Context;
use auth::{InstalledKeys, Seal, SecretKey, adopt_key, installed_keys};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Random, SystemRandom};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Backend, Db};

/// Where a key that was generated is kept, in the data folder.
const FILE: &str = "secret.key";
/// Where the key before it is kept, from a rotation on.
const PREVIOUS_FILE: &str = "secret.key.previous";

/// How often a service looks for another key. `svc secrets rotate` waits for several of these.
const REFRESH: Duration = Duration::from_secs(2);

/// The keys that the configuration has.
pub(crate) struct Keys {
    /// The key to seal under, as soon as the database says so.
    pub(crate) current: SecretKey,
    /// The key before it.
    pub(crate) previous: Option<SecretKey>,
    /// Whether they come from files in the data folder.
    pub(crate) in_files: bool,
}

impl Keys {
    /// The keys from the settings or the data folder. `None` where one is to be generated, for a database that has this
    /// process only.
    pub(crate) fn read(config: &Config, backend: &Backend) -> anyhow::Result<Option<Self>> {
        let previous = match &config.secret_key_previous {
            Some(text) => Some(read_key(text).context("SVC_SECRET_KEY_PREVIOUS")?),
            None => None,
        };
        if let Some(text) = &config.secret_key {
            let current = read_key(text).context("SVC_SECRET_KEY")?;
            return Ok(Some(Self::new(current, previous, false)));
        }
        let previous = match previous {
            Some(key) => Some(key),
            None => read_file(&config.data_dir.join(PREVIOUS_FILE))?,
        };
        match (read_file(&config.data_dir.join(FILE))?, backend) {
            (Some(current), _) => Ok(Some(Self::new(current, previous, true))),
            (None, Backend::Sqlite(_)) => Ok(None),
            (None, Backend::Postgres(_)) => anyhow::bail!(
                "SVC_SECRET_KEY is not set. With PostgreSQL all replicas share one key: make it once with \
                 `head -c 32 /dev/urandom | base64`, and give it to each of them"
            ),
        }
    }

    fn new(current: SecretKey, previous: Option<SecretKey>, in_files: bool) -> Self {
        let previous = previous.filter(|key| key.mark() != current.mark());
        Self { current, previous, in_files }
    }

    /// The key that the database says is the one to seal under, and the other one.
    ///
    /// # Errors
    /// When the configuration does not have a key that values may be sealed under.
    pub(crate) fn chosen(&self, installed: &InstalledKeys) -> anyhow::Result<(SecretKey, Option<SecretKey>)> {
        let is_previous = |mark: &str| self.previous.as_ref().is_some_and(|previous| previous.mark() == mark);
        let is_known = |mark: &str| self.current.mark() == mark || is_previous(mark);
        anyhow::ensure!(
            is_known(&installed.active),
            "SVC_SECRET_KEY (or secret.key in the data folder) is not the key under which this database's secrets were \
             sealed. Start with the earlier one: what was sealed cannot be opened otherwise"
        );
        anyhow::ensure!(
            installed.retiring.as_deref().is_none_or(is_known),
            "a rotation of the secret key has not ended: start with the earlier key in SVC_SECRET_KEY_PREVIOUS, and run \
             `svc secrets rotate`"
        );
        Ok(match &self.previous {
            Some(previous) if is_previous(&installed.active) => {
                (previous.clone(), Some(self.current.clone()))
            }
            other => (self.current.clone(), other.clone()),
        })
    }
}

/// The seal of a service that starts. Generates a key where there is to be one, and refuses keys other than those that this
/// database's secrets were sealed under: its callers would be the first to notice.
pub(crate) async fn open_seal(config: &Config, keys: Option<Keys>, db: &Db) -> anyhow::Result<Seal> {
    let keys = match keys {
        Some(keys) => keys,
        None => {
            // What was sealed under the missing key cannot be opened under a new one.
            anyhow::ensure!(
                db.read(installed_keys).await.map_err(cause)?.is_none(),
                "{} is missing, but this database has secrets that were sealed under it: put the file back from a backup, or \
                 set SVC_SECRET_KEY to its content",
                config.data_dir.join(FILE).display()
            );
            let text = generate();
            write_file(&config.data_dir, FILE, &text, Existing::Keep)?;
            Keys::new(read_key(&text)?, None, true)
        }
    };
    let mark = keys.current.mark().to_owned();
    let installed = db.write(move |tx| adopt_key(tx, &mark)).await.map_err(cause)?;
    let (active, other) = keys.chosen(&installed)?;
    Ok(Seal::with_keys(active, other))
}

/// Lets a running service go over to other keys: to those in the data folder, and to the one that the database says is
/// the one to seal under. Where neither can change, it does nothing.
pub(crate) async fn follow(config: Arc<Config>, db: Db, seal: Arc<Seal>) {
    if config.secret_key.is_some() && config.secret_key_previous.is_none() {
        return;
    }
    let mut pause = tokio::time::interval(REFRESH);
    pause.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        pause.tick().await;
        if let Err(error) = refresh(&config, &db, &seal).await {
            tracing::error!(error = %format!("{error:#}"), "the secret keys could not be read; those at hand stay");
        }
    }
}

async fn refresh(config: &Arc<Config>, db: &Db, seal: &Seal) -> anyhow::Result<()> {
    let (settings, backend) = (config.clone(), db.backend().clone());
    let keys = tokio::task::spawn_blocking(move || Keys::read(&settings, &backend)).await??;
    // With one key there is no choice.
    let Some(keys) = keys.filter(|keys| keys.previous.is_some()) else { return Ok(()) };
    let Some(installed) = db.read(installed_keys).await.map_err(cause)? else { return Ok(()) };
    let (active, other) = keys.chosen(&installed)?;
    if active.mark() != seal.mark() {
        tracing::info!("going over to another secret key");
    }
    seal.set_keys(active, other);
    Ok(())
}

/// Generates a key and makes it the one in the data folder. The key until now stays beside it. Whenever this is broken off,
/// the files have the key of the database, as the current or as the previous one.
///
/// # Errors
/// When the files cannot be written.
pub(crate) fn replace_file(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(FILE);
    let current = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    write_file(folder, PREVIOUS_FILE, &current, Existing::Replace)?;
    write_file(folder, FILE, &generate(), Existing::Replace)
}

/// Holds the data folder for one command that changes its keys.
///
/// # Errors
/// When another one holds it.
pub(crate) fn lock_folder(folder: &Path) -> anyhow::Result<File> {
    use rustix::fs::{FlockOperation, flock};
    let file = File::open(folder).with_context(|| format!("opening {}", folder.display()))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .context("another `svc secrets rotate` is running")?;
    Ok(file)
}

fn generate() -> String {
    let mut key = [0; 32];
    SystemRandom::default().fill(&mut key);
    STANDARD.encode(key)
}

fn read_key(text: &str) -> anyhow::Result<SecretKey> {
    let key = STANDARD.decode(text.trim()).context("the secret key is not base64")?;
    SecretKey::new(&key).map_err(cause)
}

/// The key in a file; `None` where there is no such file.
fn read_file(path: &PathBuf) -> anyhow::Result<Option<SecretKey>> {
    match fs::read_to_string(path) {
        Ok(text) => read_key(&text).with_context(|| path.display().to_string()).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// What happens to a file that is there already.
#[derive(PartialEq, Eq)]
enum Existing {
    /// It is replaced.
    Replace,
    /// It stays, and the new one is an error: another process is about to use it.
    Keep,
}

/// Writes a file that only its owner can read, in one step, so that it survives a loss of power.
fn write_file(folder: &Path, name: &str, text: &str, existing: Existing) -> anyhow::Result<()> {
    let path = folder.join(name);
    let writing = || -> anyhow::Result<()> {
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        if existing == Existing::Keep {
            file.persist_noclobber(&path)?;
        } else {
            file.persist(&path)?;
        }
        File::open(folder)?.sync_all()?;
        Ok(())
    };
    writing().with_context(|| format!("writing {}", path.display()))
}
