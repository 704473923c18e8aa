//! Passwords: their rules, and the service that hashes them.
//!
//! A hash takes 19 MiB and some 20 ms of a core on purpose. So that many sign-ins at once neither use up the memory nor
//! slow down everything else, there are as many hashes at once as cores, a few more wait, and further ones are refused.
//! The permit belongs to the computation: a client that hangs up does not free it while the computation goes on.

use crate::Email;
use argon2::password_hash::phc::PasswordHash as Phc;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use model::{Code, Error, Random, Result};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock};
use tokio::sync::Semaphore;

/// The least length of a password, in bytes.
pub const LEAST_BYTES: usize = 10;
/// The greatest length of a password, in bytes.
pub const MOST_BYTES: usize = 256;
/// The computations that may wait for a core.
const WAITING: usize = 64;
/// After how many seconds a caller who was refused should try again. By then those who wait are through.
const RETRY_SECONDS: i64 = 2;

/// The hash of a password, with the parameters and the salt, in the PHC string format.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Returns the text to store.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Omits the hash.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Whether it is the password.
    pub(crate) matches: bool,
    /// Whether the hash was made with other parameters than those of today.
    pub(crate) is_outdated: bool,
}

/// Hashes and verifies passwords.
pub struct Passwords {
    params: Params,
    random: Arc<dyn Random>,
    /// One permit for each core.
    cores: Arc<Semaphore>,
    /// One permit for each computation that goes on or waits.
    places: Arc<Semaphore>,
    /// A hash that no password has, for accounts that do not exist.
    unknown: Arc<str>,
}

/// Omits the parts that do not print.
impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords").field("params", &self.params).finish_non_exhaustive()
    }
}

impl Passwords {
    /// Creates the service. A hash takes 19 MiB, two passes and one lane.
    pub fn new(random: Arc<dyn Random>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with(Params::DEFAULT, cores, random)
    }

    fn with(params: Params, cores: usize, random: Arc<dyn Random>) -> Self {
        let (mut salt, mut output) = ([0; 16], [0; Params::DEFAULT_OUTPUT_LEN]);
        random.fill(&mut salt);
        random.fill(&mut output);
        let (m, t, p) = cost(&params);
        let [salt, output] = [&salt[..], &output[..]].map(|bytes| STANDARD_NO_PAD.encode(bytes));
        Self {
            params,
            random,
            cores: Arc::new(Semaphore::new(cores)),
            places: Arc::new(Semaphore::new(cores + WAITING)),
            unknown: format!("$argon2id$v=19$m={m},t={t},p={p}${salt}${output}").into(),
        }
    }

    /// Hashes a new password of the person with this address.
    ///
    /// # Errors
    /// `validation_error` if the password breaks a rule; `service_unavailable` if too many wait.
    pub async fn hash(&self, password: String, email: &Email) -> Result<PasswordHash> {
        check_new(&password, email)?;
        self.rehash(password).await
    }

    /// Hashes a password again that was accepted before.
    pub(crate) async fn rehash(&self, password: String) -> Result<PasswordHash> {
        let (params, random) = (self.params.clone(), self.random.clone());
        self.compute(move || compute(&params, &password, &*random)).await
    }

    /// Compares a password with a stored hash. Without a hash it costs the same, and does not match.
    ///
    /// # Errors
    /// `service_unavailable` if too many wait.
    pub(crate) async fn verify(&self, stored: Option<String>, password: String) -> Result<Verdict> {
        // No account has such a password, and hashing starts with reading all of it.
        if password.len() > MOST_BYTES {
            return Ok(Verdict { matches: false, is_outdated: false });
        }
        let (params, unknown) = (self.params.clone(), self.unknown.clone());
        self.compute(move || {
            let is_known = stored.is_some();
            let hash = stored.as_deref().unwrap_or(&unknown);
            let parsed =
                Phc::new(hash).map_err(|_| Error::internal("a stored password hash is malformed"))?;
            let matches = Argon2::from(&params).verify_password(password.as_bytes(), &parsed).is_ok();
            let used = Params::try_from(&parsed).ok();
            let is_outdated = used.is_none_or(|used| cost(&used) != cost(&params));
            Ok(Verdict { matches: matches && is_known, is_outdated })
        })
        .await
    }

