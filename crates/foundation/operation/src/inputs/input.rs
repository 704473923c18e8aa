//! What an operation takes: the types of its arguments.

use crate::Describe;
use crate::batched::WaitingCalls;
use crate::declaration::meta::{Meta, Paging};
use crate::inputs::arriving::StreamedBody;
use crate::registry::Registered;
use crate::services::Services;
use model::{Caller, Error, Result};
use serde::de::DeserializeOwned;
use std::any::Any;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use utoipa::{IntoParams, ToSchema};

/// A request behind the guard, not yet read.
pub struct Input<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// The operation's declaration.
    pub meta: &'static Meta,
    /// Names and values of the path's parameters, decoded.
    pub path: &'a [(&'static str, String)],
    /// Names and values of the query, decoded, in order.
    pub query: &'a [(String, String)],
    /// The body's bytes.
    pub body: &'a [u8],
    /// The body, where the operation reads it while it arrives.
    pub stream: Option<&'a StreamedBody>,
    /// The header `If-Match`.
    pub if_match: Option<&'a str>,
    /// What the binary wired together.
    pub services: &'a Services,
    pub(crate) registered: &'a Registered,
}

impl Input<'_> {
    /// The last value of a query parameter.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The calls of the operation that may share a transaction.
    pub fn waiting_calls(&self) -> WaitingCalls {
        self.registered.waiting_calls.clone()
    }

    /// The checks of the fields of a form.
    pub(crate) fn form_checks(&self) -> crate::declaration::validate::FormChecks {
        self.registered.checks().form()
    }

    /// The body as JSON, checked against the schema that the operation was described with.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        self.registered.checks().body(self.body, self.meta.method)
    }
}

/// An argument of an operation.
pub trait FromInput: Sized {
    /// How the list comes in pages, where the argument is a page.
    const PAGING: Option<Paging> = None;

    /// Reads it. `name` is the argument's name in the contract's spelling.
    ///
    /// # Errors
    /// What the caller did wrong.
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self>;

    /// Tells the contract of it.
    fn describe(describe: &mut Describe, name: &'static str);
}

/// A parameter of the path: the one with the argument's name, written as it is printed.
#[derive(Debug, Clone)]
pub struct Path<T>(pub T);

impl<T: FromStr + Display + ToSchema> FromInput for Path<T> {
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self> {
        let text = input.path.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
        // What cannot be an id names nothing, just like an id that does not exist; and so does an id in another spelling,
        // such as `+1`: an object has one address.
        let value = text
            .and_then(|text| text.parse().ok().filter(|value: &T| value.to_string() == text))
            .ok_or_else(|| Error::not_found(name.strip_suffix("Id").unwrap_or(name)))?;
        Ok(Self(value))
    }

    fn describe(describe: &mut Describe, name: &'static str) {
        describe.path_parameter::<T>(name);
    }
}

/// The query parameters.
#[derive(Debug, Clone)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned + IntoParams> FromInput for Query<T> {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        input.registered.checks().query(input.query).map(Self)
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.query_parameters::<T>();
    }
}

/// The JSON body.
#[derive(Debug, Clone)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned + ToSchema> FromInput for Body<T> {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        input.json().map(Self)
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.body::<T>();
    }
}

/// A body of which something can be made before the transaction. On SQLite all transactions wait for each other, so what needs
/// no database is better done on the request's own thread.
pub trait Prepare: DeserializeOwned + ToSchema {
    /// What is made.
    type Prepared;

    /// Makes it. `None` leaves it to the transaction, and so does a body that is wrong: what is wrong may depend on what is
    /// stored.
    fn prepare(&self, input: &Input<'_>) -> Option<Self::Prepared>;
}

/// The JSON body, and what was made of it.
#[derive(Debug)]
pub struct PreparedBody<T: Prepare> {
    /// The body.
    pub body: Arc<T>,
    prepared: Arc<Mutex<Option<T::Prepared>>>,
}

impl<T: Prepare> PreparedBody<T> {
    /// What was made of the body, for the first who asks: a transaction that is run again makes it itself.
    pub fn take(&self) -> Option<T::Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T: Prepare> Clone for PreparedBody<T> {
    fn clone(&self) -> Self {
        Self { body: self.body.clone(), prepared: self.prepared.clone() }
    }
}

impl<T: Prepare> FromInput for PreparedBody<T> {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        let body: T = input.json()?;
        let prepared = Arc::new(Mutex::new(body.prepare(input)));
        Ok(Self { body: Arc::new(body), prepared })
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.body::<T>();
    }
}

/// Something that the binary wired in.
#[derive(Debug)]
pub struct State<T>(pub Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Any + Send + Sync> FromInput for State<T> {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        input.services.get().map(Self)
    }

    fn describe(_: &mut Describe, _: &'static str) {}
}
