//! Leases: an owner of work stops when it does not know any more that the work is its own.
//!
//! A lease is a row with an epoch and the time until which it lasts. Each claim increases the epoch, and every write of an owner,
//! its renewals and the release among them, asks for the epoch: a stale owner changes nothing. What it does outside the
//! database asks for nothing, so an owner must also stop in time. It knows that a lease lasts from the last renewal that
//! succeeded, and not from one that failed or is late.

use model::Result;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How often a lease is renewed while it lasts.
const RENEWALS: u32 = 3;

/// A lease that its owner renews, and the end that is known.
#[derive(Debug)]
pub struct HeldLease {
    length: Duration,
    confirmed_until: Instant,
}

impl HeldLease {
    /// A lease of this length that was taken, or renewed, now.
    pub fn new(length: Duration) -> Self {
        Self { length, confirmed_until: Instant::now() + length }
    }

    /// Renews the lease, and returns whether it is still held. `renewal` returns whether the epoch is still that of the owner. A
    /// renewal that fails leaves the lease until its known end, and one that takes longer loses it.
    pub async fn renew(&mut self, renewal: impl Future<Output = Result<bool>>) -> bool {
        // The database sets the new end after this moment.
        let asked_at = Instant::now();
        match timeout_at(self.confirmed_until, renewal).await {
            Ok(Ok(true)) => {
                self.confirmed_until = asked_at + self.length;
                true
            }
            Ok(Ok(false)) => false,
            Ok(Err(error)) => {
                tracing::warn!(?error, "a lease could not be renewed");
                Instant::now() < self.confirmed_until
            }
            Err(_) => {
                tracing::warn!("the renewal of a lease took too long");
                false
            }
        }
    }

    /// Renews the lease until it is lost. Its owner runs this beside its work, and stops the work when this returns.
    pub async fn until_lost<F: Future<Output = Result<bool>>>(mut self, mut renewal: impl FnMut() -> F) {
        loop {
            let next = Instant::now() + self.length / RENEWALS;
            sleep_until(next.min(self.confirmed_until)).await;
            if !self.renew(renewal()).await {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HeldLease;
    use model::{Error, Result};
    use std::cell::{Cell, RefCell};
    use std::time::Duration;
    use tokio::time::{Instant, sleep, timeout};

    const LENGTH: Duration = Duration::from_secs(30);

    type Answer = fn() -> Result<bool>;

    /// After how many seconds a lease is lost whose renewals answer like this, and how often it was renewed. The last answer is
    /// repeated.
    async fn lost_after(answers: &[Answer]) -> (Option<u64>, usize) {
        let (began, count) = (Instant::now(), Cell::new(0));
        let lost = HeldLease::new(LENGTH).until_lost(|| {
            let answer = answers[count.get().min(answers.len() - 1)];
            count.set(count.get() + 1);
            async move { answer() }
        });
        let lost = timeout(Duration::from_secs(600), lost).await;
        (lost.ok().map(|()| began.elapsed().as_secs()), count.get())
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_lost_when_somebody_took_it_or_nobody_knows() {
        let (yes, no): (Answer, Answer) = (|| Ok(true), || Ok(false));
        let failure: Answer = || Err(Error::internal("no database"));
        assert_eq!(lost_after(&[yes]).await.0, None);
        assert_eq!(lost_after(&[yes, no]).await, (Some(20), 2));
        // It lasts for 30 seconds from the last renewal that succeeded.
        assert_eq!(lost_after(&[failure]).await, (Some(30), 3));
        assert_eq!(lost_after(&[yes, failure]).await, (Some(40), 4));
        // The last renewal is made at the known end, and counts if the lease is still there.
        assert_eq!(lost_after(&[failure, failure, yes, no]).await, (Some(40), 4));
        assert_eq!(lost_after(&[failure, yes, failure, failure, yes]).await.0, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_hangs_does_not_prolong_the_lease() {
        let began = Instant::now();
        HeldLease::new(LENGTH)
            .until_lost(|| async {
                sleep(Duration::from_secs(3600)).await;
                Ok(true)
            })
            .await;
        assert_eq!(began.elapsed(), LENGTH);
        // One that is slow counts from the moment at which it was asked for.
        let began = Instant::now();
        let times = RefCell::new(vec![15_u64, 3600]);
        HeldLease::new(LENGTH)
            .until_lost(|| {
                let seconds = times.borrow_mut().remove(0);
                async move {
                    sleep(Duration::from_secs(seconds)).await;
                    Ok(true)
                }
            })
            .await;
        assert_eq!(began.elapsed(), Duration::from_secs(40));
    }
}
