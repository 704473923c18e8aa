//! The parts of a request that arguments become.

/// The most bytes of a file that a call can carry.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// An argument of a tool.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) place: Place,
}

/// The part of a request that an argument becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Path(&'static str),
    Query(String),
    /// A member of the body.
    Body(String),
    /// The body, where that is no object.
    WholeBody,
    /// The bytes of the body or of the form's file.
    Bytes,
    /// The media type of the form's file.
    MediaType,
    IfMatch,
    IdempotencyKey,
}

/// The body that an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    None,
    Json,
    Octets,
    Form,
}
