//! Functions of lists and objects.

use super::function::{Arguments, Given, functions, whole};
use super::wanted::Wanted as W;
use crate::values::compare;
use crate::values::equality;
use crate::values::failure::Failure;
use crate::values::types::Type;
use crate::values::value::{Value, index};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::cmp::Ordering;

use Given::{Always, First};

functions! {
    "size"(W::Anything) gives Always(Type::Number),
        "The number of characters, elements or members.", "size($order.items)" => "2",
        Plain |a| Ok(match a.at(0) {
            Value::List(elements) => whole(elements.len()),
            Value::Object(members) => whole(members.len()),
            value => whole(value.to_text().chars().count()),
        });
    "first"(W::List) gives Always(Type::Any),
        "The first element.", "first($order.items).sku" => r#""A1""#,
        Plain |a| Ok(element(a, 0));
    "last"(W::List) gives Always(Type::Any),
        "The last element.", "$contact.tags | last" => r#""new""#,
        Plain |a| Ok(element(a, -1));
    "slice"(W::TextOrList, W::Number, W::Number) least 2 gives First,
        "The characters or elements from a position on, from 0, up to and without another one. Negative positions are counted from the end.", "name | slice: -4" => r#""Shoe""#,
        Plain slice;
    "sort"(W::List, W::Text) least 1 gives Always(Type::List),
        "The elements in order, or in the order of this member of theirs. Elements without a value are last.", r#"$order.items | sort: "price" | pluck: "sku""# => r#"["B2","A1"]"#,
        Plain sorted;
    "uniq"(W::List) gives Always(Type::List),
        "The elements, each once.", r#"uniq(split("a,b,a", ","))"# => r#"["a","b"]"#,
        Plain unique;
    "compact"(W::List) gives Always(Type::List),
        "The elements that are neither null nor an empty text.", r#"compact(split("a,,b", ","))"# => r#"["a","b"]"#,
        Plain |a| kept(a, |_, element| !Value::of(element).is_nothing() && element != "");
    "pluck"(W::List, W::Text) gives Always(Type::List),
        "This member of each element. `a.b` is a member of a member.", r#"$order.items | pluck: "price""# => "[12.5,3]",
        Plain pluck;
    "where"(W::List, W::Text, W::Anything) gives Always(Type::List),
        "The elements whose member equals the third argument.", r#"size(where($order.items, "sku", "B2"))"# => "1",
        Plain |a| kept(a, |a, element| has_member(a, element));
    "find"(W::List, W::Text, W::Anything) gives Always(Type::Any),
        "The first element whose member equals the third argument.", r#"find($order.items, "sku", "B2").price"# => "3",
        Plain |a| {
            let found = a.elements(0)?.iter().find(|element| has_member(a, element));
            Ok(found.map_or(Value::Missing, |element| Value::of_owned(element.clone())))
        };
    "keys"(W::Object) gives Always(Type::List),
        "The names of the members of an object.", "keys($order.items[1])" => r#"["sku","price"]"#,
        Plain |a| members(a, |name, _| name.as_str().into());
    "values"(W::Object) gives Always(Type::List),
        "The values of the members of an object.", "values($order.items[1])" => r#"["B2",3]"#,
        Plain |a| members(a, |_, value| value.clone());
}

fn element<'a>(arguments: &Arguments<'_, 'a>, place: i64) -> Value<'a> {
    arguments.at(0).clone().step(&crate::values::path::Step::Index(place))
}

/// A list of those elements that are wanted.
fn kept<'a>(
    arguments: &Arguments<'_, 'a>,
    is_wanted: impl Fn(&Arguments<'_, 'a>, &Json) -> bool,
) -> Result<Value<'a>, Failure> {
    let elements = arguments.elements(0)?.iter();
    let kept: Vec<Json> = elements.filter(|element| is_wanted(arguments, element)).cloned().collect();
    Ok(Value::List(kept.into()))
}

/// A member of an element, or a member of a member.
fn member<'j>(element: &'j Json, path: &str) -> Option<&'j Json> {
    path.split('.').try_fold(element, |value, name| value.get(name))
}

fn has_member(arguments: &Arguments<'_, '_>, element: &Json) -> bool {
    let found = Value::of_option(member(element, &arguments.text(1)));
    compare::equal(&found, arguments.at(2), arguments.environment.zone)
}

fn pluck<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let path = arguments.text(1);
    let elements = arguments.elements(0)?.iter();
    let values: Vec<Json> =
        elements.map(|element| member(element, &path).cloned().unwrap_or_default()).collect();
    Ok(Value::List(values.into()))
}

fn members<'a>(
    arguments: &Arguments<'_, 'a>,
    of: impl Fn(&String, &Json) -> Json,
) -> Result<Value<'a>, Failure> {
    let Value::Object(members) = arguments.at(0) else { return Ok(Value::Null) };
    arguments.environment.charge(members.len())?;
    Ok(Value::List(members.iter().map(|(name, value)| of(name, value)).collect::<Vec<_>>().into()))
}

fn slice<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let bounds = |length: usize| {
        let bound = |place: usize, otherwise: usize| {
            arguments.number(place).map_or(otherwise, |number| {
                let place = number.whole();
                index(place, length).map_or(0, |place| place.min(length))
            })
        };
        let (start, end) = (bound(1, 0), bound(2, length));
        (start, end.saturating_sub(start))
    };
    match arguments.at(0) {
        Value::List(elements) => {
            arguments.environment.charge(elements.len())?;
            let (start, count) = bounds(elements.len());
            let part: Vec<Json> = elements.iter().skip(start).take(count).cloned().collect();
            Ok(Value::List(part.into()))
        }
        _ => arguments.of_text(|text| {
            let (start, count) = bounds(text.chars().count());
            text.chars().skip(start).take(count).collect()
        }),
    }
}

fn sorted<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let path = arguments.has(1).then(|| arguments.text(1));
    let elements = arguments.elements(0)?;
    let zone = arguments.environment.zone;
    // A comparison looks at two elements, and sorting makes n log n of them.
    let depth = usize::try_from(elements.len().max(1).ilog2()).unwrap_or_default();
    arguments.environment.charge(elements.len().saturating_mul(depth))?;
    let mut keyed: Vec<(Value<'_>, &Json)> = elements
        .iter()
        .map(|element| {
            let key = path.as_ref().map_or(Some(element), |path| member(element, path));
            (Value::of_option(key), element)
        })
        .collect();
    // By type first: an order that changes with the neighbours is none.
    keyed.sort_by(|(left, _), (right, _)| {
        let by_value = || compare::order(left, right, zone).ok().flatten().unwrap_or(Ordering::Equal);
        rank(left).cmp(&rank(right)).then_with(by_value)
    });
    Ok(Value::List(keyed.into_iter().map(|(_, element)| element.clone()).collect::<Vec<_>>().into()))
}

/// The place of a type among others in a sorted list.
fn rank(value: &Value<'_>) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::Text(_) => 1,
        Value::Boolean(true) => 3,
        Value::Boolean(false) => 2,
        Value::Missing | Value::Null => 5,
        _ => 4,
    }
}

fn unique<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let mut unique: Vec<&Json> = Vec::new();
    for element in arguments.elements(0)? {
        // Each element is compared with those before it.
        arguments.environment.charge(unique.len() / 8)?;
        if !unique.iter().any(|other| equality::same(other, element)) {
            unique.push(element);
        }
    }
    Ok(Value::List(Cow::Owned(unique.into_iter().cloned().collect())))
}
