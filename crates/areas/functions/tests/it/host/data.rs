//! `ctx.items` and `ctx.kv`.

use super::bed::Bed;
use model::FunctionId;
use sandbox::Host;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn items_are_read_with_the_scopes_of_the_call(kind: Kind) {
    let bed = Bed::new(kind).await;
    let fields = json!([{ "label": "Zone", "type": "text" }, { "label": "Cents", "type": "number" }]);
    let collection = json!({ "name": "Rates", "fields": fields });
    let collection = bed.app.post("/collections", &bed.key, collection).await.expect(201)["id"].clone();
    for (zone, cents) in [("a", 490), ("b", 690), ("c", 990)] {
        let item = json!({ "data": { "zone": zone, "cents": cents } });
        bed.app.post(&format!("/collections/{collection}/items"), &bed.key, item).await.expect(201);
    }
    let host = bed.host(|_| {}).await;
    let body = "
        const page = await ctx.items.find(ctx.input, { filter: { cents: { gt: 500 } }, sort: '-cents', limit: 1 });
        const item = await ctx.items.get(ctx.input, page.data[0].id);
        return [page.has_more, page.data.length, item.data.zone];";
    assert_eq!(bed.run(&host, body, &collection).await.unwrap(), json!([true, 1, "c"]));
    let caught = "
        const names = [];
        for (const [one, id] of [[ctx.input, 999], [999, 1], ['x', 1], ['1\\0', 1]]) {
          try { await ctx.items.get(one, id) } catch (error) { names.push(`${error.name} ${error.code}`) }
        }
        try { await ctx.items.find(ctx.input, { filter: { nothing: 1 } }) } catch (error) { names.push(error.code) }
        try { await ctx.items.find(ctx.input, 'x') } catch (error) { names.push(error.name) }
        return names;";
    let found = bed.run(&host, caught, &collection).await.unwrap();
    let missing = "NotFound not_found";
    assert_eq!(found[0], missing);
    assert_eq!(found[1], missing);
    assert_eq!((&found[4], &found[5]), (&json!("validation_error"), &json!("TypeError")), "{found}");
    let caller = bed.caller(&["contacts:read"]).await;
    let host = bed.host(|settings| settings.caller = caller).await;
    let error = bed.run(&host, "return ctx.items.find(ctx.input)", &collection).await.unwrap_err();
    assert!(error.starts_with("MissingScope: "), "{error}");
}

#[testkit::both]
async fn a_function_keeps_values_of_its_own(kind: Kind) {
    let bed = Bed::new(kind).await;
    let host = bed.host(|_| {}).await;
    let body = "
        const before = await ctx.kv.get('count');
        await ctx.kv.set('count', (before ?? 0) + 1);
        await ctx.kv.set('gone', { a: [1, 'é', null] });
        const gone = await ctx.kv.get('gone');
        await ctx.kv.delete('gone');
        return [before, await ctx.kv.get('count'), gone, await ctx.kv.get('gone')];";
    let expected = |before: Value, after: i64| json!([before, after, { "a": [1, "é", null] }, null]);
    assert_eq!(bed.run(&host, body, &json!(null)).await.unwrap(), expected(Value::Null, 1));
    assert_eq!(bed.run(&host, body, &json!(null)).await.unwrap(), expected(json!(1), 2));
    // Tests, and other functions, keep their own.
    let test = bed.host(|settings| settings.livemode = false).await;
    assert_eq!(bed.run(&test, body, &json!(null)).await.unwrap(), expected(Value::Null, 1));
    let other = bed.host(|settings| settings.function = FunctionId(8)).await;
    assert_eq!(other.kv_get("count".to_owned()).await.unwrap(), Value::Null);
    for key in ["", "a\0", &"k".repeat(513)] {
        assert_eq!(host.kv_get(key.to_owned()).await.unwrap_err().name, "TypeError");
    }
    let workspace = bed.key.workspace;
    let forget = move |tx: &mut store::Tx| functions::host::forget(tx, workspace, FunctionId(7));
    bed.app.db().write(forget).await.unwrap();
    assert_eq!(host.kv_get("count".to_owned()).await.unwrap(), Value::Null);
    assert_eq!(test.kv_get("count".to_owned()).await.unwrap(), Value::Null);
}

#[testkit::both]
async fn values_that_are_written_at_once_keep_the_limit(kind: Kind) {
    let bed = Bed::new(kind).await;
    let host = bed.host(|_| {}).await;
    let large = || json!("x".repeat(20_000));
    let writes = (0..8).map(|number| host.kv_set(format!("k{number}"), large()));
    let written = futures::future::join_all(writes).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(written, 3, "each has 20,004 of 65,536 bytes");
    let error = host.kv_set("more".to_owned(), json!("x".repeat(6_000))).await.unwrap_err();
    assert_eq!((error.name.as_str(), error.code.as_deref()), ("LimitError", Some("kv_full")));
    // A value that takes the place of another needs only the difference.
    let used = futures::future::join_all((0..8).map(|number| host.kv_get(format!("k{number}")))).await;
    let place = used.into_iter().position(|value| value.unwrap() != Value::Null).unwrap();
    host.kv_set(format!("k{place}"), json!("y".repeat(25_000))).await.unwrap();
    assert!(host.kv_set("k9".to_owned(), json!("x".repeat(70_000))).await.is_err());
}
