use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::{RootCertStore, pki_types::CertificateDer};

use super::*;

struct Authority(Issuer<'static, KeyPair>, CertificateDer<'static>);

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let der = params.self_signed(&key).unwrap().der().clone();
    Authority(Issuer::new(params, key), der)
}

impl Authority {
    /// A certificate that expires in 2027, for this subject and use.
    fn sign(
        &self,
        subject: &[(DnType, &str)],
        usage: Option<ExtendedKeyUsagePurpose>,
    ) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(2027, 1, 1);
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.extended_key_usages = usage.into_iter().collect();
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, &self.0).unwrap().der().clone()
    }
}

fn trusting(authority: &Authority, environment: &Environment) -> Certificates {
    let mut roots = RootCertStore::empty();
    roots.add(authority.1.clone()).unwrap();
    Certificates::signed_by(roots, environment.clock.clone()).unwrap()
}

const CLIENT: Option<ExtendedKeyUsagePurpose> = Some(ExtendedKeyUsagePurpose::ClientAuth);

#[tokio::test(start_paused = true)]
async fn the_common_name_is_the_user_and_organizations_are_groups() {
    let (environment, ours) = (Environment::simulated(1), authority());
    let certificates = trusting(&ours, &environment);
    let subject = [
        (DnType::OrganizationName, "devs"),
        // The library keeps one value of each sort: this is the same attribute under another name.
        (DnType::CustomDnType(vec![2, 5, 4, 10]), "ops"),
        (
            DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]),
            "u-1",
        ),
        (DnType::CommonName, "carol"),
    ];
    for usage in [CLIENT, None] {
        let certificate = ours.sign(&subject, usage);
        let Verdict::Known(carol) = certificates.holder(std::slice::from_ref(&certificate)) else {
            panic!("no user");
        };
        assert_eq!((carol.name.as_str(), carol.uid.as_str()), ("carol", "u-1"));
        assert_eq!(carol.groups, ["devs", "ops", AUTHENTICATED]);
        let credential = &carol.extra["authentication.kubernetes.io/credential-id"];
        let print = credential[0].strip_prefix("X509SHA256=").unwrap();
        assert_eq!(print.len(), 64);
        // The cached result is the same.
        assert_eq!(certificates.holder(&[certificate]), Verdict::Known(carol));
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_signers_server_certificates_and_missing_names_have_no_user() {
    let (environment, ours, theirs) = (Environment::simulated(1), authority(), authority());
    let certificates = trusting(&ours, &environment);
    let carol = [(DnType::CommonName, "carol")];
    let server = Some(ExtendedKeyUsagePurpose::ServerAuth);
    for (certificate, verdict) in [
        (theirs.sign(&carol, CLIENT), Verdict::Wrong),
        (ours.sign(&carol, server), Verdict::Wrong),
        (
            ours.sign(&[(DnType::OrganizationName, "devs")], CLIENT),
            Verdict::Silent,
        ),
        (CertificateDer::from(vec![1, 2, 3]), Verdict::Wrong),
    ] {
        let chain = [certificate];
        assert_eq!(certificates.holder(&chain), verdict);
        assert_eq!(certificates.holder(&chain), verdict);
    }
    assert_eq!(certificates.holder(&[]), Verdict::Silent);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_ends_though_it_is_remembered() {
    let (environment, ours) = (Environment::simulated(1), authority());
    let certificates = trusting(&ours, &environment);
    let chain = [ours.sign(&[(DnType::CommonName, "carol")], CLIENT)];
    assert!(matches!(certificates.holder(&chain), Verdict::Known(_)));
    environment
        .clock
        .sleep(Duration::from_hours(24 * 366))
        .await;
    assert_eq!(certificates.holder(&chain), Verdict::Wrong);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_does_not_outlive_those_that_vouch_for_it() {
    let (environment, ours) = (Environment::simulated(1), authority());
    let certificates = trusting(&ours, &environment);
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "between");
    params.not_after = rcgen::date_time_ymd(2026, 2, 1);
    let key = KeyPair::generate().unwrap();
    let der = params.signed_by(&key, &ours.0).unwrap().der().clone();
    let between = Authority(Issuer::new(params, key), der);
    let chain = [
        between.sign(&[(DnType::CommonName, "carol")], CLIENT),
        between.1.clone(),
    ];
    assert!(matches!(certificates.holder(&chain), Verdict::Known(_)));
    environment.clock.sleep(Duration::from_hours(24 * 60)).await;
    assert_eq!(certificates.holder(&chain), Verdict::Wrong);
}
