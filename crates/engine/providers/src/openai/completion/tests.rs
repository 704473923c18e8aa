use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn completed(body: &[u8]) -> Result<Completion, Fault> {
    read(body)?.completion(|_| Usage { input_tokens: 70, output_tokens: 30, ..Usage::default() })
}

fn text_of(answer: &Value) -> Option<String> {
    completed(answer.to_string().as_bytes()).ok().map(|completion| completion.text)
}

fn says(content: Value) -> Value {
    json!({ "choices": [{ "index": 0, "message": { "content": content }, "finish_reason": "stop" }] })
}

#[test]
fn answers_are_read() {
    let body = br#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c1","type":"function",
        "function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2}}}"#;
    let completion = completed(body).unwrap();
    assert_eq!(completion.finish, Finish::ToolCalls);
    assert_eq!(completion.tool_calls[0].name, "weather");
    assert_eq!(completion.usage.unwrap().cached_tokens, 2);
    for broken in
        [&b"{}"[..], b"{\"choices\":[]}", b"<html>", b"", b"{\"choices\":[{}]}", b"{\"choices\":[5]}"]
    {
        assert!(matches!(completed(broken), Err(Fault::Final(ProviderError::Unavailable(_)))));
    }
}

#[test]
fn counts_that_are_missing_are_estimated() {
    let counted = |usage: Value| {
        let mut answer = says("hi".into());
        answer["usage"] = usage;
        completed(answer.to_string().as_bytes())
            .unwrap()
            .usage
            .map(|usage| (usage.input_tokens, usage.output_tokens))
    };
    for (usage, counts) in [
        (json!(null), None),
        (json!("many"), None),
        (json!({}), None),
        (json!({ "prompt_tokens": 0, "completion_tokens": 0 }), None),
        (json!({ "prompt_tokens": 5, "completion_tokens": null }), Some((5, 30))),
        (json!({ "completion_tokens": "3" }), Some((70, 3))),
        (json!({ "prompt_tokens": 5.0, "completion_tokens": 3 }), Some((5, 3))),
        (json!({ "prompt_tokens": 5, "completion_tokens": -3 }), Some((5, 0))),
        (json!({ "prompt_tokens": 1e300, "completion_tokens": 3 }), Some((i64::MAX, 3))),
        (json!({ "input_tokens": 5, "output_tokens": 3, "prompt_tokens_details": 7 }), Some((5, 3))),
    ] {
        assert_eq!(counted(usage.clone()), counts, "{usage}");
    }
}

#[test]
fn details_do_not_lose_an_answer() {
    for content in [
        json!("hello"),
        json!([{ "type": "thinking", "thinking": [] }, { "type": "text", "text": "hello" }]),
        json!(["hel", "lo"]),
        json!([{ "text": "hello" }, { "type": "image_url", "image_url": {} }, null]),
        json!({ "type": "text", "text": { "value": "hello" } }),
    ] {
        assert_eq!(text_of(&says(content.clone())).as_deref(), Some("hello"), "{content}");
    }
    for (path, value) in [
        ("/choices/0/index", json!(null)),
        ("/choices/0/index", json!(1)),
        ("/choices/0/finish_reason", json!(null)),
        ("/choices/0/finish_reason", json!({ "a": 1 })),
    ] {
        let mut answer = says("hello".into());
        *answer.pointer_mut(path).unwrap() = value;
        answer["choices"][0]["message"]["tool_calls"] = Value::Null;
        answer["choices"][0]["message"]["reasoning_content"] = "hm".into();
        assert_eq!(text_of(&answer).as_deref(), Some("hello"), "{answer}");
    }
    let half = says("hello".into()).to_string().replace("hello", "hello \\ud83d");
    assert_eq!(completed(half.as_bytes()).unwrap().text, "hello \u{fffd}");
    let mut bytes = says("hello".into()).to_string().into_bytes();
    bytes.splice(0..0, *b"\xef\xbb\xbf");
    assert_eq!(completed(&bytes).unwrap().text, "hello");
}

