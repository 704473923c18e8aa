//! Making and reading links.

use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::sync::Arc;

/// The longest token that is looked at, in bytes: more than any that was made.
const LONGEST: usize = 256;

/// The links of one kind of action.
#[derive(Clone)]
pub struct Links {
    seal: Arc<Seal>,
    base_url: Arc<str>,
    prefix: &'static str,
    place: &'static str,
}

/// Without the key.
impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Links {
    /// Links whose paths begin with `prefix`, such as `/approvals/`. `place` is the context of their signatures: what was signed
    /// for something else is not valid here. `base_url` is the public URL of the service, without a slash at the end.
    pub fn new(seal: Arc<Seal>, base_url: &str, prefix: &'static str, place: &'static str) -> Self {
        Self { seal, base_url: base_url.into(), prefix, place }
    }

    /// The beginning of all paths.
    pub fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// The link to what has this identity: parts that are separated by points, of characters that need no encoding in a URL.
    pub fn url(&self, identity: &str) -> String {
        let signature = URL_SAFE_NO_PAD.encode(self.seal.sign(self.place, identity));
        format!("{}{}{identity}.{signature}", self.base_url, self.prefix)
    }

    /// Reads what stands behind the prefix: the identity. `None` for all that was not made here.
    pub fn read(&self, rest: &str) -> Option<String> {
        if rest.len() > LONGEST {
            return None;
        }
        let token = percent_decode_str(rest).decode_utf8().ok()?;
        let (identity, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.seal.is_signed(self.place, identity, &signature).then(|| identity.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_where_it_was_made() {
        let seal = |key: u8| Arc::new(Seal::new(&[key; 32]).unwrap());
        let links = |key, place| Links::new(seal(key), "https://svc.example", "/approvals/", place);
        let url = links(1, "approval").url("7.run_1.3");
        let rest = url.strip_prefix("https://svc.example/approvals/").unwrap();
        assert_eq!(links(1, "approval").read(rest).as_deref(), Some("7.run_1.3"));
        assert_eq!(links(1, "approval").read(&rest.replace('.', "%2E")).as_deref(), Some("7.run_1.3"));
        for other in [links(2, "approval"), links(1, "resume")] {
            assert_eq!(other.read(rest), None);
        }
        for wrong in [&rest.replace("run_1", "run_2"), &"a".repeat(LONGEST + 1), "", ".", "7.run_1.3"] {
            assert_eq!(links(1, "approval").read(wrong), None, "{wrong}");
        }
    }
}
