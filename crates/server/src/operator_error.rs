//! Error conversion: an error of the service as one for the operator.

/// An error of the service as one for the operator, with its cause.
pub(crate) fn cause(error: model::Error) -> anyhow::Error {
    match error.cause() {
        Some(cause) => anyhow::anyhow!("{cause}"),
        None => anyhow::anyhow!("{error}"),
    }
}