#[test]
fn a_call_that_was_cut_gets_no_arguments() {
    let call = |finish: Value| {
        let mut answer = says(Value::Null);
        answer["choices"][0]["message"]["tool_calls"] =
            json!([{ "function": { "name": "t", "arguments": "" } }]);
        answer["choices"][0]["finish_reason"] = finish;
        let completion = completed(answer.to_string().as_bytes()).unwrap();
        (completion.finish, completion.tool_calls[0].arguments.clone())
    };
    assert_eq!(call("tool_calls".into()), (Finish::ToolCalls, "{}".into()));
    assert_eq!(call(Value::Null), (Finish::ToolCalls, "{}".into()));
    assert_eq!(call("length".into()), (Finish::Length, String::new()));
    assert_eq!(call("content_filter".into()), (Finish::ContentFilter, String::new()));
    assert_eq!(call("surprise".into()), (Finish::Unknown, String::new()));
}

#[test]
fn answers_that_failed_are_none() {
    let mut failed = says("half of".into());
    failed["choices"][0]["finish_reason"] = "error".into();
    let mut inner = says("".into());
    inner["choices"][0]["error"] = json!({ "code": 502 });
    for answer in [
        failed,
        inner,
        json!({ "error": { "code": 429 } }),
        json!({ "error": "busy" }),
        json!({ "error": { "code": "rate_limit" }, "choices": null }),
    ] {
        assert!(matches!(completed(answer.to_string().as_bytes()), Err(Fault::Passing(None, _))), "{answer}");
    }
    let refused = json!({ "error": { "code": 400, "message": "too long" } }).to_string();
    assert!(matches!(completed(refused.as_bytes()), Err(Fault::Final(ProviderError::Refused(_)))));
    let denied = json!({ "object": "error", "code": 401 }).to_string();
    assert!(matches!(completed(denied.as_bytes()), Err(Fault::Final(ProviderError::Unavailable(_)))));
}

fn any_value() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!("x"),
        json!([]),
        json!({}),
        json!([{}]),
        json!({ "a": null }),
        json!([[1]]),
        json!(u64::MAX),
    ])
}

/// An answer with everything that servers send, whose details may have any value.
fn with_details(details: &[(usize, Value)]) -> Value {
    const PLACES: [&str; 12] = [
        "/id",
        "/created",
        "/usage",
        "/usage/prompt_tokens",
        "/usage/completion_tokens",
        "/usage/prompt_tokens_details",
        "/usage/completion_tokens_details",
        "/choices/0/index",
        "/choices/0/logprobs",
        "/choices/0/message/role",
        "/choices/0/message/reasoning_content",
        "/choices/0/message/annotations",
    ];
    let mut answer = json!({
        "id": "c", "created": 1,
        "choices": [{
            "index": 0, "logprobs": null, "finish_reason": "stop",
            "message": { "role": "assistant", "content": "hello", "reasoning_content": null, "annotations": [] },
        }],
        "usage": {
            "prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": { "cached_tokens": 1 },
            "completion_tokens_details": { "reasoning_tokens": 1 },
        },
    });
    for (place, value) in details {
        if let Some(found) = PLACES.get(place % PLACES.len()).and_then(|place| answer.pointer_mut(place)) {
            *found = value.clone();
        }
    }
    answer
}

proptest! {
    #[test]
    fn no_detail_loses_an_answer(details in prop::collection::vec((any::<usize>(), any_value()), 0..6)) {
        let answer = with_details(&details);
        prop_assert_eq!(text_of(&answer), Some("hello".to_owned()), "{}", answer);
    }

    #[test]
    fn no_bytes_make_it_panic(place in any::<usize>(), byte in any::<u8>()) {
        let mut body = with_details(&[]).to_string().into_bytes();
        let place = place % body.len();
        body[place] = byte;
        let _ = completed(&body);
        let _ = completed(&body[..place]);
    }
}
