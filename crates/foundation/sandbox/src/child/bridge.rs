//! What a program finds besides the language: `ctx`, and the globals that need the worker.
//!
//! Everything here belongs to the program's side of the fence: it may be replaced by the program, and trusts nothing to hold.
//! What must hold is checked by the parent.

use super::channel::{Channel, Message};
use super::random::Random;
use super::report::cut;
use super::task::{Loaded, Task};
use crate::sys;
use crate::wire::{Malformed, Reader, Writer, to_parent, to_worker};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac};
use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Object, Promise, Result, TypedArray, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Makes the globals, and returns a function that calls the program's function with `ctx`.
const PRELUDE: &str = include_str!("prelude.js");
/// What only some programs use, and only then is compiled.
const URL: &str = include_str!("url.js");
const CLONE: &str = include_str!("clone.js");

/// The longest line of a log, in characters.
const LONGEST_LINE: usize = 4_000;

type Settlers<'js> = (Function<'js>, Function<'js>);

/// Host calls without an answer, and the functions that settle their promises.
#[derive(Clone, Default)]
pub struct Pending<'js>(Rc<RefCell<BTreeMap<u32, Settlers<'js>>>>);

impl<'js> Pending<'js> {
    /// Whether no answer is awaited.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Settles the promise that a reply answers.
    pub fn settle(&self, ctx: &Ctx<'js>, message: &Message) -> Result<()> {
        // Only the parent writes to a worker: what is malformed is a fault of ours.
        let Ok((id, good, text, body)) = reply(message) else { sys::exit_now(2) };
        let Some((resolve, reject)) = self.0.borrow_mut().remove(&id) else { sys::exit_now(2) };
        let value = ctx.json_parse(text)?;
        if !good {
            return reject.call((value,));
        }
        let answer = Object::new(ctx.clone())?;
        answer.set("value", value)?;
        answer.set("body", ArrayBuffer::new_copy(ctx.clone(), body)?)?;
        resolve.call((answer,))
    }
}

fn reply(message: &Message) -> std::result::Result<(u32, bool, &str, &[u8]), Malformed> {
    let mut fields = Reader::new(&message.fields);
    let reply = (fields.u32()?, fields.u8()? == 1, fields.text()?, fields.bytes()?);
    if message.kind == to_worker::REPLY { Ok(reply) } else { Err(Malformed) }
}

/// Installs everything, and returns the function that calls the program's function with `ctx`.
pub fn install<'js>(
    ctx: &Ctx<'js>,
    channel: Channel,
    task: &Task,
    loaded: &Loaded,
    random: Rc<Random>,
    pending: &Pending<'js>,
) -> Result<Function<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set("log", Function::new(ctx.clone(), logger(channel, loaded.logs))?)?;
    native.set("host", host(ctx, channel, loaded, pending.clone())?)?;
    let source = Rc::clone(&random);
    native.set("random", Function::new(ctx.clone(), move || source.fraction())?)?;
    native.set("load", Function::new(ctx.clone(), load)?)?;
    native.set("hash", Function::new(ctx.clone(), hash)?)?;
    native.set("hmac", Function::new(ctx.clone(), mac)?)?;
    native.set("encode", Function::new(ctx.clone(), encode)?)?;
    native.set("decode", Function::new(ctx.clone(), decode)?)?;
    native.set("toBase64", Function::new(ctx.clone(), to_base64)?)?;
    native.set("fromBase64", Function::new(ctx.clone(), from_base64)?)?;
    native.set("url", Function::new(ctx.clone(), parse_url)?)?;
    native.set("setUrl", Function::new(ctx.clone(), set_url)?)?;
    native.set("randomBytes", random_bytes(ctx, random)?)?;
    let given = ctx.json_parse(task.given.as_str())?;
    let now = task.fixed.map(|(now, _)| now.to_string());
    let prelude: Function<'js> = ctx.eval(PRELUDE)?;
    prelude.call((native, given, now))
}

/// Sends lines of the log until they are too many, then says so once.
fn logger(channel: Channel, limit: usize) -> impl Fn(u8, String) {
    let left = Cell::new(Some(limit));
    move |level, text| {
        let Some(before) = left.get() else { return };
        let text = cut(&text, LONGEST_LINE);
        match before.checked_sub(text.len()) {
            Some(after) => {
                left.set(Some(after));
                channel.write(&Writer::new(to_parent::LOG).u8(level.min(3)).text(&text).finish());
            }
            None => {
                left.set(None);
                channel.write(&Writer::new(to_parent::LOG).u8(4).text("").finish());
            }
        }
    }
}

/// Sends a host call and returns the promise of its answer.
fn host<'js>(
    ctx: &Ctx<'js>,
    channel: Channel,
    loaded: &Loaded,
    pending: Pending<'js>,
) -> Result<Function<'js>> {
    let (most, largest) = (loaded.host_calls, loaded.request);
    let next = Cell::new(0_u32);
    Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, call: String, body: Option<TypedArray<'js, u8>>| -> Result<Promise<'js>> {
            let body = body.and_then(|body| sys::bytes_of(&body)).unwrap_or_default();
            if call.len() + body.len() > largest {
                return Err(Exception::throw_range(
                    &ctx,
                    &format!("the request is larger than {largest} bytes"),
                ));
            }
            if next.get() >= most {
                return Err(Exception::throw_range(&ctx, &format!("a call may ask {most} times")));
            }
            let (promise, resolve, reject) = ctx.promise()?;
            let id = next.get();
            next.set(id.saturating_add(1));
            pending.0.borrow_mut().insert(id, (resolve, reject));
            channel.write(&Writer::new(to_parent::HOST).u32(id).text(&call).bytes(&body).finish());
            Ok(promise)
        },
    )
}

