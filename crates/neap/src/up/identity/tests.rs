use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use jiff::Timestamp;
use neap_pocket::environment::BoxFuture;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;

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
        let (system, _deaths) = crate::environment::system();
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

    fn user(&self, identity: &Identity, token: Option<&str>, pair: Option<&Pair>) -> bool {
        let authenticator = identity.authenticator(self.dial.clone()).unwrap();
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(token).unwrap());
        }
        let chain: Vec<CertificateDer<'_>> = pair
            .map(|pair| pair.certificate_der().unwrap())
            .into_iter()
            .collect();
        // Twice, so that what was remembered of the first is seen too.
        let first = authenticator.authenticate(&headers, &chain);
        let second = authenticator.authenticate(&headers, &chain);
        assert_eq!(first, second);
        first.is_some_and(|user| user.name == "admin")
    }
}

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
    assert!(world.user(&one, None, Some(&one.admin)));
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
    for file in ["ca.pem", "serving.pem", "admin.pem"] {
        let world = World::new();
        world.identity(&[]).unwrap();
        let path = world.folder.path().join(file);
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\nnonsense").unwrap();
        let error = world.identity(&[]).map(|identity| identity.origin);
        assert!(
            matches!(&error, Err(Error::Damaged { path: damaged, .. }) if *damaged == path),
            "{file}: {error:?}"
        );
    }
}

#[tokio::test]
async fn only_the_right_token_is_the_admin() {
    let world = World::new();
    let identity = world.identity(&[]).unwrap();
    let token = &identity.token;
    for (header, admin) in [
        (format!("Bearer {token}"), true),
        (format!("bearer  {token}"), true),
        (format!("Basic {token}"), false),
        (format!("Bearer {token}x"), false),
        (format!("Bearer {}", &token[1..]), false),
        ("Bearer ".to_owned(), false),
        (token.clone(), false),
    ] {
        assert_eq!(
            world.user(&identity, Some(&header), None),
            admin,
            "{header}"
        );
    }
    assert!(!world.user(&identity, None, None));
}

#[tokio::test]
async fn only_a_client_certificate_of_our_authority_is_the_admin() {
    let (ours, theirs) = (World::new(), World::new());
    let identity = ours.identity(&["localhost"]).unwrap();
    let stranger = theirs.identity(&["localhost"]).unwrap();
    assert!(ours.user(&identity, None, Some(&identity.admin)));
    assert!(!ours.user(&identity, None, Some(&identity.serving)));
    assert!(!ours.user(&identity, None, Some(&stranger.admin)));
}

#[tokio::test]
async fn strange_certificate_does_not_spoil_a_good_token() {
    let (ours, theirs) = (World::new(), World::new());
    let identity = ours.identity(&[]).unwrap();
    let stranger = theirs.identity(&[]).unwrap();
    let token = format!("Bearer {}", identity.token);
    assert!(ours.user(&identity, Some(&token), Some(&stranger.admin)));
}

#[tokio::test]
async fn ended_certificate_is_nobody_even_if_it_passed_before() {
    let world = World::new();
    let identity = world.identity(&[]).unwrap();
    let authenticator = identity.authenticator(world.dial.clone()).unwrap();
    let chain = [identity.admin.certificate_der().unwrap()];
    assert!(
        authenticator
            .authenticate(&HeaderMap::new(), &chain)
            .is_some()
    );
    world.pass(3651);
    assert!(
        authenticator
            .authenticate(&HeaderMap::new(), &chain)
            .is_none()
    );
    assert!(!world.user(&identity, None, Some(&identity.admin)));
}

#[tokio::test]
async fn tokens_differ_between_servers() {
    let (one, other) = (World::new(), World::new());
    assert_ne!(
        one.identity(&[]).unwrap().token,
        other.identity(&[]).unwrap().token
    );
}
