//! The key that signs service account tokens, and their format: JWTs with ECDSA over P-256
//! (`ES256`). No other algorithm is accepted, so a token cannot choose how it is verified.

use std::sync::Arc;

use aws_lc_rs::{
    digest::{SHA256, digest},
    encoding::{AsDer, PublicKeyX509Der},
    error::{KeyRejected, Unspecified},
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
        UnparsedPublicKey,
    },
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use rustls::pki_types::{
    PrivatePkcs8KeyDer,
    pem::{self, PemObject},
};
use serde_json::{Value, json};

/// The signature algorithm of tokens.
pub(super) const ALGORITHM: &str = "ES256";

/// Signs tokens, and verifies its own signatures.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<EcdsaKeyPair>,
    /// The key id in tokens and in the published key set.
    id: String,
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not PEM, or no private key in it.
    #[error("no PEM private key (PKCS #8) found")]
    Pem(#[from] pem::Error),
    /// Not a key for signatures by ECDSA over P-256.
    #[error("not a private key for ECDSA over P-256: {0}")]
    Rejected(#[from] KeyRejected),
    /// An error of the cryptographic library.
    #[error("the cryptographic library failed")]
    Library(#[from] Unspecified),
}

impl SigningKey {
    /// Generates a key.
    pub fn generate() -> Result<Self, KeyError> {
        Self::new(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?)
    }

    /// Parses a key: PKCS #8 in PEM.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes())?;
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.secret_pkcs8_der())?;
        Self::new(pair)
    }

    fn new(pair: EcdsaKeyPair) -> Result<Self, KeyError> {
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der()?;
        let id = BASE64.encode(digest(&SHA256, public.as_ref()));
        let pair = Arc::new(pair);
        Ok(Self { pair, id })
    }

    /// Signs a token with these claims.
    pub(super) fn sign(&self, claims: &[u8]) -> Result<String, KeyError> {
        let header = json!({"alg": ALGORITHM, "kid": self.id}).to_string();
        let mut token = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
        let signature = self.pair.sign(&SystemRandom::new(), token.as_bytes())?;
        token.push('.');
        BASE64.encode_string(signature, &mut token);
        Ok(token)
    }

    /// Whether this key signed a token.
    pub(super) fn signed(&self, token: &Parts<'_>) -> bool {
        let ours = token.header["alg"] == ALGORITHM && token.header["kid"] == *self.id;
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        let verified = public.verify(token.signed.as_bytes(), &token.signature);
        ours && verified.is_ok()
    }

    /// The public key as a JWK.
    pub(super) fn published(&self) -> Value {
        // 0x04, x and y.
        let point = self.pair.public_key().as_ref();
        let (x, y) = point[1..].split_at((point.len() - 1) / 2);
        json!({
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": BASE64.encode(x),
            "y": BASE64.encode(y),
        })
    }
}

/// The parts of a token. None of them can be trusted before the signature is verified.
pub(super) struct Parts<'a> {
    header: Value,
    /// The signed part.
    signed: &'a str,
    /// JSON.
    pub(super) claims: Vec<u8>,
    signature: Vec<u8>,
}

impl<'a> Parts<'a> {
    /// Splits a token; `None` if it is not of this format.
    pub(super) fn of(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        Some(Self {
            header: serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?,
            signed,
            claims: BASE64.decode(claims).ok()?,
            signature: BASE64.decode(signature).ok()?,
        })
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
