//! Tokens of pages: sealed, so that a client can neither read nor make one.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    rand,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::cloud_error::CloudError;

/// Seals the tokens of pages.
pub struct PagingKey(LessSafeKey);

impl std::fmt::Debug for PagingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PagingKey").finish_non_exhaustive()
    }
}

impl PagingKey {
    /// The key with these bytes. All frontends of a region need the same.
    pub fn new(bytes: &[u8; 32]) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, bytes).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// A token that continues the list of `scope` after `id`.
    pub(super) fn seal(&self, scope: &str, after: &(String, String)) -> Option<String> {
        let mut data = serde_json::to_vec(after).ok()?;
        let mut nonce = [0; 12];
        rand::fill(&mut nonce).ok()?;
        let (unique, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(scope));
        self.0
            .seal_in_place_append_tag(unique, aad, &mut data)
            .ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &data].concat()))
    }

    /// Where the list of `scope` continues.
    pub(super) fn open(&self, scope: &str, token: &str) -> Result<(String, String), CloudError> {
        self.opened(scope, token).ok_or_else(|| {
            let message =
                "The parameter $skipToken is invalid: use the nextLink of a page as it is.";
            CloudError::invalid("$skipToken", message)
        })
    }

    fn opened(&self, scope: &str, token: &str) -> Option<(String, String)> {
        let mut data = URL_SAFE_NO_PAD.decode(token).ok()?;
        let nonce: [u8; 12] = data.get(..12)?.try_into().ok()?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self
            .0
            .open_in_place(nonce, Aad::from(scope), &mut data[12..])
            .ok()?;
        serde_json::from_slice(opened).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_continues_its_own_list_only() {
        let key = PagingKey::new(&[7; 32]).unwrap();
        let after = ("s".to_owned(), "/subscriptions/s/a".to_owned());
        let token = key.seal("list of s", &after).unwrap();
        assert_eq!(key.open("list of s", &token).unwrap(), after);
        key.open("list of t", &token).unwrap_err();
        key.open("list of s", &format!("A{token}")).unwrap_err();
        key.open("list of s", "").unwrap_err();
    }
}
