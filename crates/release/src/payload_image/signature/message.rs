//! A signed message about an image.

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};
use jiff::Timestamp;
use serde::Deserialize;

use super::{
    keys::{HashAlgorithm, KeyRing, subpackets},
    packets::{self, Cursor, Packet},
};
use crate::oci::digest::Digest;

const COMPRESSED: u8 = 8;
const LITERAL: u8 = 11;
const SIGNATURE: u8 = 2;
const TYPE: &str = "atomic container signature";
/// What a message may unpack to.
const MAX_CONTENT: u64 = 1 << 20;
const CREATED: u8 = 2;
const EXPIRES: u8 = 3;
const ISSUER: u8 = 16;

/// Why a signature does not count.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is by a key that the ring does not have.
    #[error("it is by another key")]
    OtherKey,
    /// It is not OpenPGP.
    #[error("it cannot be read")]
    Unreadable(#[from] packets::Error),
    /// It cannot be unpacked.
    #[error("it cannot be unpacked")]
    Unpack(#[source] std::io::Error),
    /// It has no content or no signature.
    #[error("it is no signed message")]
    NotSigned,
    /// It is compressed in a way that is not understood.
    #[error("it is compressed with algorithm {0}, which is not supported")]
    Compression(u8),
    /// The signature is of the key and not of the content.
    #[error("the signature is not of this content")]
    Wrong,
    /// It is too old.
    #[error("the signature has expired")]
    Expired,
    /// The key ended before.
    #[error("the key had expired or was revoked when it was used")]
    KeyEnded,
    /// The content is not a claim about an image.
    #[error("its content is not understood")]
    Content(#[source] serde_json::Error),
    /// Another kind of claim.
    #[error("its type is {0:?}, and must be {TYPE:?}")]
    Type(String),
    /// It names no reference.
    #[error("it names no reference")]
    NoReference,
    /// It is about another image.
    #[error("it is about {0}")]
    OtherImage(String),
}

/// What a signature claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The image, as its signer named it.
    pub reference: String,
    /// The program that made it.
    pub creator: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    critical: Critical,
    #[serde(default)]
    optional: Option<Additional>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Critical {
    #[serde(rename = "type")]
    kind: String,
    image: Image,
    identity: Identity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Image {
    docker_manifest_digest: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Identity {
    docker_reference: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Additional {
    #[serde(default)]
    creator: Option<String>,
    #[serde(default, rename = "timestamp")]
    _timestamp: Option<i64>,
}

/// Checks that a message is signed by a key of the ring, and is about `digest`.
pub fn verify(
    ring: &KeyRing,
    message: &[u8],
    digest: &Digest,
    now: Timestamp,
) -> Result<Claims, Refusal> {
    let packets = unpacked(packets::read(message)?)?;
    let literal = packets.iter().find(|packet| packet.tag == LITERAL);
    let content = content(literal.ok_or(Refusal::NotSigned)?)?;
    let mut refusal = Refusal::NotSigned;
    let mut is_signed = false;
    for packet in packets.iter().filter(|packet| packet.tag == SIGNATURE) {
        match check(ring, &packet.body, &content, now) {
            Ok(()) => {
                is_signed = true;
                break;
            }
            Err(found) => refusal = found,
        }
    }
    if !is_signed {
        return Err(refusal);
    }
    claims(&content, digest)
}

/// The packets, out of a compressed one if there is one.
fn unpacked(packets: Vec<Packet>) -> Result<Vec<Packet>, Refusal> {
    let Some(packet) = packets.iter().find(|packet| packet.tag == COMPRESSED) else {
        return Ok(packets);
    };
    let (algorithm, packed) = packet.body.split_first().ok_or(packets::Error::Truncated)?;
    let reader: Box<dyn Read> = match algorithm {
        0 => Box::new(packed),
        1 => Box::new(DeflateDecoder::new(packed)),
        2 => Box::new(ZlibDecoder::new(packed)),
        other => return Err(Refusal::Compression(*other)),
    };
    let mut content = Vec::new();
    let read = reader.take(MAX_CONTENT).read_to_end(&mut content);
    read.map_err(Refusal::Unpack)?;
    Ok(packets::split(&content)?)
}

/// The content of a literal packet.
fn content(packet: &Packet) -> Result<Vec<u8>, Refusal> {
    let mut cursor = Cursor(&packet.body);
    cursor.byte()?;
    let name = usize::from(cursor.byte()?);
    cursor.take(name + 4)?;
    Ok(cursor.0.to_vec())
}

/// A signature packet, as far as it matters.
struct Parsed<'a> {
    hash: Option<HashAlgorithm>,
    /// What is hashed after the content.
    trailer: Vec<u8>,
    created: u32,
    expires_after: u32,
    issuer: Option<Vec<u8>>,
    numbers: &'a [u8],
}

fn parse(body: &[u8]) -> Result<Parsed<'_>, Refusal> {
    let mut cursor = Cursor(body);
    match cursor.byte()? {
        4 => version_4(body, cursor),
        3 => {
            if cursor.byte()? != 5 {
                return Err(Refusal::NotSigned);
            }
            let trailer = Cursor(cursor.0).take(5)?.to_vec();
            let is_binary = cursor.byte()? == 0;
            let created = cursor.number(4)?;
            let issuer = cursor.take(8)?.to_vec();
            cursor.byte()?;
            let hash = HashAlgorithm::of(cursor.byte()?).filter(|_| is_binary);
            cursor.take(2)?;
            Ok(Parsed {
                hash,
                trailer,
                created,
                expires_after: 0,
                issuer: Some(issuer),
                numbers: cursor.0,
            })
        }
        _ => Err(Refusal::NotSigned),
    }
}

fn version_4<'a>(body: &'a [u8], mut cursor: Cursor<'a>) -> Result<Parsed<'a>, Refusal> {
    let is_binary = cursor.byte()? == 0;
    cursor.byte()?;
    let hash = HashAlgorithm::of(cursor.byte()?).filter(|_| is_binary);
    let length = cursor.number(2)? as usize;
    let hashed = subpackets(cursor.take(length)?);
    let end = body.len() - cursor.0.len();
    let mut trailer = body[..end].to_vec();
    let length = u32::try_from(end).unwrap_or(u32::MAX);
    trailer.extend_from_slice(&[4, 0xff]);
    trailer.extend_from_slice(&length.to_be_bytes());
    let length = cursor.number(2)? as usize;
    let unhashed = subpackets(cursor.take(length)?);
    cursor.take(2)?;
    let number = |kind: u8| {
        let found = hashed.iter().find(|(it, _)| *it == kind);
        found.map_or(Ok(0), |(_, content)| Cursor(content).number(4))
    };
    // The issuer is only a hint which key to try; it need not be signed.
    let issuer = hashed.iter().chain(&unhashed);
    let issuer = issuer.clone().find(|(kind, _)| *kind == ISSUER);
    Ok(Parsed {
        hash,
        trailer,
        created: number(CREATED)?,
        expires_after: number(EXPIRES)?,
        issuer: issuer.map(|(_, content)| content.clone()),
        numbers: cursor.0,
    })
}

fn check(ring: &KeyRing, body: &[u8], content: &[u8], now: Timestamp) -> Result<(), Refusal> {
    let signature = parse(body)?;
    let hash = signature.hash.ok_or(Refusal::Wrong)?;
    let keys = ring.keys.iter().filter(|key| {
        let issuer = signature.issuer.as_ref();
        issuer.is_none_or(|issuer| issuer[..] == key.id[..])
    });
    let signed = [content, &signature.trailer].concat();
    let mut refusal = Refusal::OtherKey;
    for key in keys {
        if !key.verifies(hash, &signed, signature.numbers) {
            refusal = Refusal::Wrong;
            continue;
        }
        if !key.held_at(signature.created) {
            return Err(Refusal::KeyEnded);
        }
        let ends = i64::from(signature.created) + i64::from(signature.expires_after);
        if signature.expires_after > 0 && now.as_second() >= ends {
            return Err(Refusal::Expired);
        }
        return Ok(());
    }
    Err(refusal)
}

fn claims(content: &[u8], digest: &Digest) -> Result<Claims, Refusal> {
    let document: Document = serde_json::from_slice(content).map_err(Refusal::Content)?;
    let Critical {
        kind,
        image,
        identity,
    } = document.critical;
    if kind != TYPE {
        return Err(Refusal::Type(kind));
    }
    if identity.docker_reference.is_empty() {
        return Err(Refusal::NoReference);
    }
    if image.docker_manifest_digest != digest.to_string() {
        return Err(Refusal::OtherImage(image.docker_manifest_digest));
    }
    Ok(Claims {
        reference: identity.docker_reference,
        creator: document.optional.and_then(|it| it.creator),
    })
}
