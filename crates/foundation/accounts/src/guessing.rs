//! How fast passwords can be tried: a counter per account and per browser, in rows that all replicas share.
//!
//! An attempt counts as a failure before the password is hashed, and the count ends when the password is right. So of
//! any number of attempts at once, on any replica, none is free. A counter makes people wait for at most a minute and
//! never locks anybody out. Since anybody can make an account wait, a browser that has signed in before has a counter of
//! its own.

use crate::Email;
use crate::schema::sign_in_failures;
use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diesel::prelude::*;
use diesel::upsert::excluded;
use model::{AccountId, Code, Error, Random, Result, SessionId, Timestamp};
use store::{Tx, each};

/// The failures after which nobody has to wait.
const FREE: i64 = 5;
/// The longest wait, in seconds.
const LONGEST_WAIT: i64 = 60;
/// After this time without an attempt the count starts again, in seconds.
const FORGOTTEN_SECONDS: i64 = 24 * 3_600;
/// The rows that one transaction of the purge job deletes.
const PIECE: i64 = 500;
/// The place for which device cookies are signed.
const DEVICE: &str = "sign-in device";
/// The place for which the names of counters are signed, so that the table tells nobody who tried to sign in.
const COUNTER: &str = "sign-in counter";

/// Returns for how many seconds the next attempt has to wait after this number of failures.
fn wait_seconds(failures: i64) -> i64 {
    match failures.saturating_sub(FREE) {
        ..0 => 0,
        more @ 0..6 => 1 << more,
        _ => LONGEST_WAIT,
    }
}

/// A counter of failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counter(Vec<u8>);

impl Counter {
    /// Returns the counter of an address, whether it has an account or not.
    pub(crate) fn of_email(seal: &Seal, email: &Email) -> Self {
        Self(seal.sign(COUNTER, &format!("email {}", email.key())))
    }

    /// Returns the counter of a browser in which the account has signed in before.
    pub(crate) fn of_device(seal: &Seal, device: &Device) -> Self {
        Self(seal.sign(COUNTER, &format!("device {} {}", device.account, device.id)))
    }

    /// Returns the counter of a session, for the password that it is asked for again.
    pub(crate) fn of_session(seal: &Seal, session: &SessionId) -> Self {
        Self(seal.sign(COUNTER, &format!("session {session}")))
    }
}

/// A browser in which an account has signed in before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    account: AccountId,
    id: String,
}

impl Device {
    /// Returns a new browser of an account.
    pub(crate) fn new(account: &AccountId, random: &dyn Random) -> Self {
        let mut bytes = [0; 16];
        random.fill(&mut bytes);
        Self { account: account.clone(), id: URL_SAFE_NO_PAD.encode(bytes) }
    }

    /// Returns the value of the cookie.
    pub(crate) fn cookie(&self, seal: &Seal) -> String {
        format!("{}.{}", self.id, URL_SAFE_NO_PAD.encode(seal.sign(DEVICE, &self.signed())))
    }

    /// Returns the browser of a cookie. Returns `None` for a cookie that was not signed for this account.
    pub(crate) fn parse(seal: &Seal, account: &AccountId, cookie: &str) -> Option<Self> {
        let (id, signature) = cookie.split_once('.').filter(|_| cookie.len() <= 200)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let device = Self { account: account.clone(), id: id.to_owned() };
        seal.is_signed(DEVICE, &device.signed(), &signature).then_some(device)
    }

    fn signed(&self) -> String {
        format!("{} {}", self.account, self.id)
    }
}

/// Counts an attempt as a failure, unless it comes too early.
///
/// # Errors
/// `rate_limited`, with the time to wait.
pub(crate) fn begin(tx: &mut Tx, counter: &Counter) -> Result<()> {
    let now = tx.now();
    // On PostgreSQL two first attempts at once would both find no row and be counted as one.
    tx.lock(&format!("sign-in {}", model::hex(&counter.0)))?;
    let row: Option<(i64, Timestamp, Timestamp)> = sign_in_failures::table
        .find(&counter.0)
        .select((sign_in_failures::failures, sign_in_failures::last_at, sign_in_failures::next_allowed_at))
        .first(tx.connection())
        .optional()?;
    let remembered = row.filter(|(_, last_at, _)| now < last_at.plus_seconds(FORGOTTEN_SECONDS));
    let (failures, next_allowed) = remembered.map_or((0, now), |(failures, _, next)| (failures, next));
    if now < next_allowed {
        let left = (next_allowed.millis() - now.millis() + 999) / 1_000;
        return Err(wait(left));
    }
    write(tx, counter, failures.saturating_add(1), now)
}

