use std::sync::LazyLock;

use jiff::Timestamp;
use neap_pocket::{
    environment::BoxFuture,
    identity::{Tokens, Verdict},
};
use parking_lot::Mutex;

use super::*;

/// A clock that the test sets.
struct ManualClock(Mutex<Timestamp>);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<()> {
        Box::pin(std::future::pending())
    }
}

struct TestServer {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    environment: Environment,
}

impl TestServer {
    fn new() -> Self {
        let clock = Arc::new(ManualClock(Mutex::new(
            "2026-01-01T00:00:00Z".parse().unwrap(),
        )));
        let (system, _panics) = crate::environment::system(&tokio::runtime::Handle::current());
        Self {
            folder: tempfile::tempdir().unwrap(),
            environment: Environment {
                clock: clock.clone(),
                ..system
            },
            clock,
        }
    }

    fn pass(&self, days: u32) {
        let mut now = self.clock.0.lock();
        *now += DAY * days;
    }

    fn identity(&self, names: &[&str]) -> Result<Identity, Error> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        Identity::load_or_create(Some(self.folder.path()), &names, &self.environment)
    }

    fn authenticator(&self, identity: &Identity) -> Arc<dyn Authenticate> {
        identity
            .authenticator(&NOTHING, self.clock.clone())
            .unwrap()
    }

    /// The verdict on a certificate. It is requested twice, to cover the cache.
    fn holder(&self, identity: &Identity, pair: &CertificateWithKey) -> Verdict {
        let authenticator = self.authenticator(identity);
        let chain = [pair.certificate_der().unwrap()];
        let first = authenticator.certificate(&chain);
        assert_eq!(first, authenticator.certificate(&chain));
        first
    }

    fn is_admin(&self, identity: &Identity, pair: &CertificateWithKey) -> bool {
        let holder = self.holder(identity, pair);
        matches!(holder, Verdict::Known(user) if user.name == "admin" && user.is_in("system:masters"))
    }
}

static NOTHING: LazyLock<SuppliedCredentials> = LazyLock::new(|| SuppliedCredentials {
    tokens: Tokens::default(),
    authorities: RootCertStore::empty(),
    valid_from: Vec::new(),
});

#[tokio::test]
async fn second_start_loads_the_same_identity() {
    let server = TestServer::new();
    let first = server.identity(&["localhost"]).unwrap();
    let second = server.identity(&["localhost"]).unwrap();
    assert_eq!(
        (first.origin, second.origin),
        (Origin::Created, Origin::Loaded)
    );
    assert_eq!(first.authority, second.authority);
    assert_eq!(first.serving, second.serving);
    assert_eq!(first.admin, second.admin);
    assert_eq!(first.token, second.token);
}

#[tokio::test]
async fn a_missing_token_is_replaced_and_reported() {
    let server = TestServer::new();
    let first = server.identity(&["localhost"]).unwrap();
    std::fs::remove_file(server.folder.path().join("token")).unwrap();
    let second = server.identity(&["localhost"]).unwrap();
    assert_eq!(second.origin, Origin::NewToken);
    assert_ne!(first.token, second.token);
}

#[tokio::test]
async fn without_a_folder_every_identity_is_new() {
    let server = TestServer::new();
    let make = || Identity::load_or_create(None, &[], &server.environment).unwrap();
    let (one, other) = (make(), make());
    assert_eq!(other.origin, Origin::Created);
    assert_ne!(one.authority, other.authority);
    assert_ne!(one.token, other.token);
    assert!(server.is_admin(&one, &one.admin));
}

#[tokio::test]
async fn new_listen_address_renews_only_the_serving_certificate() {
    let server = TestServer::new();
    let first = server.identity(&["localhost", "127.0.0.1"]).unwrap();
    let second = server.identity(&["localhost", "2001:db8::7"]).unwrap();
    assert_eq!(second.origin, Origin::Renewed);
    assert_eq!(first.authority, second.authority);
    assert_eq!(first.admin, second.admin);
    assert_ne!(first.serving, second.serving);
    let third = server.identity(&["2001:db8::7"]).unwrap();
    assert_eq!(third.serving, second.serving);
}

#[tokio::test]
async fn certificates_and_their_authority_have_different_names() {
    let server = TestServer::new();
    let identity = server.identity(&["localhost"]).unwrap();
    // If both have the same name, OpenSSL takes the server for its own authority.
    for pair in [&identity.serving, &identity.admin] {
        let der = pair.certificate_der().unwrap();
        let (_, certificate) = x509_parser::parse_x509_certificate(&der).unwrap();
        assert_ne!(certificate.subject(), certificate.issuer());
    }
}

#[tokio::test]
async fn certificates_are_renewed_thirty_days_before_they_expire() {
    let server = TestServer::new();
    let first = server.identity(&["localhost"]).unwrap();
    server.pass(334);
    assert_eq!(
        server.identity(&["localhost"]).unwrap().origin,
        Origin::Loaded
    );
    server.pass(1);
    let renewed = server.identity(&["localhost"]).unwrap();
    assert_eq!(renewed.origin, Origin::Renewed);
    assert_eq!(renewed.admin, first.admin);
    server.pass(3650 - 335 - 30);
    let made = server.identity(&["localhost"]).unwrap();
    assert_eq!(made.origin, Origin::Created);
    assert_ne!(made.authority, first.authority);
}

