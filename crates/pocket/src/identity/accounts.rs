//! Service account tokens: issued and verified here.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    Grant, Holder, KeyError, Reference, Refused, SigningKey,
    claims::{Account, Claims},
    in_common,
    key::{ALGORITHM, Parts},
};
use crate::store::Object;

/// The default issuer of tokens.
pub const ISSUER: &str = "https://kubernetes.default.svc";
/// Seconds of clock skew that are tolerated, and for which a deleted object still counts.
const LEEWAY_SECONDS: i64 = 60;
/// Verified tokens that are cached, so that their signatures are not checked each time.
const MAX_CACHED_TOKENS: usize = 4096;
/// Bytes of a token that is cached, at most. Longer tokens are checked each time: a client must not
/// be able to grow the cache by the size of its tokens.
const MAX_CACHED_TOKEN_BYTES: usize = 8 << 10;

/// The objects that a token refers to, in their newest state.
pub trait Records {
    /// The object at a path of a bucket.
    fn find(&self, bucket: &str, path: &str) -> Option<Arc<Object>>;
}

/// Issues and verifies service account tokens.
pub struct AccountTokens {
    audiences: [String; 1],
    key: OnceLock<SigningKey>,
    /// Claims of tokens with a verified signature, by the token's digest.
    signed: Mutex<HashMap<[u8; SHA256_OUTPUT_LEN], Arc<Claims>>>,
}

impl AccountTokens {
    /// Tokens of `issuer`, signed by `key`; without a key, one is generated for the first token.
    pub fn new(issuer: String, key: Option<SigningKey>) -> Self {
        Self {
            audiences: [issuer],
            key: key.map(OnceLock::from).unwrap_or_default(),
            signed: Mutex::default(),
        }
    }

    /// The issuer of the tokens.
    pub fn issuer(&self) -> &str {
        &self.audiences[0]
    }

    /// The audiences of tokens that request none.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Issues a token for an account in a namespace; also returns when its holder should renew it.
    pub fn issue(
        &self,
        namespace: &str,
        account: Reference,
        grant: Grant,
        jti: String,
        now: Timestamp,
    ) -> Result<(String, Timestamp), KeyError> {
        let now = now.as_second();
        let (lasts, warn) = grant.lasts(&self.audiences);
        let account = Account {
            namespace: namespace.into(),
            node: grant.node,
            pod: grant.pod,
            secret: grant.secret,
            serviceaccount: account,
            warnafter: warn.map(|after| now + after),
        };
        let claims = Claims {
            aud: grant.audiences,
            exp: now + lasts,
            iat: now,
            iss: self.issuer().into(),
            jti,
            nbf: now,
            sub: account.name(),
            account,
        };
        let text = serde_json::to_vec(&claims).unwrap_or_default();
        let ends = Timestamp::from_second(now + grant.seconds).unwrap_or(Timestamp::MAX);
        Ok((self.key()?.sign(&text)?, ends))
    }

    /// The account of a token, and which of `audiences` it is valid for.
    pub fn holder(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
        records: &dyn Records,
    ) -> Result<Holder, Refused> {
        let claims = self.claims(token)?;
        let both = in_common(audiences, &claims.aud);
        if both.is_empty() {
            return Err(Refused::Audience {
                token: claims.aud.clone(),
                target: audiences.to_vec(),
            });
        }
        check_time(&claims, now.as_second())?;
        check_account(&claims.account, now, records)?;
        Ok(Holder {
            user: claims.user(),
            audiences: both,
        })
    }

    /// The claims of a token, if its signature is valid.
    fn claims(&self, token: &str) -> Result<Arc<Claims>, Refused> {
        // Without a key no token has been issued.
        let key = self.key.get().ok_or(Refused::Unknown)?;
        let mut print = [0; SHA256_OUTPUT_LEN];
        print.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        if let Some(claims) = self.signed.lock().get(&print) {
            return Ok(claims.clone());
        }
        let parts = Parts::of(token).ok_or(Refused::Unknown)?;
        let claims: Claims = serde_json::from_slice(&parts.claims).map_err(|_| Refused::Unknown)?;
        if claims.iss != self.issuer() {
            return Err(Refused::Unknown);
        }
        if !key.signed(&parts) {
            return Err(Refused::Signature);
        }
        let claims = Arc::new(claims);
        if token.len() > MAX_CACHED_TOKEN_BYTES {
            return Ok(claims);
        }
        let mut signed = self.signed.lock();
        if signed.len() >= MAX_CACHED_TOKENS {
            signed.clear();
        }
        signed.insert(print, claims.clone());
        Ok(claims)
    }

