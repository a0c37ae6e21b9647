//! Key rings: public keys, their subkeys, and until when they hold.

use aws_lc_rs::{
    digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512, digest},
    signature::{
        ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
        RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
    },
};

use super::packets::{self, Cursor, Error, Packet};

const PUBLIC_KEY: u8 = 6;
const PUBLIC_SUBKEY: u8 = 14;
const SIGNATURE: u8 = 2;
const RSA: [u8; 2] = [1, 3];
const EDDSA: u8 = 22;
/// 1.3.6.1.4.1.11591.15.1
const ED25519_CURVE: [u8; 9] = [0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];
/// Types of signatures about keys.
const REVOKES: [u8; 2] = [0x20, 0x28];
const KEY_EXPIRES: u8 = 9;

/// The public keys of one `verifier-public-key-*`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRing {
    /// The keys that may have signed.
    pub keys: Vec<PublicKey>,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// The last eight bytes of its fingerprint.
    pub id: [u8; 8],
    /// Seconds since 1970.
    pub created: u32,
    /// Seconds after its creation at which it ends.
    pub lifetime: Option<u32>,
    /// Whether its owner withdrew it.
    pub revoked: bool,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Ed25519(Vec<u8>),
}

/// The hashes that count. SHA-1 and older ones do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// 8.
    Sha256,
    /// 9.
    Sha384,
    /// 10.
    Sha512,
}

impl HashAlgorithm {
    /// The hash of this number.
    pub fn of(number: u8) -> Option<Self> {
        match number {
            8 => Some(Self::Sha256),
            9 => Some(Self::Sha384),
            10 => Some(Self::Sha512),
            _ => None,
        }
    }

    fn digest(self, content: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => &SHA256,
            Self::Sha384 => &SHA384,
            Self::Sha512 => &SHA512,
        };
        digest(algorithm, content).as_ref().to_vec()
    }
}

impl KeyRing {
    /// Reads keys. Those of other kinds are left out: they verify nothing.
    pub fn read(content: &[u8]) -> Result<Self, Error> {
        let mut keys: Vec<PublicKey> = Vec::new();
        let mut is_known = false;
        for packet in packets::read(content)? {
            match packet.tag {
                PUBLIC_KEY | PUBLIC_SUBKEY => {
                    let key = public_key(&packet)?;
                    is_known = key.is_some();
                    keys.extend(key);
                }
                SIGNATURE if is_known => {
                    if let Some(key) = keys.last_mut() {
                        about(key, &packet.body);
                    }
                }
                _ => {}
            }
        }
        if keys.is_empty() {
            return Err(Error::NotOpenPgp);
        }
        Ok(Self { keys })
    }
}

/// A public key of a kind that is understood.
fn public_key(packet: &Packet) -> Result<Option<PublicKey>, Error> {
    let mut cursor = Cursor(&packet.body);
    if cursor.byte()? != 4 {
        return Ok(None);
    }
    let created = cursor.number(4)?;
    let algorithm = cursor.byte()?;
    let material = if RSA.contains(&algorithm) {
        Material::Rsa {
            n: cursor.integer()?.to_vec(),
            e: cursor.integer()?.to_vec(),
        }
    } else if algorithm == EDDSA {
        let length = usize::from(cursor.byte()?);
        let curve = cursor.take(length)?;
        let point = cursor.integer()?;
        match point.split_first() {
            Some((0x40, key)) if curve == ED25519_CURVE => Material::Ed25519(key.to_vec()),
            _ => return Ok(None),
        }
    } else {
        return Ok(None);
    };
    let length = u16::try_from(packet.body.len()).map_err(|_| Error::NotOpenPgp)?;
    let hashed = [&[0x99], &length.to_be_bytes()[..], &packet.body].concat();
    let fingerprint = digest(&SHA1_FOR_LEGACY_USE_ONLY, &hashed);
    let id = fingerprint.as_ref().last_chunk::<8>();
    Ok(Some(PublicKey {
        id: *id.ok_or(Error::NotOpenPgp)?,
        created,
        lifetime: None,
        revoked: false,
        material,
    }))
}

/// Notes what a signature in the ring says about the key before it. The ring is trusted as a whole, so that the
/// signature itself need not be checked.
fn about(key: &mut PublicKey, signature: &[u8]) {
    let [4, kind, _, _, high, low, rest @ ..] = signature else {
        return;
    };
    if REVOKES.contains(kind) {
        key.revoked = true;
        return;
    }
    let length = usize::from(*high) << 8 | usize::from(*low);
    let Some(hashed) = rest.get(..length) else {
        return;
    };
    for (kind, content) in subpackets(hashed) {
        if kind == KEY_EXPIRES
            && let Ok(seconds) = Cursor(&content).number(4)
        {
            key.lifetime = (seconds > 0).then_some(seconds);
        }
    }
}

/// The parts of a signature: kind and content. What is damaged ends them.
pub fn subpackets(area: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut cursor = Cursor(area);
    let mut found = Vec::new();
    while !cursor.0.is_empty() {
        let Ok(Some(part)) = subpacket(&mut cursor) else {
            break;
        };
        found.push(part);
    }
    found
}

fn subpacket(cursor: &mut Cursor<'_>) -> Result<Option<(u8, Vec<u8>)>, Error> {
    let first = cursor.byte()?;
    let length = match first {
        0..192 => usize::from(first),
        192..255 => (usize::from(first) - 192) * 256 + usize::from(cursor.byte()?) + 192,
        255 => cursor.number(4)? as usize,
    };
    let body = cursor.take(length)?;
    // The highest bit says that readers must understand the part.
    Ok(body
        .split_first()
        .map(|(kind, content)| (kind & 0x7f, content.to_vec())))
}

impl PublicKey {
    /// Whether it held at this time.
    pub fn held_at(&self, seconds: u32) -> bool {
        let ends = self
            .lifetime
            .map(|lifetime| self.created.saturating_add(lifetime));
        !self.revoked && seconds >= self.created && ends.is_none_or(|ends| seconds < ends)
    }

    /// Whether `signature`, the numbers of a signature packet, is one of `content` by this key.
    pub fn verifies(&self, hash: HashAlgorithm, content: &[u8], signature: &[u8]) -> bool {
        let mut numbers = Cursor(signature);
        match &self.material {
            Material::Rsa { n, e } => {
                let Ok(number) = numbers.integer() else {
                    return false;
                };
                let Some(padding) = n.len().checked_sub(number.len()) else {
                    return false;
                };
                let padded = [&vec![0; padding], number].concat();
                let parameters = match hash {
                    HashAlgorithm::Sha256 => &RSA_PKCS1_2048_8192_SHA256,
                    HashAlgorithm::Sha384 => &RSA_PKCS1_2048_8192_SHA384,
                    HashAlgorithm::Sha512 => &RSA_PKCS1_2048_8192_SHA512,
                };
                let key = RsaPublicKeyComponents { n, e };
                key.verify(parameters, content, &padded).is_ok()
            }
            Material::Ed25519(key) => {
                let (Ok(r), Ok(s)) = (numbers.integer(), numbers.integer()) else {
                    return false;
                };
                let mut joined = [0; 64];
                for (number, half) in [r, s].into_iter().zip(joined.chunks_mut(32)) {
                    let Some(padding) = half.len().checked_sub(number.len()) else {
                        return false;
                    };
                    half[padding..].copy_from_slice(number);
                }
                let key = UnparsedPublicKey::new(&ED25519, key);
                key.verify(&hash.digest(content), &joined).is_ok()
            }
        }
    }
}
