//! The opaque cursor of opt-in pages (platform-billing.md C.5).

use crate::{Error, WorkspaceId};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// A place in one list of one workspace under one set of filters.
///
/// The text carries a digest of all it is bound to, so that a cursor of another list, another workspace, other
/// filters, or one that was changed is refused instead of quietly giving wrong rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    position: String,
    seal: String,
}

impl Cursor {
    /// The cursor after `position` of the list `kind` (its operation id) under `filters`.
    pub fn encode(kind: &str, workspace: WorkspaceId, filters: &str, position: &str) -> String {
        let seal = seal(kind, workspace, filters, position);
        let text = serde_json::to_vec(&Self { position: position.to_owned(), seal }).unwrap_or_default();
        URL_SAFE_NO_PAD.encode(text)
    }

    /// Reads a cursor that a caller sent and gives its position.
    ///
    /// # Errors
    /// `validation_error` with `param` = `starting_after` for anything that [`Cursor::encode`] did not make for
    /// this list.
    pub fn decode(kind: &str, workspace: WorkspaceId, filters: &str, text: &str) -> Result<String, Error> {
        let refused = || {
            Error::invalid(
                "starting_after",
                "is not a cursor of this list; send the `next_cursor` of the previous page unchanged",
            )
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let cursor: Self = serde_json::from_slice(&bytes).map_err(|_| refused())?;
        if cursor.seal == seal(kind, workspace, filters, &cursor.position) {
            Ok(cursor.position)
        } else {
            Err(refused())
        }
    }
}

fn seal(kind: &str, workspace: WorkspaceId, filters: &str, position: &str) -> String {
    let text = serde_json::to_vec(&("v1", kind, workspace, filters, position)).unwrap_or_default();
    let digest = ring::digest::digest(&ring::digest::SHA256, &text);
    URL_SAFE_NO_PAD.encode(digest.as_ref().get(..9).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_reads_back_only_where_it_belongs(position in ".{0,40}", kind in "[a-z]{1,9}", filters in ".{0,20}", ws in 1i64..99) {
            let text = Cursor::encode(&kind, WorkspaceId(ws), &filters, &position);
            prop_assert_eq!(Cursor::decode(&kind, WorkspaceId(ws), &filters, &text).unwrap(), position);
            prop_assert!(Cursor::decode(&kind, WorkspaceId(ws + 1), &filters, &text).is_err());
            prop_assert!(Cursor::decode("other1", WorkspaceId(ws), &filters, &text).is_err());
            prop_assert!(Cursor::decode(&kind, WorkspaceId(ws), "some very different filters", &text).is_err());
        }

        #[test]
        fn garbage_is_refused(text in ".{0,60}") {
            prop_assert!(Cursor::decode("listAgents", WorkspaceId(1), "", &text).is_err());
        }
    }
}