/// Compiles a part of the globals.
fn load<'js>(ctx: Ctx<'js>, part: String) -> Result<Value<'js>> {
    match part.as_str() {
        "url" => ctx.eval(URL),
        "clone" => ctx.eval(CLONE),
        _ => Err(Exception::throw_type(&ctx, "there is no such part")),
    }
}

fn bytes(ctx: &Ctx<'_>, array: &TypedArray<'_, u8>) -> Result<Vec<u8>> {
    sys::bytes_of(array).ok_or_else(|| Exception::throw_type(ctx, "the buffer is detached"))
}

fn random_bytes<'js>(ctx: &Ctx<'js>, random: Rc<Random>) -> Result<Function<'js>> {
    Function::new(ctx.clone(), move |ctx: Ctx<'js>, count: usize| {
        TypedArray::<u8>::new_copy(ctx.clone(), random.bytes(count.min(65_536)))
    })
}

fn hash<'js>(ctx: Ctx<'js>, name: String, data: TypedArray<'js, u8>) -> Result<TypedArray<'js, u8>> {
    let algorithm = match name.as_str() {
        "SHA-1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        "SHA-256" => &digest::SHA256,
        "SHA-384" => &digest::SHA384,
        "SHA-512" => &digest::SHA512,
        _ => return Err(Exception::throw_type(&ctx, "the algorithm is SHA-1, SHA-256, SHA-384 or SHA-512")),
    };
    TypedArray::new_copy(ctx.clone(), digest::digest(algorithm, &bytes(&ctx, &data)?))
}

fn mac<'js>(
    ctx: Ctx<'js>,
    name: String,
    key: TypedArray<'js, u8>,
    data: TypedArray<'js, u8>,
) -> Result<TypedArray<'js, u8>> {
    let algorithm = match name.as_str() {
        "SHA-1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "SHA-256" => hmac::HMAC_SHA256,
        "SHA-384" => hmac::HMAC_SHA384,
        "SHA-512" => hmac::HMAC_SHA512,
        _ => return Err(Exception::throw_type(&ctx, "the algorithm is SHA-1, SHA-256, SHA-384 or SHA-512")),
    };
    let key = hmac::Key::new(algorithm, &bytes(&ctx, &key)?);
    TypedArray::new_copy(ctx.clone(), hmac::sign(&key, &bytes(&ctx, &data)?))
}

fn encode<'js>(ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u8>> {
    TypedArray::new_copy(ctx, text)
}

fn decode<'js>(ctx: Ctx<'js>, data: TypedArray<'js, u8>, fatal: bool) -> Result<String> {
    match String::from_utf8(bytes(&ctx, &data)?) {
        Ok(text) => Ok(text),
        Err(_) if fatal => Err(Exception::throw_type(&ctx, "the bytes are no UTF-8")),
        Err(error) => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

fn to_base64<'js>(ctx: Ctx<'js>, data: TypedArray<'js, u8>) -> Result<String> {
    Ok(STANDARD.encode(bytes(&ctx, &data)?))
}

/// Whitespace is ignored, and padding may be missing, as `atob` has it.
fn from_base64<'js>(ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u8>> {
    let mut text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    while !text.len().is_multiple_of(4) && !text.ends_with('=') {
        text.push('=');
    }
    match STANDARD.decode(text) {
        Ok(data) => TypedArray::new_copy(ctx, data),
        Err(_) => Err(Exception::throw_type(&ctx, "the text is no base64")),
    }
}

/// The parts of an address, as an object, or `null`.
fn parse_url<'js>(ctx: Ctx<'js>, text: String, base: Option<String>) -> Result<Value<'js>> {
    let parsed = match base {
        Some(base) => url::Url::parse(&base).and_then(|base| base.join(&text)),
        None => url::Url::parse(&text),
    };
    match parsed {
        Ok(url) => parts(&ctx, &url),
        Err(_) => Ok(Value::new_null(ctx)),
    }
}

/// The parts of an address after one was changed. A change that makes no address is ignored, as browsers do.
fn set_url<'js>(ctx: Ctx<'js>, text: String, part: String, value: String) -> Result<Value<'js>> {
    use url::quirks;
    let Ok(mut url) = url::Url::parse(&text) else { return Ok(Value::new_null(ctx)) };
    let _ = match part.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value),
        "username" => quirks::set_username(&mut url, &value),
        "password" => quirks::set_password(&mut url, &value),
        "host" => quirks::set_host(&mut url, &value),
        "hostname" => quirks::set_hostname(&mut url, &value),
        "port" => quirks::set_port(&mut url, &value),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Err(()),
    };
    parts(&ctx, &url)
}

fn parts<'js>(ctx: &Ctx<'js>, url: &url::Url) -> Result<Value<'js>> {
    use url::quirks;
    let object = Object::new(ctx.clone())?;
    object.set("href", quirks::href(url))?;
    object.set("origin", quirks::origin(url))?;
    object.set("protocol", quirks::protocol(url))?;
    object.set("username", quirks::username(url))?;
    object.set("password", quirks::password(url))?;
    object.set("host", quirks::host(url))?;
    object.set("hostname", quirks::hostname(url))?;
    object.set("port", quirks::port(url))?;
    object.set("pathname", quirks::pathname(url))?;
    object.set("search", quirks::search(url))?;
    object.set("hash", quirks::hash(url))?;
    Ok(object.into_value())
}
