//! Secure fields: sealed in every stored document, opened only by the caller that needs the plain text.
//!
//! A sealed field is an object with the one member `$sealed`, never a string, so that no text of a user
//! can pass for one. The seal is bound to the document and the path of the field: a sealed value that is
//! copied elsewhere does not open.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    digest, rand,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use crate::{
    document::{Document, DocumentKey},
    error::Error,
};

const SEALED: &str = "$sealed";

/// The paths of the secure fields of a collection; `*` stands for every member or item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecureFields {
    /// The collection.
    pub collection: &'static str,
    /// JSON pointers.
    pub paths: &'static [&'static str],
}

/// The keys that secure fields are sealed with, newest first. Older versions only open.
pub struct KeyRing(Vec<VersionedKey>);

struct VersionedKey {
    version: String,
    aead: LessSafeKey,
    fingerprint: i64,
}

/// A number that differs for two keys, and says nothing about them.
fn fingerprint(key: &[u8; 32]) -> i64 {
    let text = [b"neap: fingerprint of a sealing key\n".as_slice(), key].concat();
    let digest = digest::digest(&digest::SHA256, &text);
    let bytes = digest.as_ref().first_chunk().copied();
    i64::from_be_bytes(bytes.unwrap_or_default())
}

/// Why a field does not open although there is a key of its version.
const FOREIGN: &str = "it was changed, or belongs elsewhere";

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let versions = self.0.iter().map(|key| &key.version);
        f.debug_list().entries(versions).finish()
    }
}

impl KeyRing {
    /// The keys of these versions, newest first.
    pub fn new(keys: impl IntoIterator<Item = (String, [u8; 32])>) -> Result<Self, Error> {
        let keys = keys.into_iter().map(|(version, bytes)| {
            let key = UnboundKey::new(&AES_256_GCM, &bytes)
                .map_err(|_| Error::Invalid("a key was refused".to_owned()))?;
            Ok(VersionedKey {
                version,
                aead: LessSafeKey::new(key),
                fingerprint: fingerprint(&bytes),
            })
        });
        let keys: Vec<_> = keys.collect::<Result<_, Error>>()?;
        if keys.is_empty() {
            return Err(Error::Invalid("the key ring is empty".to_owned()));
        }
        Ok(Self(keys))
    }

    /// A ring with one random key.
    pub fn random() -> Result<Self, Error> {
        Self::new([("1".to_owned(), random_key()?)])
    }

