//! Token in a webhook's URL: 32 random bytes. It is looked up by its digest.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Random;
use ring::digest::{SHA256, digest};

/// What a token is found by. A look-up by the digest of a secret compares nothing that an attacker could time.
pub(super) type TokenHash = [u8; 32];

/// A new token.
pub(super) fn generate(random: &dyn Random) -> String {
    let mut bytes = [0; 32];
    random.fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The digest of a token; `None` for what cannot be one.
pub(super) fn hash(token: &str) -> Option<TokenHash> {
    let is_token =
        token.len() == 43 && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    is_token.then_some(hash)
}
