//! The demo's collection: 200 products of a small shop, always the same.

use ::collections::collections::views::{self, NewView};
use ::collections::collections::{self, NewCollection};
use ::collections::items::ITEMS;
use fields::value::Mode;
use model::{CollectionId, Error, Result, WorkspaceId};
use records::Author;
use records::rows::{Draft, Missing, Writer, merge};
use records::shape::{self, Shapes};
use serde_json::{Value, json};
use store::Tx;

/// What the collection is called.
pub(super) const NAME: &str = "Products";
/// How many there are.
const PRODUCTS: usize = 200;

/// What is sold, in which category, and what one costs, in cents.
const KINDS: [(&str, &str, i64); 20] = [
    ("Building Blocks", "toys", 2490),
    ("Wooden Train", "toys", 3990),
    ("Puzzle", "toys", 1490),
    ("Board Game", "toys", 2990),
    ("Teddy Bear", "toys", 1990),
    ("Desk Lamp", "home", 3490),
    ("Wool Blanket", "home", 5990),
    ("Coffee Grinder", "kitchen", 4490),
    ("Cast Iron Pan", "kitchen", 3890),
    ("Tea Pot", "kitchen", 2790),
    ("Chef's Knife", "kitchen", 6490),
    ("Rain Jacket", "clothing", 8990),
    ("Linen Shirt", "clothing", 4990),
    ("Running Shoes", "sports", 10990),
    ("Yoga Mat", "sports", 2990),
    ("Water Bottle", "sports", 1890),
    ("Trail Backpack", "sports", 7990),
    ("Garden Shears", "garden", 2290),
    ("Watering Can", "garden", 1790),
    ("Herb Planter", "garden", 2190),
];

/// Lines that each kind comes in: what is put before its name, and what it adds to the price in percent.
const LINES: [(&str, i64); 10] = [
    ("Classic", 0),
    ("Compact", -10),
    ("Nordic", 15),
    ("Everyday", -20),
    ("Artisan", 60),
    ("Junior", -30),
    ("Studio", 25),
    ("Heritage", 45),
    ("Ocean Blue", 5),
    ("Limited", 90),
];

const TAGS: [&str; 5] = ["bestseller", "new", "gift", "sale", "eco"];

/// Makes the collection with its items and a view.
pub(super) fn make(tx: &mut Tx, workspace: WorkspaceId) -> Result<CollectionId> {
    let author = Author { emits: false, ..Author::system(workspace, "demo") };
    let choices = |labels: &[&str]| json!({ "choices": labels.iter().map(|label| json!({ "label": label })).collect::<Vec<_>>() });
    let new: NewCollection = serde_json::from_value(json!({
        "name": NAME, "icon": "📦", "color": "#3366cc", "description": "What the demo shop sells.",
        "fields": [
            { "label": "Name", "type": "text", "required": true },
            { "label": "SKU", "type": "text", "unique": true, "options": { "pattern": "[A-Z]{3}-[0-9]{4}" } },
            { "label": "Category", "type": "select",
              "options": choices(&["Toys", "Home", "Kitchen", "Clothing", "Sports", "Garden"]) },
            { "label": "Price", "type": "currency", "options": { "currency": "EUR", "precision": 2, "min": 0 } },
            { "label": "Stock", "type": "integer", "default": 0, "options": { "min": 0 } },
            { "label": "Rating", "type": "rating" },
            { "label": "Tags", "type": "multi_select", "options": choices(&TAGS) },
            { "label": "Released", "type": "date" },
        ],
    })).map_err(Error::internal)?;
    // Shapes of its own: nobody else may see the one of a transaction that could still fail.
    let shapes = Shapes::new([&ITEMS]);
    let collection = collections::create(tx, &shapes, &author, new)?.id;
    insert_items(tx, &shapes, &author, collection)?;
    let view: NewView = serde_json::from_value(json!({
        "name": "Expensive toys", "sort": ["-price", "name"], "visible_fields": ["name", "price", "stock"],
        "filter_tree": { "and": [
            { "field": "category", "op": "eq", "value": "toys" }, { "field": "price", "op": "gt", "value": 30 },
        ] },
    })).map_err(Error::internal)?;
    views::create(tx, &shapes, &author, collection, view)?;
    Ok(collection)
}

fn insert_items(tx: &mut Tx, shapes: &Shapes, author: &Author, collection: CollectionId) -> Result<()> {
    let shape = shape::for_write(tx, shapes, author.workspace, collection)?;
    let writer = Writer { shapes, shape: &shape, author };
    for number in 0..PRODUCTS {
        let Value::Object(values) = product(number) else { continue };
        let data = merge(&shape, None, &values, Missing::Default, Mode::Strict, "")?;
        writer.insert(tx, Draft { data, ..Draft::default() })?;
    }
    Ok(())
}

/// The product of a number. Neighbours differ in kind and line, so that the newest ones are not all alike.
fn product(number: usize) -> Value {
    let (kind, category, base) = KINDS.get(number % KINDS.len()).copied().unwrap_or_default();
    let (line, extra) = LINES.get((number / KINDS.len() + number) % LINES.len()).copied().unwrap_or_default();
    // Any fixed mixing will do: it only has to look uneven.
    let mixed = (number * 7919 + 104_729) % 1000;
    let cents = base * (100 + extra) / 100 / 10 * 10 - 5;
    let first: String = category.chars().take(3).flat_map(char::to_uppercase).collect();
    let tags: Vec<&str> = TAGS
        .iter()
        .enumerate()
        .filter(|(place, _)| mixed.is_multiple_of(place + 3))
        .map(|(_, tag)| *tag)
        .collect();
    let stock = if mixed.is_multiple_of(11) { 0 } else { mixed % 140 };
    let (year, month, day) = (2022 + number % 4, 1 + mixed % 12, 1 + mixed % 28);
    #[expect(clippy::cast_precision_loss, reason = "prices are small")]
    let price = cents as f64 / 100.0;
    json!({
        "name": format!("{line} {kind}"), "sku": format!("{first}-{:04}", number + 1), "category": category,
        "price": price, "stock": stock, "rating": 2 + mixed % 4, "tags": tags,
        "released": format!("{year}-{month:02}-{day:02}"),
    })
}

/// The demo's collection, where it is still there.
pub(super) fn find(read: &mut store::Read, workspace: WorkspaceId) -> Result<Option<CollectionId>> {
    use diesel::prelude::*;
    use records::schema::collections as table;
    let found = table::table
        .filter(table::workspace_id.eq(workspace))
        .filter(table::slug.eq("products"))
        .filter(table::trashed_at.is_null())
        .select(table::id)
        .get_result(read.connection());
    found.optional().map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn products_are_many_and_different() {
        let all: Vec<Value> = (0..PRODUCTS).map(product).collect();
        let names: BTreeSet<&str> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
        let skus: BTreeSet<&str> = all.iter().map(|one| one["sku"].as_str().unwrap()).collect();
        assert_eq!((names.len(), skus.len()), (PRODUCTS, PRODUCTS));
        let dear_toys =
            all.iter().filter(|one| one["category"] == "toys" && one["price"].as_f64().unwrap() > 30.0);
        assert!(dear_toys.count() > 5);
        assert_eq!(all, (0..PRODUCTS).map(product).collect::<Vec<_>>());
    }
}
