//! Why a client cannot be used.

use super::remote::RemoteError;
use model::Error;

/// Why a client cannot be used.
#[derive(Debug)]
pub enum ClientError {
    /// No client has this `client_id`.
    Unknown,
    /// There is no acceptable metadata document at the `client_id`.
    Document(RemoteError),
    /// The key set of the client cannot be fetched.
    Keys(RemoteError),
    /// The client does not prove who it is.
    Unauthenticated(&'static str),
    /// The service failed.
    Internal(Error),
}

impl From<Error> for ClientError {
    fn from(error: Error) -> Self {
        Self::Internal(error)
    }
}
