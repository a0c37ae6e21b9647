use std::sync::LazyLock;

use jiff::Timestamp;
use neap_pocket::{
    environment::BoxFuture,
    identity::{Tokens, Verdict},
};
use parking_lot::Mutex;

use super::*;

/// A clock that a test sets.
struct Dial(Mutex<Timestamp>);

impl Clock for Dial {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<()> {
        Box::pin(std::future::pending())
    }
}

struct World {
    folder: tempfile::TempDir,
    dial: Arc<Dial>,
    environment: Environment,
}

impl World {
    fn new() -> Self {
        let dial = Arc::new(Dial(Mutex::new("2026-01-01T00:00:00Z".parse().unwrap())));
        let (system, _deaths) = crate::environment::system(&tokio::runtime::Handle::current());
        Self {
            folder: tempfile::tempdir().unwrap(),
            environment: Environment {
                clock: dial.clone(),
                ..system
            },
            dial,
        }
    }

    fn pass(&self, days: u32) {
        let mut now = self.dial.0.lock();
        *now += DAY * days;
    }

    fn identity(&self, names: &[&str]) -> Result<Identity, Error> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        Identity::load_or_create(Some(self.folder.path()), &names, &self.environment)
    }

    fn authenticator(&self, identity: &Identity) -> Arc<dyn Authenticate> {
        identity.authenticator(&NOTHING, self.dial.clone()).unwrap()
    }

    /// Whose certificate this is; asked twice, so that what was remembered is seen too.
    fn holder(&self, identity: &Identity, pair: &Pair) -> Verdict {
        let authenticator = self.authenticator(identity);
        let chain = [pair.certificate_der().unwrap()];
        let first = authenticator.certificate(&chain);
        assert_eq!(first, authenticator.certificate(&chain));
        first
    }

    fn is_admin(&self, identity: &Identity, pair: &Pair) -> bool {
        let holder = self.holder(identity, pair);
        matches!(holder, Verdict::Known(user) if user.name == "admin" && user.is_in("system:masters"))
    }
}

static NOTHING: LazyLock<Given> = LazyLock::new(|| Given {
    tokens: Tokens::default(),
    authorities: RootCertStore::empty(),
});

#[tokio::test]
async fn second_start_finds_the_same_identity() {
    let world = World::new();
    let first = world.identity(&["localhost"]).unwrap();
    let second = world.identity(&["localhost"]).unwrap();
    assert_eq!((first.origin, second.origin), (Origin::Made, Origin::Found));
    assert_eq!(first.authority, second.authority);
    assert_eq!(first.serving, second.serving);
    assert_eq!(first.admin, second.admin);
    assert_eq!(first.token, second.token);
}

#[tokio::test]
async fn a_lost_token_is_made_anew_and_said_to_be() {
    let world = World::new();
    let first = world.identity(&["localhost"]).unwrap();
    std::fs::remove_file(world.folder.path().join("token")).unwrap();
    let second = world.identity(&["localhost"]).unwrap();
    assert_eq!(second.origin, Origin::NewToken);
    assert_ne!(first.token, second.token);
}

#[tokio::test]
async fn without_a_folder_every_identity_is_new() {
    let world = World::new();
    let make = || Identity::load_or_create(None, &[], &world.environment).unwrap();
    let (one, other) = (make(), make());
    assert_eq!(other.origin, Origin::Made);
    assert_ne!(one.authority, other.authority);
    assert_ne!(one.token, other.token);
    assert!(world.is_admin(&one, &one.admin));
}

#[tokio::test]
async fn new_listen_address_renews_only_the_serving_certificate() {
    let world = World::new();
    let first = world.identity(&["localhost", "127.0.0.1"]).unwrap();
    let second = world.identity(&["localhost", "2001:db8::7"]).unwrap();
    assert_eq!(second.origin, Origin::Renewed);
    assert_eq!(first.authority, second.authority);
    assert_eq!(first.admin, second.admin);
    assert_ne!(first.serving, second.serving);
    let third = world.identity(&["2001:db8::7"]).unwrap();
    assert_eq!(third.serving, second.serving);
}

#[tokio::test]
async fn the_server_can_be_told_from_its_authority() {
    let world = World::new();
    let identity = world.identity(&["localhost"]).unwrap();
    // Both had one name once: OpenSSL then took the server for its own authority.
    for pair in [&identity.serving, &identity.admin] {
        let der = pair.certificate_der().unwrap();
        let (_, certificate) = x509_parser::parse_x509_certificate(&der).unwrap();
        assert_ne!(certificate.subject(), certificate.issuer());
    }
}