#[tokio::test]
async fn without_an_authority_all_credentials_are_created() {
    let server = TestServer::new();
    let first = server.identity(&[]).unwrap();
    std::fs::remove_file(server.folder.path().join("ca.pem")).unwrap();
    let second = server.identity(&[]).unwrap();
    assert_eq!(second.origin, Origin::Created);
    assert_ne!(first.admin, second.admin);
}

#[tokio::test]
async fn damaged_file_is_named() {
    for file in ["ca.pem", "serving.pem", "admin.pem", "service-accounts.pem"] {
        let server = TestServer::new();
        server.identity(&[]).unwrap();
        let path = server.folder.path().join(file);
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\nnonsense").unwrap();
        let error = server.identity(&[]).map(|identity| identity.origin);
        assert!(
            matches!(&error, Err(Error::Damaged { path: damaged, .. } | Error::DamagedKey { path: damaged, .. }) if *damaged == path),
            "{file}: {error:?}"
        );
    }
}

#[tokio::test]
async fn only_the_right_token_is_the_admin() {
    let server = TestServer::new();
    let identity = server.identity(&[]).unwrap();
    let authenticator = server.authenticator(&identity);
    let token = &identity.token;
    let admin = authenticator.token(token).unwrap();
    assert_eq!(admin.groups, ["system:masters", "system:authenticated"]);
    for wrong in [&format!("{token}x"), &token[1..], "", " "] {
        assert_eq!(authenticator.token(wrong), None, "{wrong:?}");
    }
}

#[tokio::test]
async fn only_a_client_certificate_of_our_authority_is_the_admin() {
    let (ours, theirs) = (TestServer::new(), TestServer::new());
    let identity = ours.identity(&["localhost"]).unwrap();
    let stranger = theirs.identity(&["localhost"]).unwrap();
    assert!(ours.is_admin(&identity, &identity.admin));
    for wrong in [&identity.serving, &stranger.admin] {
        assert_eq!(ours.holder(&identity, wrong), Verdict::Wrong);
    }
}

#[tokio::test]
async fn supplied_authorities_and_tokens_are_accepted_beside_our_own() {
    let (ours, theirs) = (TestServer::new(), TestServer::new());
    let identity = ours.identity(&[]).unwrap();
    let stranger = theirs.identity(&[]).unwrap();
    let mut authorities = RootCertStore::empty();
    let theirs = stranger.authority.certificate_der().unwrap();
    authorities.add(theirs).unwrap();
    let tokens = Tokens::parse("secret,alice,7,\"devs,ops\"").unwrap();
    let supplied = SuppliedCredentials {
        tokens,
        authorities,
        valid_from: Vec::new(),
    };
    let clock = ours.clock.clone();
    let authenticator = identity.authenticator(&supplied, clock).unwrap();
    for pair in [&identity.admin, &stranger.admin] {
        let chain = [pair.certificate_der().unwrap()];
        let holder = authenticator.certificate(&chain);
        assert!(matches!(holder, Verdict::Known(_)), "{holder:?}");
    }
    let alice = authenticator.token("secret").unwrap();
    assert_eq!((alice.name.as_str(), alice.uid.as_str()), ("alice", "7"));
    assert_eq!(alice.groups, ["devs", "ops", "system:authenticated"]);
    assert!(
        authenticator
            .token(&identity.token)
            .unwrap()
            .is_in("system:masters")
    );
}

#[tokio::test]
async fn expired_certificate_is_rejected_even_if_it_was_accepted_before() {
    let server = TestServer::new();
    let identity = server.identity(&[]).unwrap();
    let authenticator = server.authenticator(&identity);
    let chain = [identity.admin.certificate_der().unwrap()];
    let holder = authenticator.certificate(&chain);
    assert!(matches!(holder, Verdict::Known(_)), "{holder:?}");
    server.pass(3651);
    assert_eq!(authenticator.certificate(&chain), Verdict::Wrong);
    assert_eq!(server.holder(&identity, &identity.admin), Verdict::Wrong);
}

#[tokio::test]
async fn tokens_differ_between_servers() {
    let (one, other) = (TestServer::new(), TestServer::new());
    assert_ne!(
        one.identity(&[]).unwrap().token,
        other.identity(&[]).unwrap().token
    );
}

#[tokio::test]
async fn certificates_that_are_not_valid_yet_are_issued_again_and_the_authority_stays() {
    let server = TestServer::new();
    let first = server.identity(&["localhost"]).unwrap();
    let began = *server.clock.0.lock();
    // The clock is ahead for one start, which renews the serving certificate.
    server.pass(350);
    let ahead = server.identity(&["localhost"]).unwrap();
    assert_ne!(first.serving, ahead.serving);
    *server.clock.0.lock() = began + DAY;
    let right = server.identity(&["localhost"]).unwrap();
    assert_eq!(right.origin, Origin::Renewed);
    assert_eq!(right.authority, first.authority);
    assert!(right.serving.valid_from().unwrap() <= began + DAY);
    assert!(ahead.serving.valid_from().unwrap() > began + DAY);
}
