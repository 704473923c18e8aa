//! Places in the manual order: texts between any two of which there is room for another.
//!
//! An item that was never moved stands at its natural place, `i` and thirteen digits of its id. A moved one stands in
//! the cell of such a place, or in the cell `h` before all of them: the cell's name, a counter, and where two counters
//! are neighbours, a fraction. A counter begins with a digit that tells its sign and length, so that counters sort as
//! text does: putting items first or last again and again makes places longer by the logarithm only.
//!
//! All digits are lower case, because places are compared without regard to case.

use model::ItemId;

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The name of the cell before all natural places.
const FIRST: &str = "h";

/// How long the name of a natural cell is.
const NATURAL: usize = 14;

/// The head of a counter of one digit that is not negative. Heads before it are for negative counters.
const ONE_DIGIT: usize = 18;

/// The cell of a place, and the rest.
fn split(place: &str) -> (&str, &str) {
    let length = if place.starts_with(FIRST) { FIRST.len() } else { NATURAL };
    place.split_at_checked(length).unwrap_or((place, ""))
}

/// The item in whose cell a place is; 0 for the cell before all.
fn owner(cell: &str) -> i64 {
    cell.strip_prefix('i').and_then(|digits| i64::from_str_radix(digits, 32).ok()).unwrap_or_default()
}

/// The first item whose natural place is not before `place`.
pub(crate) fn first_born_from(place: &str) -> ItemId {
    let (cell, rest) = split(place);
    ItemId(if rest.is_empty() { owner(cell) } else { owner(cell) + 1 })
}

/// The last item whose natural place is not behind `place`.
pub(crate) fn last_born_to(place: &str) -> ItemId {
    ItemId(owner(split(place).0))
}

/// A place after `low` and before `high`, none of which means before, or behind, all places. It stands in the cell of
/// `low`, so whatever stands between must stand in that cell too.
pub fn between(low: Option<&str>, high: Option<&str>) -> String {
    let (cell, low) = low.map_or((FIRST, ""), split);
    let high = high.map(split).filter(|(other, _)| *other == cell).map(|(_, rest)| rest);
    format!("{cell}{}", rest_between(low, high))
}

/// Between what follows the names of cells; an empty `low` is the cell's beginning.
fn rest_between(low: &str, high: Option<&str>) -> String {
    let (low_count, low_fraction) = counter(low);
    let Some((high_count, high_fraction)) = high.map(counter) else {
        return low_count.map_or_else(|| spelled(0), |count| spelled(count.saturating_add(1)));
    };
    let Some(high_count) = high_count else { return spelled(0) };
    match low_count {
        None if high_fraction.is_empty() => spelled(high_count.saturating_sub(1)),
        None => spelled(high_count),
        Some(low_count) if low_count == high_count => {
            format!("{}{}", spelled(low_count), fraction_between(low_fraction, Some(high_fraction)))
        }
        Some(low_count) if low_count.saturating_add(1) < high_count => spelled(low_count + 1),
        Some(_) if !high_fraction.is_empty() => spelled(high_count),
        Some(low_count) => format!("{}{}", spelled(low_count), fraction_between(low_fraction, None)),
    }
}

/// The counter and the fraction of what follows a cell's name.
fn counter(rest: &str) -> (Option<i64>, &str) {
    let Some(head) = rest.bytes().next().and_then(digit) else { return (None, "") };
    let negative = head < ONE_DIGIT;
    let length = if negative { ONE_DIGIT - head } else { head - ONE_DIGIT + 1 };
    let (digits, fraction) = rest.get(1..).unwrap_or_default().split_at_checked(length).unwrap_or_default();
    let Ok(number) = i64::from_str_radix(digits, 36) else { return (None, "") };
    (Some(if negative { number - power(length) } else { number }), fraction)
}

/// A counter as text. Negative ones are their complement, so that they sort.
fn spelled(count: i64) -> String {
    let length = (1..12).find(|length| fits(count, *length)).unwrap_or(12);
    let (head, number) =
        if count < 0 { (ONE_DIGIT - length, count + power(length)) } else { (ONE_DIGIT + length - 1, count) };
    let mut digits: Vec<u8> = (0..length).scan(number, |rest, _| Some(take_digit(rest))).collect();
    digits.push(letter(head));
    digits.iter().rev().map(|byte| char::from(*byte)).collect()
}

