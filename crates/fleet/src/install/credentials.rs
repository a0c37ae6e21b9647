//! Names, keys and kubeconfigs that a cluster gets.

use std::time::Duration;

use aws_lc_rs::{
    encoding::AsDer,
    rand,
    rsa::{KeyPair, KeySize},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer,
    KeyPair as CertificateKey, KeyUsagePurpose,
};
use serde_json::json;
use x509_parser::{pem::Pem, prelude::X509Certificate};

use super::ClusterGraph;

/// Letters and digits that cannot be mistaken for each other and make no words.
const UNAMBIGUOUS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest name of an infrastructure, without its random end.
const MAX_INFRA_NAME: usize = 27;
/// A kubeconfig of a user is renewed when it is valid for less than this, in seconds.
const RENEW_BEFORE: i64 = 275 * 24 * 3600;

/// Why something could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialError {
    /// There is no randomness.
    #[error("a random name or key could not be made")]
    Random,
    /// The authority that the installer left behind cannot be used.
    #[error("the authority of the cluster cannot be used")]
    Authority(#[from] rcgen::Error),
}

/// Random characters of `alphabet`.
fn random(alphabet: &[u8], length: usize) -> Result<String, CredentialError> {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let mut bytes = [0; 32];
        rand::fill(&mut bytes).map_err(|_| CredentialError::Random)?;
        // Bytes beyond a multiple of the length would favour the first characters.
        let fair = bytes
            .iter()
            .filter(|byte| usize::from(**byte) < 256 / alphabet.len() * alphabet.len());
        let chosen = fair.map(|byte| char::from(alphabet[usize::from(*byte) % alphabet.len()]));
        text.extend(chosen.take(length - text.len()));
    }
    Ok(text)
}

/// The name of the infrastructure of a cluster: its own, cut, and five random characters.
pub(super) fn infra_id(name: &str) -> Result<String, CredentialError> {
    let lower = name.to_lowercase();
    let clean: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(MAX_INFRA_NAME)
        .collect();
    Ok(format!(
        "{}-{}",
        clean.trim_matches('-'),
        random(UNAMBIGUOUS, 5)?
    ))
}

/// The end of the names of storage accounts.
pub(super) fn storage_suffix() -> Result<String, CredentialError> {
    random(UNAMBIGUOUS, 10)
}

/// A new RSA key for SSH, PKCS #8 in base64.
pub(super) fn ssh_key() -> Result<String, CredentialError> {
    let key = KeyPair::generate(KeySize::Rsa2048).map_err(|_| CredentialError::Random)?;
    let der = key.as_der().map_err(|_| CredentialError::Random)?;
    Ok(STANDARD.encode(der.as_ref()))
}

/// A user of a kubeconfig.
pub(super) struct KubeconfigUser {
    /// The common name.
    pub(super) name: &'static str,
    /// How long it is valid.
    pub(super) valid: Duration,
}

/// A kubeconfig for `user`, an administrator of the cluster.
pub(super) fn kubeconfig(
    graph: &ClusterGraph,
    user: &KubeconfigUser,
    now: Timestamp,
) -> Result<String, CredentialError> {
    let signer_key = CertificateKey::from_pem(&graph.signer_key)?;
    let issuer = Issuer::from_ca_cert_pem(&graph.signer_certificate, signer_key)?;
    let mut names = DistinguishedName::new();
    names.push(DnType::OrganizationName, "system:masters");
    names.push(DnType::CommonName, user.name);
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = names;
    // A clock that is behind must not refuse it.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    parameters.not_before = epoch + Duration::from_secs(seconds.saturating_sub(3600));
    parameters.not_after = epoch + Duration::from_secs(seconds) + user.valid;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = CertificateKey::generate()?;
    let certificate = parameters.signed_by(&key, &issuer)?;
    let (name, cluster) = (user.name, "cluster");
    let text = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {
            "server": graph.api_url,
            "certificate-authority-data": STANDARD.encode(&graph.authority),
        }}],
        "users": [{"name": name, "user": {
            "client-certificate-data": STANDARD.encode(certificate.pem()),
            "client-key-data": STANDARD.encode(key.serialize_pem()),
        }}],
        "contexts": [{"name": name, "context": {"cluster": cluster, "user": name}}],
        "current-context": name,
    });
    Ok(format!("{text:#}\n"))
}

/// Whether a kubeconfig is missing, unreadable, or valid for too short a time.
pub(super) fn is_renewed(kubeconfig: &str, now: Timestamp) -> bool {
    not_after(kubeconfig).is_none_or(|end| end - now.as_second() < RENEW_BEFORE)
}

/// When the certificate in a kubeconfig ends.
fn not_after(kubeconfig: &str) -> Option<i64> {
    let parsed: serde_json::Value = serde_json::from_str(kubeconfig).ok()?;
    let data = parsed.pointer("/users/0/user/client-certificate-data")?;
    let pem = STANDARD.decode(data.as_str()?).ok()?;
    let pem = Pem::iter_from_buffer(&pem).next()?.ok()?;
    let certificate: X509Certificate<'_> = pem.parse_x509().ok()?;
    Some(certificate.validity().not_after.timestamp())
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, IsCa};

    use super::*;

    fn graph() -> ClusterGraph {
        let key = CertificateKey::generate().unwrap();
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = parameters.self_signed(&key).unwrap();
        ClusterGraph {
            api_url: "https://127.0.0.1:6443".to_owned(),
            authority: authority.pem(),
            signer_certificate: authority.pem(),
            signer_key: key.serialize_pem(),
            kubeadmin_password: "p".to_owned(),
            console_url: String::new(),
            infra_id: "c-12345".to_owned(),
        }
    }

    #[test]
    fn a_kubeconfig_is_renewed_long_before_it_ends() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let user = KubeconfigUser {
            name: "system:admin",
            valid: Duration::from_hours(24 * 365),
        };
        let text = kubeconfig(&graph(), &user, now).unwrap();
        assert!(!is_renewed(&text, now));
        let later = |days: i64| now + jiff::SignedDuration::from_hours(24 * days);
        assert!(!is_renewed(&text, later(89)));
        assert!(is_renewed(&text, later(91)));
        assert!(is_renewed("", now) && is_renewed("{}", now));
    }

    #[test]
    fn names_fit_what_they_name() {
        let id = infra_id("My_Cluster.With-A-Very-Long-Name-Indeed").unwrap();
        assert!(
            id.len() <= 33 && id.starts_with("my-cluster-with-a-very-lon"),
            "{id}"
        );
        assert_ne!(infra_id("a").unwrap(), infra_id("a").unwrap());
        assert_eq!(storage_suffix().unwrap().len(), 10);
    }
}
