//! The rows for the queries, with eight fields of different kinds. They repeat for the same seed.

use crate::measure::items::{CATEGORIES, WORDS};
use chrono::{Days, NaiveDate};
use model::{Random, SeededRandom};
use std::cmp::Ordering;

const DEPARTMENTS: [&str; 6] = ["fashion", "home", "leisure", "media", "outdoor", "tech"];

/// All texts are in lower case, because we sort texts without regard to case and PocketBase with it.
const CITIES: [&str; 50] = [
    "athens",
    "atlanta",
    "austin",
    "bangkok",
    "barcelona",
    "berlin",
    "bogota",
    "boston",
    "brussels",
    "budapest",
    "cairo",
    "chicago",
    "copenhagen",
    "dallas",
    "delhi",
    "denver",
    "dublin",
    "florence",
    "geneva",
    "hamburg",
    "helsinki",
    "houston",
    "istanbul",
    "jakarta",
    "kyoto",
    "lagos",
    "lima",
    "lisbon",
    "london",
    "lyon",
    "madrid",
    "manila",
    "melbourne",
    "miami",
    "milan",
    "montreal",
    "mumbai",
    "munich",
    "nairobi",
    "naples",
    "osaka",
    "oslo",
    "paris",
    "porto",
    "prague",
    "quito",
    "rome",
    "seattle",
    "seoul",
    "tokyo",
];

/// The number of days over which the dates of the rows grow.
const DAYS: u64 = 2_000;
/// The most days by which a date deviates from that growth.
const SCATTER: u64 = 15;

/// A generator of random numbers from a seed.
pub struct Draw(SeededRandom);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    /// Returns a number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound.max(1)
    }

    /// Returns a number from 0 to 1.
    pub fn part(&self) -> f64 {
        self.below(1 << 53) as f64 / (1_u64 << 53) as f64
    }

    /// One of several.
    pub fn one_of<'a, T>(&self, several: &'a [T]) -> Option<&'a T> {
        several.get(usize::try_from(self.below(several.len() as u64)).ok()?)
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            let place = usize::try_from(self.below(end as u64 + 1)).unwrap_or(end);
            list.swap(place, end);
        }
    }
}

/// A field for conditions and orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// A select with 20 choices, skewed.
    Category,
    /// A boolean, four in five true.
    Active,
    /// A select that correlates with the category.
    Department,
    /// An integer, uniformly distributed.
    Score,
    /// A number, most of them small.
    Price,
    /// A date that grows with the row's number.
    Day,
    /// A short text, unique.
    Name,
    /// One of 50 texts, skewed.
    City,
    /// The time of creation.
    Created,
    /// The time of the last change.
    Updated,
}

impl Field {
    /// The fields with values of their own.
    pub const OWN: [Self; 8] = [
        Self::Category,
        Self::Active,
        Self::Department,
        Self::Score,
        Self::Price,
        Self::Day,
        Self::Name,
        Self::City,
    ];

    /// All fields.
    pub const ALL: [Self; 10] = [
        Self::Category,
        Self::Active,
        Self::Department,
        Self::Score,
        Self::Price,
        Self::Day,
        Self::Name,
        Self::City,
        Self::Created,
        Self::Updated,
    ];
}

/// A value. Both sides sort values in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell<'a> {
    /// A number, a price in cents, 0 or 1 for a boolean, or the position in the order of creations or changes.
    Number(u32),
    /// A text, a choice or a date as `2020-01-31`.
    Text(&'a str),
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    category: &'static str,
    active: bool,
    department: &'static str,
    score: u32,
    price: u32,
    day: u32,
    name: Box<str>,
    city: &'static str,
    updated: u32,
}

/// All rows, in the order of creation.
pub struct Table {
    rows: Vec<Row>,
    days: Vec<String>,
    /// The rows that are changed after all are created, in this order. They are a twentieth of all rows.
    pub changed: Vec<u32>,
}

/// The number of rows that one request changes.
pub const CHANGED_AT_ONCE: usize = 1_000;

