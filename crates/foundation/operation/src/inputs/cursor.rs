//! The opaque cursors of lists.

use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Error, Result, WorkspaceId};
use std::sync::Arc;
use store::Position;

/// The purpose of the signatures of cursors.
const PLACE: &str = "cursor";
/// The length of a signature in bytes: all of HMAC-SHA-256, because `ring` compares only complete signatures in
/// constant time.
const SIGNATURE: usize = 32;

/// Creates and reads the cursors of one list.
///
/// A cursor is a position and its signature in URL-safe base64. Clients can read the position, but not change it. The
/// signature is made with the service's key and also covers the operation, the workspace and the filters. A cursor of
/// another list is therefore refused instead of silently returning wrong rows.
#[derive(Debug, Clone)]
pub struct Cursors {
    seal: Arc<Seal>,
    operation: &'static str,
    workspace: WorkspaceId,
    filters: String,
}

impl Cursors {
    /// Creates the cursors of the list that `operation` returns in a workspace. `filters` is everything else that
    /// determines the rows of the list and their order, in a canonical form.
    pub fn new(seal: Arc<Seal>, operation: &'static str, workspace: WorkspaceId, filters: String) -> Self {
        Self { seal, operation, workspace, filters }
    }

    /// Returns the cursor after `position`.
    pub fn encode(&self, position: &str) -> String {
        let signature = self.seal.sign(PLACE, &self.signed(position));
        URL_SAFE_NO_PAD.encode([position.as_bytes(), &signature].concat())
    }

    /// Returns the position in a cursor that a client sent.
    ///
    /// # Errors
    /// `validation_error` with `param` = `starting_after` for any text that [`Cursors::encode`] did not return for
    /// this list.
    pub fn decode(&self, text: &str) -> Result<Position> {
        self.position(text).map(Position::new).ok_or_else(|| {
            Error::invalid(
                "starting_after",
                "is not a cursor of this list; send the `next_cursor` of the previous page unchanged",
            )
        })
    }

    fn position(&self, text: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (position, signature) = bytes.split_last_chunk::<SIGNATURE>()?;
        let position = std::str::from_utf8(position).ok()?;
        let is_ours = self.seal.is_signed(PLACE, &self.signed(position), signature);
        is_ours.then(|| position.to_owned())
    }

    /// Returns the text that is signed. It is JSON, so that different parts never result in the same text.
    fn signed(&self, position: &str) -> String {
        serde_json::json!([self.operation, self.workspace, self.filters, position]).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(key: u8, operation: &'static str, workspace: i64, filters: &str) -> Cursors {
        let seal = Arc::new(Seal::new(&[key; 32]).unwrap());
        Cursors::new(seal, operation, WorkspaceId(workspace), filters.to_owned())
    }

    fn read(cursors: &Cursors, text: &str) -> Option<String> {
        match cursors.decode(text) {
            Ok(position) => Some(position.read().unwrap()),
            Err(error) => {
                assert_eq!(error.param_name(), Some("starting_after"));
                None
            }
        }
    }

    proptest! {
        #[test]
        fn a_cursor_reads_back_only_where_it_belongs(position in ".{0,40}", filters in ".{0,20}", workspace in 1i64..99) {
            let own = of(7, "listAgents", workspace, &filters);
            let text = own.encode(&position);
            prop_assert_eq!(read(&own, &text), Some(position));
            for other in [
                of(8, "listAgents", workspace, &filters),
                of(7, "listRuns", workspace, &filters),
                of(7, "listAgents", workspace + 1, &filters),
                of(7, "listAgents", workspace, &format!("{filters}x")),
            ] {
                prop_assert_eq!(read(&other, &text), None);
            }
        }

        #[test]
        fn a_changed_cursor_is_refused(position in ".{0,40}", place in any::<prop::sample::Index>(), letter in "[A-Za-z0-9_-]") {
            let own = of(7, "listAgents", 1, "");
            let text = own.encode(&position);
            let place = place.index(text.len());
            let mut changed = text.clone();
            changed.replace_range(place..=place, &letter);
            prop_assert_eq!(read(&own, &changed).is_some(), changed == text);
        }

        #[test]
        fn garbage_is_refused(text in ".{0,60}") {
            prop_assert_eq!(read(&of(7, "listAgents", 1, ""), &text), None);
        }
    }
}
