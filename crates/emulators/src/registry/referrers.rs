//! The manifests that are about another one: signatures, SBOMs.

use http::{HeaderName, HeaderValue, Response, Uri, header};
use neap_kit::client::Body;
use serde_json::{Value, json};

use super::{
    Registry, digest::Digest, index::ManifestRecord, manifest::OCI_INDEX, names::RepositoryName,
};

const FILTERS_APPLIED: HeaderName = HeaderName::from_static("oci-filters-applied");

impl Registry {
    /// An index of the referrers. A manifest that is not there has none.
    pub(super) fn referrers(
        &self,
        name: &RepositoryName,
        digest: &Digest,
        uri: &Uri,
    ) -> Response<Body> {
        let query = uri.query().unwrap_or_default();
        let wanted = form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == "artifactType")
            .map(|(_, value)| value.into_owned());
        let subject = digest.to_string();
        let is_wanted = |record: &ManifestRecord| {
            record.subject.as_ref() == Some(&subject)
                && (wanted.is_none() || record.artifact_type == wanted)
        };
        let manifests: Vec<_> = {
            let index = self.index.lock();
            let repository = index.repository(name).into_iter();
            let manifests = repository.flat_map(|repository| &repository.manifests);
            manifests
                .filter(|(_, record)| is_wanted(record))
                .map(|(digest, record)| descriptor(digest, record))
                .collect()
        };
        let body = json!({
            "schemaVersion": 2,
            "mediaType": OCI_INDEX,
            "manifests": manifests,
        });
        let mut response = Response::new(Body::from(body.to_string()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(OCI_INDEX));
        if wanted.is_some() {
            let applied = HeaderValue::from_static("artifactType");
            headers.insert(FILTERS_APPLIED, applied);
        }
        response
    }
}

fn descriptor(digest: &Digest, record: &ManifestRecord) -> Value {
    let mut descriptor = json!({
        "mediaType": record.media_type,
        "digest": digest.to_string(),
        "size": record.size,
    });
    if let Some(artifact_type) = &record.artifact_type {
        descriptor["artifactType"] = artifact_type.clone().into();
    }
    if !record.annotations.is_empty() {
        descriptor["annotations"] = json!(record.annotations);
    }
    descriptor
}