#[tokio::test]
async fn certificates_are_renewed_thirty_days_before_they_end() {
    let world = World::new();
    let first = world.identity(&["localhost"]).unwrap();
    world.pass(334);
    assert_eq!(
        world.identity(&["localhost"]).unwrap().origin,
        Origin::Found
    );
    world.pass(1);
    let renewed = world.identity(&["localhost"]).unwrap();
    assert_eq!(renewed.origin, Origin::Renewed);
    assert_eq!(renewed.admin, first.admin);
    world.pass(3650 - 335 - 30);
    let made = world.identity(&["localhost"]).unwrap();
    assert_eq!(made.origin, Origin::Made);
    assert_ne!(made.authority, first.authority);
}

#[tokio::test]
async fn folder_without_an_authority_is_made_anew() {
    let world = World::new();
    let first = world.identity(&[]).unwrap();
    std::fs::remove_file(world.folder.path().join("ca.pem")).unwrap();
    let second = world.identity(&[]).unwrap();
    assert_eq!(second.origin, Origin::Made);
    assert_ne!(first.admin, second.admin);
}

#[tokio::test]
async fn damaged_file_is_named() {
    for file in ["ca.pem", "serving.pem", "admin.pem", "service-accounts.pem"] {
        let world = World::new();
        world.identity(&[]).unwrap();
        let path = world.folder.path().join(file);
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\nnonsense").unwrap();
        let error = world.identity(&[]).map(|identity| identity.origin);
        assert!(
            matches!(&error, Err(Error::Damaged { path: damaged, .. } | Error::DamagedKey { path: damaged, .. }) if *damaged == path),
            "{file}: {error:?}"
        );
    }
}

#[tokio::test]
async fn only_the_right_token_is_the_admin() {
    let world = World::new();
    let identity = world.identity(&[]).unwrap();
    let authenticator = world.authenticator(&identity);
    let token = &identity.token;
    let admin = authenticator.token(token).unwrap();
    assert_eq!(admin.groups, ["system:masters", "system:authenticated"]);
    for wrong in [&format!("{token}x"), &token[1..], "", " "] {
        assert_eq!(authenticator.token(wrong), None, "{wrong:?}");
    }
}

#[tokio::test]
async fn only_a_client_certificate_of_our_authority_is_the_admin() {
    let (ours, theirs) = (World::new(), World::new());
    let identity = ours.identity(&["localhost"]).unwrap();
    let stranger = theirs.identity(&["localhost"]).unwrap();
    assert!(ours.is_admin(&identity, &identity.admin));
    for wrong in [&identity.serving, &stranger.admin] {
        assert_eq!(ours.holder(&identity, wrong), Verdict::Wrong);
    }
}

#[tokio::test]
async fn a_given_authority_and_a_given_table_are_taken_beside_our_own() {
    let (ours, theirs) = (World::new(), World::new());
    let identity = ours.identity(&[]).unwrap();
    let stranger = theirs.identity(&[]).unwrap();
    let mut authorities = RootCertStore::empty();
    let theirs = stranger.authority.certificate_der().unwrap();
    authorities.add(theirs).unwrap();
    let tokens = Tokens::parse("secret,alice,7,\"devs,ops\"").unwrap();
    let given = Given {
        tokens,
        authorities,
    };
    let dial = ours.dial.clone();
    let authenticator = identity.authenticator(&given, dial).unwrap();
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
async fn ended_certificate_is_nobody_even_if_it_passed_before() {
    let world = World::new();
    let identity = world.identity(&[]).unwrap();
    let authenticator = world.authenticator(&identity);
    let chain = [identity.admin.certificate_der().unwrap()];
    let holder = authenticator.certificate(&chain);
    assert!(matches!(holder, Verdict::Known(_)), "{holder:?}");
    world.pass(3651);
    assert_eq!(authenticator.certificate(&chain), Verdict::Wrong);
    assert_eq!(world.holder(&identity, &identity.admin), Verdict::Wrong);
}

#[tokio::test]
async fn tokens_differ_between_servers() {
    let (one, other) = (World::new(), World::new());
    assert_ne!(
        one.identity(&[]).unwrap().token,
        other.identity(&[]).unwrap().token
    );
}
