//! Authentication: the admin, supplied users, service accounts and anonymous requests.

use std::fs;

use super::{
    files,
    https_client::{Credentials, HttpsClient},
    sandbox::{AdminKubeconfig, Sandbox},
};

const PODS: &str = "/api/v1/pods";
const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";
const SELF_REVIEW: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn status(server: &AdminKubeconfig, credentials: Credentials, path: &str) -> u16 {
    HttpsClient::new(server, credentials).get(path)
}

/// The user name that the server reports for a client.
fn user_name(server: &AdminKubeconfig, credentials: Credentials) -> String {
    let (code, text) = HttpsClient::new(server, credentials).request_text(SELF_REVIEW, "{}");
    assert_eq!(code, 201, "{text}");
    let (_, text) = text.split_once("\"username\":\"").expect(&text);
    text.split('"').next().unwrap().to_owned()
}

#[test]
fn the_admin_authenticates_by_token_or_certificate_and_others_are_rejected() {
    let sandbox = Sandbox::new();
    let neap = sandbox.up(&[]);
    let config = neap.kubeconfig();
    let other = sandbox.up(&[]).kubeconfig();
    let token = |text: &str| Credentials::Token(text.to_owned());
    for (credentials, health, pods) in [
        (token(&config.token), 200, 200),
        (Credentials::certificate(&config), 200, 200),
        // Anonymous requests may read the health of the server, and nothing else.
        (Credentials::None, 200, 403),
        (token("wrong"), 401, 401),
        (Credentials::certificate(&other), 401, 401),
    ] {
        let client = HttpsClient::new(&config, credentials);
        assert_eq!((client.get("/healthz"), client.get(PODS)), (health, pods));
    }
    assert_eq!(user_name(&config, token(&config.token)), "admin");
    assert_eq!(
        user_name(&config, Credentials::certificate(&config)),
        "admin"
    );
}

#[test]
fn anonymous_requests_can_be_refused() {
    let sandbox = Sandbox::new();
    let config = sandbox.up(&["--anonymous-auth=false"]);
    let config = config.kubeconfig();
    assert_eq!(status(&config, Credentials::None, "/healthz"), 401);
    let admin = Credentials::certificate(&config);
    assert_eq!(status(&config, admin, "/healthz"), 200);
}

#[test]
fn users_of_a_token_table_and_of_a_client_ca_authenticate() {
    let sandbox = Sandbox::new();
    let other = sandbox.up(&[]).kubeconfig();
    let (table, authority) = (sandbox.path("tokens.csv"), sandbox.path("clients.pem"));
    fs::write(&table, "alices,alice,7,\"devs\"\n").unwrap();
    fs::write(&authority, &other.authority).unwrap();
    let neap = sandbox.up(&[
        "--token-auth-file",
        table.to_str().unwrap(),
        "--client-ca-file",
        authority.to_str().unwrap(),
    ]);
    let config = neap.kubeconfig();
    let alice = || Credentials::Token("alices".into());
    assert_eq!(user_name(&config, alice()), "alice");
    assert_eq!(status(&config, alice(), PODS), 403);
    // The other server's certificate names an admin of system:masters, and its authority is trusted now.
    let theirs = Credentials::certificate(&other);
    assert_eq!(status(&config, theirs, PODS), 200);
    let admin = Credentials::Token(config.token.clone());
    assert_eq!(status(&config, admin, PODS), 200);
}

#[test]
fn an_unusable_file_is_named_before_anything_is_written() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    for (flag, text, code, reason) in [
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
        let file = sandbox.path("supplied");
        let _ = fs::remove_file(&file);
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let refused = sandbox.refused(&[
            "--data",
            data.to_str().unwrap(),
            flag,
            file.to_str().unwrap(),
        ]);
        let exit = if text.is_none() { 3 } else { 6 };
        assert_eq!(refused.code, Some(exit), "{}", refused.stderr);
        for expected in [code, reason, "supplied"] {
            assert!(
                refused.stderr.contains(expected),
                "{expected}: {}",
                refused.stderr
            );
        }
        assert!(!refused.stderr.contains("canary"), "{}", refused.stderr);
        assert!(!data.exists());
        assert!(files(&sandbox.temporary()).is_empty());
    }
}

#[test]
fn service_account_tokens_survive_a_restart_and_are_never_logged() {
    let sandbox = Sandbox::new();
    let data = sandbox.path("data");
    let arguments = ["--data", data.to_str().unwrap(), "-vv"];
    let first = sandbox.up(&arguments);
    let config = first.kubeconfig();
    let admin = HttpsClient::new(&config, Credentials::Token(config.token.clone()));
    let (code, made) = admin.request_text(TOKENS, "{}");
    assert_eq!(code, 201, "{made}");
    let (_, token) = made.split_once("\"token\":\"").unwrap();
    let token = token.split('"').next().unwrap().to_owned();
    let robot = || Credentials::Token(token.clone());
    let name = "system:serviceaccount:default:default";
    assert_eq!(user_name(&config, robot()), name);
    let wrong = Credentials::Token(format!("{token}x"));
    assert_eq!(status(&config, wrong, "/healthz"), 401);
    let review = format!("{{\"spec\":{{\"token\":\"{token}x\"}}}}");
    let (code, _) = admin.request_text("/apis/authentication.k8s.io/v1/tokenreviews", &review);
    assert_eq!(code, 201);
    let end = first.stop("TERM");

    let second = sandbox.up_on(&config.address(), &arguments);
    assert_eq!(user_name(&config, robot()), name);
    let logged = format!("{}{}", end.stderr, second.stop("TERM").stderr);
    assert!(logged.contains("ready"), "{logged}");
    for part in token.split('.').chain([config.token.as_str()]) {
        assert!(!logged.contains(part), "{part} in {logged}");
    }
}

#[test]
fn an_authority_of_clients_that_is_not_valid_yet_is_reported_at_start() {
    let sandbox = Sandbox::new();
    let mut parameters = rcgen::CertificateParams::default();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.not_before = rcgen::date_time_ymd(2100, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2110, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let authority = parameters.self_signed(&key).unwrap().pem();
    let path = sandbox.path("clients.pem");
    fs::write(&path, authority).unwrap();
    let neap = sandbox.up(&["--bare", "--client-ca-file", path.to_str().unwrap()]);
    let told = format!(
        "the certificate 1 in {} is valid from 2100-01-01T00:00:00Z on",
        path.display()
    );
    let transcript: Vec<_> = neap.transcript().split_whitespace().collect();
    assert!(transcript.join(" ").contains(&told), "{transcript:?}");
}