    fn key(&self) -> Result<&SigningKey, KeyError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let made = SigningKey::generate()?;
        Ok(self.key.get_or_init(|| made))
    }

    /// The OpenID discovery document, with the key set at `keys`.
    pub fn discovery(&self, keys: &str) -> Value {
        json!({
            "issuer": self.issuer(),
            "jwks_uri": keys,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        })
    }

    /// The public keys of the tokens, as a key set.
    pub fn keys(&self) -> Result<Value, KeyError> {
        Ok(json!({"keys": [self.key()?.published()]}))
    }
}

fn check_time(claims: &Claims, now: i64) -> Result<(), Refused> {
    if now - LEEWAY_SECONDS > claims.exp {
        return Err(Refused::Expired);
    }
    if now + LEEWAY_SECONDS < claims.nbf {
        return Err(Refused::Early);
    }
    Ok(())
}

fn check_account(account: &Account, now: Timestamp, records: &dyn Records) -> Result<(), Refused> {
    let namespace = account.namespace.as_str();
    let place = |name: &str| format!("{namespace}/{name}");
    let own = &account.serviceaccount;
    let Some(found) = records.find("/serviceaccounts", &place(&own.name)) else {
        return Err(Refused::NoAccount(own.name.clone()));
    };
    if is_gone(&found, now) {
        return Err(Refused::Ending(place(&own.name)));
    }
    if *found.metadata().uid != *own.uid {
        return Err(Refused::OtherAccount {
            found: found.metadata().uid.to_string(),
            claimed: own.uid.clone(),
        });
    }
    let check = |kind, bucket, path: String, claimed| {
        check_bound(kind, claimed, records.find(bucket, &path), now)
    };
    if let Some(secret) = &account.secret {
        check("secret", "/secrets", place(&secret.name), secret)?;
    }
    if let Some(pod) = &account.pod {
        // The node of a pod may be removed before the pod.
        return check("pod", "/pods", place(&pod.name), pod);
    }
    if let Some(node) = &account.node {
        check("node", "/nodes", node.name.clone(), node)?;
    }
    Ok(())
}

fn check_bound(
    kind: &'static str,
    claimed: &Reference,
    found: Option<Arc<Object>>,
    now: Timestamp,
) -> Result<(), Refused> {
    let found = found.ok_or(Refused::Unbound)?;
    if is_gone(&found, now) {
        return Err(Refused::Unbound);
    }
    if *found.metadata().uid != *claimed.uid {
        return Err(Refused::OtherObject {
            kind,
            found: found.metadata().uid.to_string(),
            claimed: claimed.uid.clone(),
        });
    }
    Ok(())
}

/// Whether an object's deletion time has passed, with some leeway.
fn is_gone(object: &Object, now: Timestamp) -> bool {
    let going = object.metadata().deletion_timestamp.as_deref();
    let going = going.and_then(|time| time.parse::<Timestamp>().ok());
    going.is_some_and(|time| time.as_second() + LEEWAY_SECONDS < now.as_second())
}

impl std::fmt::Debug for AccountTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountTokens")
            .field("issuer", &self.issuer())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_token_is_known_but_not_remembered() {
        let accounts = AccountTokens::new(ISSUER.into(), None);
        for (length, remembered) in [(8 << 10, 0), (10, 1)] {
            let account = Reference {
                name: "a".into(),
                uid: "u".into(),
            };
            let grant = Grant {
                audiences: vec!["x".repeat(length)],
                seconds: 3600,
                ..Grant::default()
            };
            let (token, _) = accounts
                .issue("n", account, grant, "id".into(), Timestamp::UNIX_EPOCH)
                .unwrap();
            let claims = accounts.claims(&token).unwrap();
            assert_eq!(claims.aud[0].len(), length);
            assert_eq!(accounts.signed.lock().len(), remembered);
        }
    }
}