    async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| busy())?;
        let core = self.cores.clone().acquire_owned().await.map_err(Error::internal)?;
        let computation = tokio::task::spawn_blocking(move || {
            let result = work();
            drop((core, place));
            result
        });
        computation.await.map_err(Error::internal)?
    }
}

fn busy() -> Error {
    let message = "Too many people sign in at this moment. Try again in a few seconds.";
    Error::new(Code::ServiceUnavailable, message).retry_after(RETRY_SECONDS)
}

fn compute(params: &Params, password: &str, random: &dyn Random) -> Result<PasswordHash> {
    let mut salt = [0; 16];
    random.fill(&mut salt);
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
    let hash = argon2
        .hash_password_with_salt(password.as_bytes(), &salt)
        .map_err(|error| Error::internal(format!("hashing a password failed: {error}")))?;
    Ok(PasswordHash(hash.to_string()))
}

fn cost(params: &Params) -> (u32, u32, u32) {
    (params.m_cost(), params.t_cost(), params.p_cost())
}

/// Common passwords of ten bytes or more, in lower case. Shorter ones are refused for their length.
static COMMON: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("common_passwords.txt").lines().filter(|line| !line.is_empty()).collect());

/// # Errors
/// `validation_error` for a password that is too short, too long, common, or the e-mail address.
pub(crate) fn check_new(password: &str, email: &Email) -> Result<()> {
    let refuse = |rule: &str| Err(Error::invalid("password", rule));
    if !(LEAST_BYTES..=MOST_BYTES).contains(&password.len()) {
        return refuse("must have 10 to 256 bytes");
    }
    let lower = password.to_lowercase();
    if lower == email.key() || lower == email.local_part() {
        return refuse("must not be your e-mail address");
    }
    let is_one_letter = lower.chars().all(|letter| lower.starts_with(letter));
    if is_one_letter || COMMON.contains(lower.as_str()) {
        return refuse("is one that many people use; choose another");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SystemRandom;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    fn email() -> Email {
        Email::parse("Marta.Ruiz@example.com").unwrap()
    }

    /// Passwords whose hashes cost almost nothing.
    fn cheap(m_cost: u32, cores: usize) -> Passwords {
        let params = Params::new(m_cost, 1, 1, None).unwrap();
        Passwords::with(params, cores, Arc::new(SystemRandom::default()))
    }

    fn refusal(password: &str) -> String {
        check_new(password, &email()).unwrap_err().message().to_owned()
    }

    #[test]
    fn rules_of_new_passwords() {
        for short in ["", "123456789", "éééé"] {
            assert_eq!(refusal(short), "`password` must have 10 to 256 bytes");
        }
        assert_eq!(refusal(&"x1".repeat(129)), "`password` must have 10 to 256 bytes");
        assert_eq!(refusal(&"x".repeat(1 << 20)), "`password` must have 10 to 256 bytes");
        for own in ["marta.ruiz@EXAMPLE.com", "Marta.Ruiz"] {
            assert_eq!(refusal(own), "`password` must not be your e-mail address");
        }
        for common in ["Password123", "1234567890", "QWERTYUIOP", "aaaaaaaaaaaa"] {
            assert_eq!(refusal(common), "`password` is one that many people use; choose another");
        }
        for good in ["ten bytes!", "correct horse battery", "éàéàé", &"x1".repeat(128)] {
            assert!(check_new(good, &email()).is_ok(), "{good}");
        }
    }

    #[test]
    fn the_list_of_common_passwords_is_in_the_form_that_is_compared() {
        assert!(COMMON.len() > 100);
        for word in COMMON.iter() {
            assert!(
                word.len() >= LEAST_BYTES && **word == word.to_lowercase() && **word == *word.trim(),
                "{word}"
            );
        }
    }

    #[tokio::test]
    async fn hashes_have_the_parameters_of_today() {
        let passwords = Passwords::new(Arc::new(SystemRandom::default()));
        let hash = passwords.hash("correct horse battery".into(), &email()).await.unwrap();
        assert!(hash.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.as_str());
        assert_eq!(format!("{hash:?}"), "PasswordHash(…)");
        let verdict = passwords.verify(Some(hash.0.clone()), "correct horse battery".into()).await.unwrap();
        assert_eq!(verdict, Verdict { matches: true, is_outdated: false });
        assert!(!passwords.verify(Some(hash.0), "correct horse batterz".into()).await.unwrap().matches);
    }

    #[tokio::test]
    async fn hashes_with_other_parameters_match_and_are_outdated() {
        let old = cheap(8, 1).hash("correct horse battery".into(), &email()).await.unwrap();
        let verdict = cheap(16, 1).verify(Some(old.0), "correct horse battery".into()).await.unwrap();
        assert_eq!(verdict, Verdict { matches: true, is_outdated: true });
    }

    #[tokio::test]
    async fn no_password_matches_where_there_is_no_hash() {
        let passwords = cheap(8, 1);
        assert!(!passwords.verify(None, "correct horse battery".into()).await.unwrap().matches);
        assert!(passwords.verify(Some("plain".into()), "plain".into()).await.is_err());
    }

    #[tokio::test]
    async fn a_password_of_a_mebibyte_is_refused_without_work() {
        let passwords = cheap(8, 1);
        // All permits are taken, so any work would wait or be refused.
        let _taken = passwords.places.clone().try_acquire_many_owned(1 + 64).unwrap();
        let long = "x".repeat(1 << 20);
        assert!(!passwords.verify(None, long.clone()).await.unwrap().matches);
        assert_eq!(passwords.hash(long, &email()).await.unwrap_err().code(), Code::ValidationError);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_permit_belongs_to_the_computation_and_not_to_the_request() {
        let passwords = Arc::new(cheap(8, 1));
        let (go, wait) = mpsc::channel::<()>();
        let running = Arc::new(AtomicUsize::new(0));
        let (service, seen) = (passwords.clone(), running.clone());
        let request = tokio::spawn(async move {
            service
                .compute(move || {
                    seen.fetch_add(1, Ordering::SeqCst);
                    wait.recv().unwrap();
                    Ok(())
                })
                .await
        });
        while running.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        // The client hangs up. Its computation goes on, and nobody else may use its core.
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        assert_eq!(passwords.cores.available_permits(), 0);
        go.send(()).unwrap();
        passwords.verify(None, "anything else".into()).await.unwrap();
        assert_eq!(passwords.places.available_permits(), 65);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_of_two_hundred_at_once_computes_and_sixty_four_wait() {
        let passwords = Arc::new(cheap(8, 1));
        let core = passwords.cores.clone().acquire_owned().await.unwrap();
        let requests: Vec<_> = (0..200)
            .map(|_| {
                let passwords = passwords.clone();
                tokio::spawn(async move { passwords.verify(None, "correct horse battery".into()).await })
            })
            .collect();
        while passwords.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let refused = passwords.verify(None, "correct horse battery".into()).await.unwrap_err();
        assert_eq!((refused.code(), refused.retry_after_seconds()), (Code::ServiceUnavailable, Some(2)));
        // The others find no place while the core is taken.
        while requests.iter().filter(|request| request.is_finished()).count() < 200 - 65 {
            tokio::task::yield_now().await;
        }
        drop(core);
        let mut answered = 0;
        for request in requests {
            answered += usize::from(request.await.unwrap().is_ok());
        }
        assert_eq!(answered, 65);
    }
}