impl Table {
    /// Draws `count` rows.
    pub fn draw(seed: u64, count: u32) -> Self {
        let draw = Draw::new(seed);
        let (categories, words) = (Skewed::new(&draw, &CATEGORIES), Skewed::new(&draw, &WORDS));
        let cities = Skewed::new(&draw, &CITIES);
        let mut rows: Vec<Row> =
            (0..count).map(|number| row(&draw, &categories, &words, &cities, number, count)).collect();
        let mut changed: Vec<u32> = (0..count).collect();
        draw.shuffle(&mut changed);
        changed.truncate(rows.len() / 20);
        // Rows that one request changes can have the same time, and are then sorted by id.
        changed.chunks_mut(CHANGED_AT_ONCE).for_each(<[u32]>::sort_unstable);
        for (number, place) in (count..).zip(&changed) {
            if let Some(row) = rows.get_mut(*place as usize) {
                row.updated = number;
            }
        }
        let first = NaiveDate::from_ymd_opt(2020, 1, 1).unwrap_or_default();
        let day = |days| first.checked_add_days(Days::new(days)).unwrap_or(first).to_string();
        Self { rows, days: (0..DAYS + SCATTER).map(day).collect(), changed }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> u32 {
        u32::try_from(self.rows.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether a row is changed after all are created.
    pub fn is_changed(&self, place: u32) -> bool {
        self.cell(place, Field::Updated) != Cell::Number(place)
    }

    /// Returns the value of a row.
    pub fn cell(&self, place: u32, field: Field) -> Cell<'_> {
        let Some(row) = self.rows.get(place as usize) else { return Cell::Number(0) };
        match field {
            Field::Category => Cell::Text(row.category),
            Field::Active => Cell::Number(u32::from(row.active)),
            Field::Department => Cell::Text(row.department),
            Field::Score => Cell::Number(row.score),
            Field::Price => Cell::Number(row.price),
            Field::Day => Cell::Text(self.days.get(row.day as usize).map_or("", String::as_str)),
            Field::Name => Cell::Text(&row.name),
            Field::City => Cell::Text(row.city),
            Field::Created => Cell::Number(place),
            Field::Updated => Cell::Number(row.updated),
        }
    }

    /// Returns the index of the row with this name.
    pub fn place_of(name: &str) -> Option<u32> {
        name.rsplit(' ').next()?.parse().ok()
    }

    /// Compares two rows by a field.
    pub fn compare(&self, field: Field, one: u32, other: u32) -> Ordering {
        self.cell(one, field).cmp(&self.cell(other, field))
    }
}

fn row(draw: &Draw, categories: &Skewed, words: &Skewed, cities: &Skewed, number: u32, count: u32) -> Row {
    let small = |bound| u32::try_from(draw.below(bound)).unwrap_or_default();
    let category = categories.one(draw);
    let usual = CATEGORIES.iter().position(|known| *known == category).unwrap_or_default();
    let department = if draw.below(10) > 0 {
        DEPARTMENTS.get(usual % DEPARTMENTS.len())
    } else {
        draw.one_of(&DEPARTMENTS)
    };
    let grown = u64::from(number) * DAYS / u64::from(count.max(1));
    Row {
        category,
        active: draw.below(100) < 79,
        department: department.copied().unwrap_or_default(),
        score: small(1_000_000),
        // The product of three random numbers is usually small.
        price: (small(100) + 1) * (small(100) + 1) * (small(100) + 1),
        day: u32::try_from(grown + draw.below(SCATTER)).unwrap_or_default(),
        name: format!("{} {} {number}", words.one(draw), words.one(draw)).into(),
        city: cities.one(draw),
        updated: number,
    }
}

/// Words that are distributed by Zipf's law: the second occurs half as often as the first, the third a third as
/// often.
struct Skewed {
    words: Vec<&'static str>,
    ends: Vec<f64>,
}

impl Skewed {
    fn new(draw: &Draw, words: &[&'static str]) -> Self {
        let mut words = words.to_vec();
        draw.shuffle(&mut words);
        let mut end = 0.0;
        let ends = (1..=words.len()).map(|rank| {
            end += 1.0 / rank as f64;
            end
        });
        Self { ends: ends.collect(), words }
    }

    fn one(&self, draw: &Draw) -> &'static str {
        let at = draw.part() * self.ends.last().copied().unwrap_or_default();
        let place = self.ends.partition_point(|end| *end <= at);
        self.words.get(place).or(self.words.last()).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_seed_gives_the_same_rows() {
        let (one, same, other) = (Table::draw(7, 2_000), Table::draw(7, 2_000), Table::draw(8, 2_000));
        assert_eq!((&one.rows, &one.changed), (&same.rows, &same.changed));
        assert_ne!(one.rows, other.rows);
    }

    #[test]
    fn values_are_spread_as_they_should_be() {
        let table = Table::draw(1, 20_000);
        let share = |holds: &dyn Fn(u32) -> bool| {
            (0..table.len()).filter(|place| holds(*place)).count() as f64 / f64::from(table.len())
        };
        let active = share(&|place| table.cell(place, Field::Active) == Cell::Number(1));
        assert!((0.77..0.81).contains(&active), "{active}");
        let cheap = share(&|place| table.cell(place, Field::Price) < Cell::Number(50_000));
        assert!(cheap > 0.3 && cheap < 0.6, "{cheap}");
        for (field, values) in
            [(Field::Category, 20), (Field::City, 50), (Field::Department, 6), (Field::Name, 20_000)]
        {
            let different: BTreeSet<Cell<'_>> =
                (0..table.len()).map(|place| table.cell(place, field)).collect();
            assert_eq!(different.len(), values, "{field:?}");
        }
        let places: Vec<u32> = (0..table.len()).collect();
        let updated = |place: &u32| table.cell(*place, Field::Updated);
        assert_eq!(places.iter().filter(|place| updated(place) >= Cell::Number(20_000)).count(), 1_000);
        for place in [0, 77, 19_999] {
            let Cell::Text(name) = table.cell(place, Field::Name) else { panic!("names are texts") };
            assert_eq!(Table::place_of(name), Some(place));
        }
    }
}
