//! Energy in money. Money is counted in millionths of a dollar ("micros"); prices are micros per 1,000 Energy.
//!
//! Amounts are whole and never leave their range: what would is refused, and the transaction with it.

use model::{Error, Result};

/// Micros in a cent.
pub(crate) const MICROS_PER_CENT: i64 = 10_000;

/// The most that one movement may cost and one month may count, so that the one can be added to the other within 64 bits.
pub(crate) const MOST_MICROS: i64 = 4_000_000_000_000_000_000;

/// What `energy` costs at `price`, rounded up.
///
/// # Errors
/// Internal where it is more than [`MOST_MICROS`].
pub(crate) fn cost(energy: i64, price: i64) -> Result<i64> {
    let product = i128::from(energy.max(0)) * i128::from(price.max(0));
    let micros = i64::try_from((product + 999) / 1000).ok().filter(|micros| *micros <= MOST_MICROS);
    micros.ok_or_else(|| {
        Error::internal(format!("{energy} Energy at {price} micros cost more than anything may"))
    })
}

/// The sum of amounts.
///
/// # Errors
/// Internal where it leaves 64 bits.
pub(crate) fn sum(amounts: impl IntoIterator<Item = i64>) -> Result<i64> {
    let sum = amounts.into_iter().try_fold(0, i64::checked_add);
    sum.ok_or_else(|| Error::internal("a sum of amounts leaves its range"))
}

/// The most Energy that costs at most `micros` at `price`.
pub(crate) fn affordable(micros: i64, price: i64) -> i64 {
    if price <= 0 {
        return i64::MAX;
    }
    i64::try_from(i128::from(micros.max(0)) * 1000 / i128::from(price)).unwrap_or(i64::MAX)
}

/// How much of a budget is spent, in whole per cent. A budget of nothing is spent from the start.
pub(crate) fn percent(spent_micros: i64, cap_cents: i64) -> i64 {
    let cap = i128::from(cap_cents) * i128::from(MICROS_PER_CENT);
    if cap <= 0 {
        return 100;
    }
    i64::try_from(i128::from(spent_micros.max(0)) * 100 / cap).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn money_is_rounded_up_and_shares_down() {
        assert_eq!(cost(1, 1_000_000).unwrap(), 1_000);
        assert_eq!(cost(1, 1).unwrap(), 1);
        assert_eq!(cost(1_001, 1).unwrap(), 2);
        assert_eq!(cost(-5, 1_000).unwrap(), 0);
        assert_eq!(cost(1_000, MOST_MICROS).unwrap(), MOST_MICROS);
        assert!(cost(1_001, MOST_MICROS).is_err() && cost(i64::MAX, i64::MAX).is_err());
        assert_eq!(sum([i64::MAX, -1, i64::MIN]).unwrap(), -2);
        assert!(sum([i64::MAX, 1]).is_err() && sum([i64::MIN, -1]).is_err());
        assert_eq!(affordable(1_999, 1_000_000), 1);
        assert_eq!(affordable(5, 0), i64::MAX);
        assert_eq!(percent(4_999, 1), 49);
        assert_eq!(percent(10_000, 1), 100);
        assert_eq!(percent(0, 0), 100);
    }

    proptest! {
        #[test]
        fn what_is_affordable_is_the_most(micros in 0i64..1_000_000_000_000, price in 1i64..10_000_000) {
            let energy = affordable(micros, price);
            prop_assert!(cost(energy, price).unwrap() <= micros);
            prop_assert!(cost(energy + 1, price).unwrap() > micros);
        }
    }
}