fn fits(count: i64, length: usize) -> bool {
    if count < 0 { -count <= power(length) } else { count < power(length) }
}

fn power(length: usize) -> i64 {
    36_i64.saturating_pow(u32::try_from(length).unwrap_or(u32::MAX))
}

fn take_digit(rest: &mut i64) -> u8 {
    let digit = letter(usize::try_from(*rest % 36).unwrap_or_default());
    *rest /= 36;
    digit
}

/// A fraction between two, the first of which may be empty, which is nothing; no `high` is one. Fractions do not end
/// in 0, so that there is always room before one.
fn fraction_between(low: &str, high: Option<&str>) -> String {
    let (mut low, mut high) = (low.bytes(), high.map(str::bytes));
    let mut out = String::new();
    loop {
        let a = low.next().and_then(digit).unwrap_or(0);
        let b = match &mut high {
            Some(bytes) => bytes.next().and_then(digit).unwrap_or(0),
            None => DIGITS.len(),
        };
        if b > a + 1 {
            out.push(char::from(letter(usize::midpoint(a, b))));
            return out;
        }
        out.push(char::from(letter(a)));
        if b > a {
            high = None;
        }
    }
}

fn digit(byte: u8) -> Option<usize> {
    DIGITS.iter().position(|digit| *digit == byte)
}

fn letter(digit: usize) -> u8 {
    DIGITS.get(digit).copied().unwrap_or(b'0')
}

#[cfg(test)]
mod tests {
    use super::super::row::natural_place;
    use super::*;
    use proptest::prelude::*;

    /// What the manual order is: items by their places, which may be given anew.
    struct Order(Vec<String>);

    impl Order {
        /// Puts a new place at `index`, as the operation does: between its neighbours.
        fn put(&mut self, index: usize) -> String {
            let high = self.0.get(index).cloned();
            let low = index.checked_sub(1).map(|before| self.0[before].clone());
            let place = between(low.as_deref(), high.as_deref());
            assert!(low.as_deref().is_none_or(|low| low < place.as_str()), "{low:?} {place}");
            assert!(high.as_deref().is_none_or(|high| place.as_str() < high), "{place} {high:?}");
            self.0.insert(index, place.clone());
            place
        }
    }

    proptest! {
        #[test]
        fn there_is_always_room(ids in proptest::collection::btree_set(1i64..2_000, 1..12), moves in proptest::collection::vec(any::<proptest::sample::Index>(), 1..120)) {
            let mut order = Order(ids.into_iter().map(|id| natural_place(ItemId(id))).collect());
            for at in moves {
                let index = at.index(order.0.len() + 1);
                order.put(index);
                prop_assert!(order.0.is_sorted_by(|a, b| a < b), "{:?}", order.0);
            }
        }

        #[test]
        fn counters_sort_as_text(a in -3_000_000_000i64..3_000_000_000, b in -2_000i64..2_000) {
            prop_assert_eq!(a.cmp(&b), spelled(a).cmp(&spelled(b)));
            prop_assert!(counter(&spelled(a)) == (Some(a), ""));
        }
    }

    #[test]
    fn first_and_last_stay_short() {
        let mut order = Order(vec![natural_place(ItemId(5)), natural_place(ItemId(9))]);
        for _ in 0..20_000 {
            order.put(0);
            // Taken out again, so that the list stays short: only the neighbours count.
            order.0.truncate(1);
            order.0.push(natural_place(ItemId(9)));
        }
        assert!(order.0[0].len() < 10, "{}", order.0[0]);
        let mut last = natural_place(ItemId(9));
        for _ in 0..20_000 {
            last = between(Some(&last), None);
        }
        assert!(
            last.len() < 20 && last > natural_place(ItemId(9)) && last < natural_place(ItemId(10)),
            "{last}"
        );
    }

    #[test]
    fn new_items_come_behind_all_that_were_moved() {
        let last = between(Some(&natural_place(ItemId(40))), None);
        assert!(last < natural_place(ItemId(41)));
        let born = |place: &str| (first_born_from(place).0, last_born_to(place).0);
        assert_eq!(born(&natural_place(ItemId(40))), (40, 40));
        assert_eq!(born(&last), (41, 40));
        assert_eq!(born("hi0"), (1, 0));
    }
}
