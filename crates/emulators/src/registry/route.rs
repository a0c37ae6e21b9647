//! What a path leads to.

use http::Method;

use super::{
    digest::Digest,
    error::{ErrorCode, RegistryError},
    names::{RepositoryName, Tag},
};

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Base,
    Catalog,
    Token,
    Tags(RepositoryName),
    Referrers(RepositoryName, Digest),
    Manifest(RepositoryName, Reference),
    Blob(RepositoryName, Digest),
    NewUpload(RepositoryName),
    Upload(RepositoryName, String),
}

/// A manifest of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    Tag(Tag),
    Digest(Digest),
}

impl Route {
    pub(super) fn parse(path: &str) -> Result<Self, RegistryError> {
        let path = match path {
            "/v2" | "/v2/" => return Ok(Self::Base),
            "/v2/_catalog" => return Ok(Self::Catalog),
            "/token" => return Ok(Self::Token),
            path => path.strip_prefix("/v2/").ok_or_else(|| unknown(path))?,
        };
        let parts: Vec<_> = path.split('/').collect();
        // From the end: the name of a repository may itself contain these words.
        match parts.as_slice() {
            [name @ .., "blobs", "uploads"] | [name @ .., "blobs", "uploads", ""] => {
                Ok(Self::NewUpload(repository(name)?))
            }
            [name @ .., "blobs", "uploads", id] => {
                Ok(Self::Upload(repository(name)?, (*id).to_owned()))
            }
            [name @ .., "blobs", text] => Ok(Self::Blob(repository(name)?, digest(text)?)),
            [name @ .., "manifests", text] => {
                Ok(Self::Manifest(repository(name)?, reference(text)?))
            }
            [name @ .., "referrers", text] => Ok(Self::Referrers(repository(name)?, digest(text)?)),
            [name @ .., "tags", "list"] => Ok(Self::Tags(repository(name)?)),
            _ => Err(unknown(path)),
        }
    }

    pub(super) fn repository(&self) -> Option<&RepositoryName> {
        match self {
            Self::Base | Self::Catalog | Self::Token => None,
            Self::Tags(name)
            | Self::Referrers(name, _)
            | Self::Manifest(name, _)
            | Self::Blob(name, _)
            | Self::NewUpload(name)
            | Self::Upload(name, _) => Some(name),
        }
    }

    /// Whether a request changes the repository.
    pub(super) fn is_write(&self, method: &Method) -> bool {
        matches!(self, Self::NewUpload(_) | Self::Upload(..))
            || !matches!(*method, Method::GET | Method::HEAD)
    }
}

fn unknown(path: &str) -> RegistryError {
    RegistryError::new(ErrorCode::NameUnknown, "there is nothing at this path").about("path", path)
}

fn repository(parts: &[&str]) -> Result<RepositoryName, RegistryError> {
    let name = parts.join("/");
    name.parse().map_err(|error: super::NameError| {
        RegistryError::new(ErrorCode::NameInvalid, error.to_string()).about("name", name)
    })
}

pub(super) fn digest(text: &str) -> Result<Digest, RegistryError> {
    // Some clients encode the colon.
    let text = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    text.parse().map_err(|error: super::DigestError| {
        RegistryError::new(ErrorCode::DigestInvalid, error.to_string()).about("digest", text)
    })
}

fn reference(text: &str) -> Result<Reference, RegistryError> {
    if text.contains(':') || text.to_ascii_lowercase().contains("%3a") {
        return digest(text).map(Reference::Digest);
    }
    let tag = text.parse().map_err(|error: super::NameError| {
        RegistryError::new(ErrorCode::TagInvalid, error.to_string()).about("tag", text)
    });
    tag.map(Reference::Tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_may_have_the_words_of_paths_in_its_name() {
        let digest = Digest::of(b"");
        let name = |name: &str| name.parse::<RepositoryName>().unwrap();
        for (path, expected) in [
            ("/v2/".to_owned(), Route::Base),
            (
                format!("/v2/a/blobs/{digest}"),
                Route::Blob(name("a"), digest.clone()),
            ),
            (
                format!("/v2/blobs/uploads/blobs/{digest}"),
                Route::Blob(name("blobs/uploads"), digest.clone()),
            ),
            (
                "/v2/a/blobs/uploads/".to_owned(),
                Route::NewUpload(name("a")),
            ),
            (
                "/v2/a/blobs/uploads".to_owned(),
                Route::NewUpload(name("a")),
            ),
            (
                "/v2/a/blobs/uploads/7".to_owned(),
                Route::Upload(name("a"), "7".to_owned()),
            ),
            (
                "/v2/tags/list/tags/list".to_owned(),
                Route::Tags(name("tags/list")),
            ),
            (
                "/v2/a/manifests/v1".to_owned(),
                Route::Manifest(name("a"), Reference::Tag("v1".parse().unwrap())),
            ),
        ] {
            assert_eq!(Route::parse(&path).unwrap(), expected, "{path}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_path_has_a_code() {
        for (path, code) in [
            ("/", ErrorCode::NameUnknown),
            ("/v2/a", ErrorCode::NameUnknown),
            ("/v2/A/tags/list", ErrorCode::NameInvalid),
            ("/v2/../etc/tags/list", ErrorCode::NameInvalid),
            ("/v2/a/blobs/sha256:1", ErrorCode::DigestInvalid),
            ("/v2/a/blobs/latest", ErrorCode::DigestInvalid),
            ("/v2/a/manifests/md5:00", ErrorCode::DigestInvalid),
            ("/v2/a/manifests/.x", ErrorCode::TagInvalid),
            ("/v2/tags/list", ErrorCode::NameInvalid),
        ] {
            assert_eq!(Route::parse(path).unwrap_err().code, code, "{path}");
        }
    }
}
