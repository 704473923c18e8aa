//! The types of an operation's arguments.

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

/// An admitted request whose input is not read yet.
pub struct Input<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The operation's declaration.
    pub meta: &'static Meta,
    /// Names and values of the path's parameters, decoded.
    pub path: &'a [(&'static str, String)],
    /// Names and values of the query, decoded, in order.
    pub query: &'a [(String, String)],
    /// The body's bytes.
    pub body: &'a [u8],
    /// The body, if the operation reads it while it arrives.
    pub stream: Option<&'a StreamedBody>,
    /// The header `If-Match`.
    pub if_match: Option<&'a str>,
    /// The services of the program.
    pub services: &'a Services,
    pub(crate) registered: &'a Registered,
}

impl Input<'_> {
    /// Returns the last value of a query parameter.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the calls of the operation that may share a transaction.
    pub fn waiting_calls(&self) -> WaitingCalls {
        self.registered.waiting_calls.clone()
    }

    /// Returns the checks of a form's fields.
    pub(crate) fn form_checks(&self) -> crate::declaration::validate::FormChecks {
        self.registered.checks().form()
    }

    /// Reads the body as JSON and validates it against the operation's schema.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        self.registered.checks().body(self.body, self.meta.method)
    }
}

/// An argument of an operation.
pub trait FromInput: Sized {
    /// The paging mode, if the argument is a page.
    const PAGING: Option<Paging> = None;

    /// Reads the argument. `name` is its name as the contract spells it.
    ///
    /// # Errors
    /// Mistakes of the caller, such as `validation_error` or `not_found`.
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self>;

    /// Adds the argument to the description of an operation.
    fn describe(describe: &mut Describe, name: &'static str);
}

/// The path parameter with the argument's name. Its text must be exactly as `T` prints the value.
#[derive(Debug, Clone)]
pub struct Path<T>(pub T);

impl<T: FromStr + Display + ToSchema> FromInput for Path<T> {
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self> {
        let text = input.path.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
        // Text that cannot be an id is treated like an id that does not exist. So is another spelling of an id, such
        // as `+1`, because an object has one address.
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

/// A body that can be processed before the transaction. On SQLite, all transactions wait for each other, so work that
/// needs no database is better done on the request's own thread.
pub trait Prepare: DeserializeOwned + ToSchema {
    /// The result.
    type Prepared;

    /// Processes the body. `None` leaves the work to the transaction. An invalid body returns `None` too, because its
    /// error may depend on stored data.
    fn prepare(&self, input: &Input<'_>) -> Option<Self::Prepared>;
}

/// The JSON body with the result of [`Prepare::prepare`].
#[derive(Debug)]
pub struct PreparedBody<T: Prepare> {
    /// The body.
    pub body: Arc<T>,
    prepared: Arc<Mutex<Option<T::Prepared>>>,
}

impl<T: Prepare> PreparedBody<T> {
    /// Takes the result of the preparation. It is returned once: a transaction that is run again processes the body
    /// itself.
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

/// A service of the program.
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
