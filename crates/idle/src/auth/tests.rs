use http::HeaderValue;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::json;

use super::*;

fn headers(values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// Knows the tokens of two users.
#[derive(Debug, Default)]
struct FakeReviewer;

impl TokenReviewer for FakeReviewer {
    fn username<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        Box::pin(async move {
            match token {
                "resolver" => Ok(Some(
                    "system:serviceaccount:elasti:elasti-resolver".to_owned(),
                )),
                "guest" => Ok(Some("system:serviceaccount:shop:default".to_owned())),
                "silence" => Err(Denied::ReviewFailed),
                _ => Ok(None),
            }
        })
    }
}

fn authenticator() -> Authenticator {
    Authenticator::for_service_accounts(Arc::new(FakeReviewer), [("elasti", "elasti-resolver")])
}

#[tokio::test]
async fn only_listed_accounts_are_admitted() {
    for (sent, result) in [
        (&["Bearer resolver"][..], Ok(())),
        (&["bearer  resolver"], Ok(())),
        (&[], Err(Denied::Missing)),
        (&["Bearer "], Err(Denied::Missing)),
        (&["Basic resolver"], Err(Denied::Missing)),
        (&["resolver"], Err(Denied::Missing)),
        (&["Bearer resolver", "Bearer guest"], Err(Denied::Missing)),
        (&["Bearer unknown"], Err(Denied::Invalid)),
        (&["Bearer silence"], Err(Denied::ReviewFailed)),
        (
            &["Bearer guest"],
            Err(Denied::Forbidden(
                "system:serviceaccount:shop:default".into(),
            )),
        ),
    ] {
        assert_eq!(
            authenticator().check(&headers(sent)).await,
            result,
            "{sent:?}"
        );
    }
    let open = authenticator().allow_unauthenticated(true);
    assert_eq!(open.check(&headers(&[])).await, Ok(()));
}

#[test]
fn denials_have_a_status() {
    assert_eq!(Denied::Missing.status(), 401);
    assert_eq!(Denied::Invalid.status(), 401);
    assert_eq!(Denied::Forbidden("x".into()).status(), 403);
    assert_eq!(Denied::ReviewFailed.status(), 503);
}

#[tokio::test(start_paused = true)]
async fn a_review_is_cached_for_a_minute() {
    let options = Options::new(Environment::simulated(7));
    let pocket = Pocket::open(options).await.unwrap();
    let client = Client::new(pocket.service(), "default");
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let account = serde_json::from_value(json!({"metadata": {"name": "elasti-resolver"}})).unwrap();
    accounts
        .create(&PostParams::default(), &account)
        .await
        .unwrap();
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(3600),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let made = accounts
        .create_token_request("elasti-resolver", &PostParams::default(), &request)
        .await;
    let token = made.unwrap().status.unwrap().token.unwrap();
    let clock = Clock::system();
    let reviews = TokenReviews::new(client, clock);
    let username = Ok(Some(
        "system:serviceaccount:default:elasti-resolver".to_owned(),
    ));
    assert_eq!(reviews.username(&token).await, username);
    assert_eq!(reviews.username("nonsense").await, Ok(None));
    accounts
        .delete("elasti-resolver", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    clock.sleep(Duration::from_secs(59)).await;
    assert_eq!(reviews.username(&token).await, username);
    clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(reviews.username(&token).await, Ok(None));
    let shown = format!("{reviews:?}");
    assert!(!shown.contains(&token), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn no_caller_is_admitted_without_a_review() {
    let silence = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>(
        )
    });
    let reviews = TokenReviews::new(Client::new(silence, "default"), Clock::system());
    assert_eq!(reviews.username("token").await, Err(Denied::ReviewFailed));
}
