//! Who gets in: the admin, whoever was given, service accounts, and nobody in particular.

use std::fs;

use crate::{
    client::{Client, Credentials},
    files,
    running::{Kubeconfig, Place},
};

const PODS: &str = "/api/v1/pods";
const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn status(server: &Kubeconfig, credentials: Credentials, path: &str) -> u16 {
    Client::new(server, credentials).get(path)
}

/// Who the server says a client is.
fn who(server: &Kubeconfig, credentials: Credentials) -> String {
    let (code, text) = Client::new(server, credentials).ask(WHO, "{}");
    assert_eq!(code, 201, "{text}");
    let (_, text) = text.split_once("\"username\":\"").expect(&text);
    text.split('"').next().unwrap().to_owned()
}

#[test]
fn the_admin_gets_in_by_token_or_certificate_and_a_stranger_does_not() {
    let place = Place::new();
    let neap = place.up(&[]);
    let config = neap.kubeconfig();
    let stranger = place.up(&[]).kubeconfig();
    let token = |text: &str| Credentials::Token(text.to_owned());
    for (credentials, health, pods) in [
        (token(&config.token), 200, 200),
        (Credentials::certificate(&config), 200, 200),
        // Nobody in particular sees that the server is well, and nothing else.
        (Credentials::None, 200, 403),
        (token("wrong"), 401, 401),
        (Credentials::certificate(&stranger), 401, 401),
    ] {
        let client = Client::new(&config, credentials);
        assert_eq!((client.get("/healthz"), client.get(PODS)), (health, pods));
    }
    assert_eq!(who(&config, token(&config.token)), "admin");
    assert_eq!(who(&config, Credentials::certificate(&config)), "admin");
}

#[test]
fn anonymous_requests_can_be_refused() {
    let place = Place::new();
    let config = place.up(&["--anonymous-auth=false"]);
    let config = config.kubeconfig();
    assert_eq!(status(&config, Credentials::None, "/healthz"), 401);
    let admin = Credentials::certificate(&config);
    assert_eq!(status(&config, admin, "/healthz"), 200);
}

#[test]
fn users_of_a_table_and_of_a_given_authority_get_in() {
    let place = Place::new();
    let stranger = place.up(&[]).kubeconfig();
    let (table, authority) = (place.path("tokens.csv"), place.path("clients.pem"));
    fs::write(&table, "alices,alice,7,\"devs\"\n").unwrap();
    fs::write(&authority, &stranger.authority).unwrap();
    let neap = place.up(&[
        "--token-auth-file",
        table.to_str().unwrap(),
        "--client-ca-file",
        authority.to_str().unwrap(),
    ]);
    let config = neap.kubeconfig();
    let alice = || Credentials::Token("alices".into());
    assert_eq!(who(&config, alice()), "alice");
    assert_eq!(status(&config, alice(), PODS), 403);
    // The stranger's certificate says admin of system:masters, and its authority is trusted now.
    let theirs = Credentials::certificate(&stranger);
    assert_eq!(status(&config, theirs, PODS), 200);
    let admin = Credentials::Token(config.token.clone());
    assert_eq!(status(&config, admin, PODS), 200);
}

#[test]
fn a_file_that_cannot_be_used_is_named_and_nothing_is_begun() {
    let place = Place::new();
    let data = place.path("data");
    for (flag, text, code, told) in [
        ("--token-auth-file", None, "NT-UP-0015", "No such file"),
        ("--client-ca-file", None, "NT-UP-0015", "No such file"),
        (
            "--token-auth-file",
            Some("canary,a,1\ncanary"),
            "NT-UP-0016",
            "line 2",
        ),
        (
            "--client-ca-file",
            Some("nonsense"),
            "NT-UP-0017",
            "no certificate",
        ),
        (
            "--client-ca-file",
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "NT-UP-0017",
            "certificate 1",
        ),
    ] {
        let file = place.path("given");
        let _ = fs::remove_file(&file);
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let refused = place.refused(&[
            "--data",
            data.to_str().unwrap(),
            flag,
            file.to_str().unwrap(),
        ]);
        assert_eq!(refused.code, Some(6), "{}", refused.stderr);
        for expected in [code, told, "given"] {
            assert!(
                refused.stderr.contains(expected),
                "{expected}: {}",
                refused.stderr
            );
        }
        assert!(!refused.stderr.contains("canary"), "{}", refused.stderr);
        assert!(!data.exists());
        assert!(files(&place.temporary()).is_empty());
    }
}

#[test]
fn tokens_of_service_accounts_outlive_a_restart_and_are_never_logged() {
    let place = Place::new();
    let data = place.path("data");
    let arguments = ["--data", data.to_str().unwrap(), "-vv"];
    let first = place.up(&arguments);
    let config = first.kubeconfig();
    let admin = Client::new(&config, Credentials::Token(config.token.clone()));
    let (code, made) = admin.ask(TOKENS, "{}");
    assert_eq!(code, 201, "{made}");
    let (_, token) = made.split_once("\"token\":\"").unwrap();
    let token = token.split('"').next().unwrap().to_owned();
    let robot = || Credentials::Token(token.clone());
    let name = "system:serviceaccount:default:default";
    assert_eq!(who(&config, robot()), name);
    let wrong = Credentials::Token(format!("{token}x"));
    assert_eq!(status(&config, wrong, "/healthz"), 401);
    let review = format!("{{\"spec\":{{\"token\":\"{token}x\"}}}}");
    let (code, _) = admin.ask("/apis/authentication.k8s.io/v1/tokenreviews", &review);
    assert_eq!(code, 201);
    let end = first.stop("TERM");

    let second = place.up_on(&config.address(), &arguments);
    assert_eq!(who(&config, robot()), name);
    let logged = format!("{}{}", end.stderr, second.stop("TERM").stderr);
    assert!(logged.contains("ready"), "{logged}");
    for part in token.split('.').chain([config.token.as_str()]) {
        assert!(!logged.contains(part), "{part} in {logged}");
    }
}
