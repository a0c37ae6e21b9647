//! Which schema an image reads.

/// A version of the schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemaVersion {
    /// From 2026-03-02, when `grpc` backends got their present form, until 2026-03-26.
    March2026,
    /// Since 2026-03-26.
    Newest,
}

/// What the tag of an image says about its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagVersion {
    /// The schema is known.
    Known(SchemaVersion),
    /// The image is older than all known schemas.
    TooOld(String),
    /// The tag names no version: the newest schema is assumed.
    Unknown(String),
}

impl TagVersion {
    /// The schema to check with.
    pub fn schema(&self) -> SchemaVersion {
        match self {
            Self::Known(version) => *version,
            Self::TooOld(_) => SchemaVersion::March2026,
            Self::Unknown(_) => SchemaVersion::Newest,
        }
    }

    /// What the user should know; none if the schema is known.
    pub fn warning(&self, image: &str) -> Option<String> {
        match self {
            Self::Known(_) => None,
            Self::TooOld(date) => Some(format!(
                "the image {image} is of {date}, and configurations before 2026-03-02 had other forms: \
                 use a newer image"
            )),
            Self::Unknown(tag) => Some(format!(
                "the tag {tag:?} of {image} names no version of Buildbarn, so the configuration is \
                 checked against the newest schema: use a tag such as 20260527T162223Z-c48dcda"
            )),
        }
    }
}

/// The version of an image. Buildbarn's tags are the time of the commit, and the commit:
/// `20260527T162223Z-c48dcda`.
pub fn version_of(image: &str) -> TagVersion {
    let image = image.split('@').next().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let tag = name.split_once(':').map_or("latest", |(_, tag)| tag);
    let date = tag.get(..8).filter(|_| is_version(tag));
    match date {
        None => TagVersion::Unknown(tag.to_owned()),
        Some(date) if date < "20260302" => {
            TagVersion::TooOld(format!("{}-{}-{}", &date[..4], &date[4..6], &date[6..]))
        }
        Some(date) if date < "20260326" => TagVersion::Known(SchemaVersion::March2026),
        Some(_) => TagVersion::Known(SchemaVersion::Newest),
    }
}

fn is_version(tag: &str) -> bool {
    let Some((time, commit)) = tag.split_once('-') else {
        return false;
    };
    let bytes = time.as_bytes();
    let digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
    time.is_ascii()
        && bytes.len() == 16
        && (bytes[8], bytes[15]) == (b'T', b'Z')
        && digits(0..8)
        && digits(9..15)
        && commit.len() >= 7
        && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}