/// Takes an attempt back that [`begin`] counted, because the password was not compared.
pub(crate) fn take_back(tx: &mut Tx, counter: &Counter) -> Result<()> {
    let now = tx.now();
    diesel::update(sign_in_failures::table.find(&counter.0).filter(sign_in_failures::failures.gt(0)))
        .set((
            sign_in_failures::failures.eq(sign_in_failures::failures - 1),
            sign_in_failures::next_allowed_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Ends the count after a password that was right.
pub(crate) fn succeed(tx: &mut Tx, counter: &Counter) -> Result<()> {
    diesel::delete(sign_in_failures::table.find(&counter.0)).execute(tx.connection())?;
    Ok(())
}

fn write(tx: &mut Tx, counter: &Counter, failures: i64, now: Timestamp) -> Result<()> {
    let row = (
        sign_in_failures::counter.eq(&counter.0),
        sign_in_failures::failures.eq(failures),
        sign_in_failures::last_at.eq(now),
        sign_in_failures::next_allowed_at.eq(now.plus_seconds(wait_seconds(failures))),
    );
    each!(tx.connection(), |connection| diesel::insert_into(sign_in_failures::table)
        .values(row)
        .on_conflict(sign_in_failures::counter)
        .do_update()
        .set((
            sign_in_failures::failures.eq(excluded(sign_in_failures::failures)),
            sign_in_failures::last_at.eq(excluded(sign_in_failures::last_at)),
            sign_in_failures::next_allowed_at.eq(excluded(sign_in_failures::next_allowed_at)),
        ))
        .execute(connection))?;
    Ok(())
}

fn wait(seconds: i64) -> Error {
    let message = "Too many attempts with a wrong password. Wait a moment and try again.";
    Error::new(Code::RateLimited, message).retry_after(seconds)
}

/// Deletes counters without an attempt for a day. Returns their number, which is 0 when none is left.
pub(crate) fn purge(tx: &mut Tx) -> Result<usize> {
    let before = tx.now().plus_seconds(-FORGOTTEN_SECONDS);
    let old: Vec<Vec<u8>> = sign_in_failures::table
        .filter(sign_in_failures::last_at.le(before))
        .order(sign_in_failures::last_at.asc())
        .limit(PIECE)
        .select(sign_in_failures::counter)
        .load(tx.connection())?;
    let rows = sign_in_failures::table.filter(sign_in_failures::counter.eq_any(old));
    // An attempt may have come since they were read.
    Ok(diesel::delete(rows.filter(sign_in_failures::last_at.le(before))).execute(tx.connection())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SeededRandom;
    use proptest::prelude::*;

    fn seal(byte: u8) -> Seal {
        Seal::new(&[byte; 32]).unwrap()
    }

    fn account(seed: u64) -> AccountId {
        AccountId::new(Timestamp::from_millis(0), &SeededRandom::new(seed))
    }

    #[test]
    fn five_attempts_are_free_and_the_wait_doubles_up_to_a_minute() {
        let waits: Vec<i64> = (0..14).map(wait_seconds).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(wait_seconds(i64::MAX), 60);
    }

    #[test]
    fn a_device_is_that_of_its_account_under_the_key_of_the_service() {
        let device = Device::new(&account(1), &SeededRandom::new(9));
        let cookie = device.cookie(&seal(1));
        assert_eq!(Device::parse(&seal(1), &account(1), &cookie), Some(device));
        assert_eq!(Device::parse(&seal(1), &account(2), &cookie), None);
        assert_eq!(Device::parse(&seal(2), &account(1), &cookie), None);
    }

    #[test]
    fn the_counters_of_an_address_a_device_and_a_session_differ() {
        let email = |text: &str| Counter::of_email(&seal(1), &Email::parse(text).unwrap());
        assert_eq!(email("a@example.com"), email("A@EXAMPLE.com"));
        let device = |seed| Counter::of_device(&seal(1), &Device::new(&account(1), &SeededRandom::new(seed)));
        let session = SessionId::new(Timestamp::from_millis(0), &SeededRandom::new(1));
        let all = [
            email("a@example.com"),
            email("b@example.com"),
            device(1),
            device(2),
            Counter::of_session(&seal(1), &session),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(all.iter().skip(place + 1).all(|other| one != other));
        }
    }

    proptest! {
        #[test]
        fn waits_never_shrink_and_never_exceed_a_minute(failures in 0_i64..1_000_000) {
            prop_assert!(wait_seconds(failures) <= wait_seconds(failures + 1));
            prop_assert!((0..=60).contains(&wait_seconds(failures)));
        }

        #[test]
        fn no_other_cookie_is_a_device(cookie in "\\PC{0,80}", bit in 0_usize..300) {
            prop_assert_eq!(Device::parse(&seal(1), &account(1), &cookie), None);
            let mut bytes = Device::new(&account(1), &SeededRandom::new(9)).cookie(&seal(1)).into_bytes();
            let place = bit % bytes.len();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            prop_assert_eq!(Device::parse(&seal(1), &account(1), &String::from_utf8(bytes).unwrap()), None);
        }
    }
}