    /// The versions, and a number for each that two keys do not share.
    pub(crate) fn fingerprints(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|key| (&*key.version, key.fingerprint))
    }

    /// Refuses a key that does not open what was sealed with a key of its version. A version that is not in the
    /// ring is not refused: the document may be from before a key that is lost.
    pub(crate) fn check(&self, document: &Document, fields: &[&str]) -> Result<(), Error> {
        let mut body = document.body.clone();
        for field in fields {
            each(&mut body, field, &mut String::new(), &mut |path, value| {
                let Some(text) = sealed_text(value) else {
                    return Ok(());
                };
                match self.open_text(&document.key, path, text) {
                    Err(Error::Sealed { why: FOREIGN, .. }) => {
                        let version = text.split(':').next().unwrap_or_default();
                        Err(Error::OtherKey(version.to_owned()))
                    }
                    _ => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    /// Seals the secure fields of `body`. Fields that are sealed with an older key are sealed again.
    pub(crate) fn seal(
        &self,
        key: &DocumentKey,
        fields: &[&str],
        body: &mut Value,
    ) -> Result<(), Error> {
        for field in fields {
            each(body, field, &mut String::new(), &mut |path, value| {
                let plain = match sealed_text(value) {
                    Some(text) if self.is_newest(text) => return Ok(()),
                    Some(text) => self.open_text(key, path, text)?,
                    None if value.is_null() => return Ok(()),
                    None => serde_json::to_vec(value)
                        .map_err(|_| Error::Invalid("a field cannot be sealed".to_owned()))?,
                };
                *value = self.seal_bytes(key, path, plain)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Opens the secure fields of `body`.
    pub(crate) fn open(
        &self,
        key: &DocumentKey,
        fields: &[&str],
        body: &mut Value,
    ) -> Result<(), Error> {
        for field in fields {
            each(body, field, &mut String::new(), &mut |path, value| {
                let Some(text) = sealed_text(value) else {
                    return Ok(());
                };
                let plain = self.open_text(key, path, text)?;
                *value = serde_json::from_slice(&plain)
                    .map_err(|_| refused(key, path, "it is not JSON"))?;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn is_newest(&self, text: &str) -> bool {
        let newest = self.0.first().map(|key| key.version.as_str());
        text.split_once(':').map(|(version, _)| version) == newest
    }

    fn seal_bytes(&self, key: &DocumentKey, path: &str, mut data: Vec<u8>) -> Result<Value, Error> {
        let failed = || Error::Invalid("a field cannot be sealed".to_owned());
        let VersionedKey { version, aead, .. } = self.0.first().ok_or_else(failed)?;
        let mut nonce = [0; 12];
        rand::fill(&mut nonce).map_err(|_| failed())?;
        aead.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(bound_to(key, path)),
            &mut data,
        )
        .map_err(|_| failed())?;
        let mut bytes = nonce.to_vec();
        bytes.extend(data);
        let text = format!("{version}:{}", STANDARD.encode(bytes));
        Ok(Value::Object(Map::from_iter([(
            SEALED.to_owned(),
            Value::String(text),
        )])))
    }

    fn open_text(&self, key: &DocumentKey, path: &str, text: &str) -> Result<Vec<u8>, Error> {
        let refused = |why| refused(key, path, why);
        let (version, data) = text
            .split_once(':')
            .ok_or_else(|| refused("it is damaged"))?;
        let found = self.0.iter().find(|known| known.version == version);
        let found = found.ok_or_else(|| refused("its key is not in the key ring"))?;
        let mut data = STANDARD
            .decode(data)
            .map_err(|_| refused("it is damaged"))?;
        let nonce: [u8; 12] = data
            .get(..12)
            .and_then(|nonce| nonce.try_into().ok())
            .ok_or_else(|| refused("it is damaged"))?;
        let opened = found.aead.open_in_place(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(bound_to(key, path)),
            &mut data[12..],
        );
        let opened = opened.map_err(|_| refused(FOREIGN))?;
        Ok(opened.to_vec())
    }
}

/// A random key.
pub(crate) fn random_key() -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| Error::Invalid("there is no randomness".to_owned()))?;
    Ok(bytes)
}

fn refused(key: &DocumentKey, path: &str, why: &'static str) -> Error {
    Error::Sealed {
        document: key.to_string(),
        path: path.to_owned(),
        why,
    }
}

fn bound_to(key: &DocumentKey, path: &str) -> String {
    format!(
        "{}\n{}\n{}\n{path}",
        key.collection,
        key.partition.name(),
        key.id
    )
}

/// The text of a sealed value.
fn sealed_text(value: &Value) -> Option<&str> {
    let members = value.as_object()?;
    members.get(SEALED).filter(|_| members.len() == 1)?.as_str()
}

/// Calls `act` with the path and the value of every field that `pattern` names.
fn each(
    value: &mut Value,
    pattern: &str,
    path: &mut String,
    act: &mut dyn FnMut(&str, &mut Value) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(rest) = pattern.strip_prefix('/') else {
        return act(path, value);
    };
    let (name, rest) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let mut enter = |name: &str, value: &mut Value| {
        let length = path.len();
        path.push('/');
        path.push_str(name);
        let done = each(value, rest, path, act);
        path.truncate(length);
        done
    };
    match value {
        Value::Object(members) if name == "*" => members
            .iter_mut()
            .try_for_each(|(name, value)| enter(name, value)),
        Value::Array(items) if name == "*" => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(at, value)| enter(&at.to_string(), value)),
        Value::Object(members) => match members.get_mut(name) {
            Some(value) => enter(name, value),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document::Partition;

    const FIELDS: &[&str] = &["/secret", "/profiles/*/password"];

    fn key(id: &str) -> DocumentKey {
        DocumentKey::new("clusters", &Partition::subscription("s"), id)
    }

    fn ring(versions: &[u8]) -> KeyRing {
        KeyRing::new(versions.iter().map(|it| (it.to_string(), [*it; 32]))).unwrap()
    }

    fn body() -> Value {
        json!({"name": "a", "secret": "hush", "profiles": [{"name": "x", "password": "p"}]})
    }

    #[test]
    fn sealed_fields_open_to_what_they_were_and_nothing_else_changes() {
        let ring = ring(&[1]);
        let mut sealed = body();
        ring.seal(&key("a"), FIELDS, &mut sealed).unwrap();
        let text = sealed.to_string();
        assert!(!text.contains("hush") && !text.contains("\"p\""), "{text}");
        assert_eq!(sealed["name"], "a");
        assert_eq!(sealed["profiles"][0]["name"], "x");
        ring.open(&key("a"), FIELDS, &mut sealed).unwrap();
        assert_eq!(sealed, body());
    }

    #[test]
    fn a_sealed_field_does_not_open_in_another_document() {
        let ring = ring(&[1]);
        let mut sealed = body();
        ring.seal(&key("a"), FIELDS, &mut sealed).unwrap();
        let error = ring.open(&key("b"), FIELDS, &mut sealed).unwrap_err();
        assert!(matches!(error, Error::Sealed { .. }), "{error}");
    }

    #[test]
    fn older_keys_open_and_a_write_seals_with_the_newest() {
        let mut value = body();
        ring(&[1]).seal(&key("a"), FIELDS, &mut value).unwrap();
        ring(&[2, 1]).seal(&key("a"), FIELDS, &mut value).unwrap();
        let mut opened = value.clone();
        ring(&[2]).open(&key("a"), FIELDS, &mut opened).unwrap();
        assert_eq!(opened, body());
        assert!(ring(&[1]).open(&key("a"), FIELDS, &mut value).is_err());
    }

    #[test]
    fn text_that_looks_sealed_is_only_text() {
        let ring = ring(&[1]);
        let mut value = json!({"secret": "{\"$sealed\": \"1:AAAA\"}"});
        let before = value.clone();
        ring.seal(&key("a"), FIELDS, &mut value).unwrap();
        ring.open(&key("a"), FIELDS, &mut value).unwrap();
        assert_eq!(value, before);
    }
}
