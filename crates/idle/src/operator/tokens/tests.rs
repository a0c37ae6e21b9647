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

/// Knows two, and counts how often it was asked.
#[derive(Debug, Default)]
struct Clerk;

impl Tokens for Clerk {
    fn owner<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<String>, Denied>> {
        Box::pin(async move {
            match token {
                "resolver" => Ok(Some(
                    "system:serviceaccount:elasti:elasti-resolver".to_owned(),
                )),
                "guest" => Ok(Some("system:serviceaccount:shop:default".to_owned())),
                "silence" => Err(Denied::Unsaid),
                _ => Ok(None),
            }
        })
    }
}

fn door() -> Door {
    Door::for_accounts(Arc::new(Clerk), [("elasti", "elasti-resolver")])
}

#[tokio::test]
async fn the_door_is_for_those_who_are_named() {
    for (shown, passed) in [
        (&["Bearer resolver"][..], Ok(())),
        (&["bearer  resolver"], Ok(())),
        (&[], Err(Denied::Missing)),
        (&["Bearer "], Err(Denied::Missing)),
        (&["Basic resolver"], Err(Denied::Missing)),
        (&["resolver"], Err(Denied::Missing)),
        (&["Bearer resolver", "Bearer guest"], Err(Denied::Missing)),
        (&["Bearer nobody"], Err(Denied::Invalid)),
        (&["Bearer silence"], Err(Denied::Unsaid)),
        (
            &["Bearer guest"],
            Err(Denied::Stranger(
                "system:serviceaccount:shop:default".into(),
            )),
        ),
    ] {
        assert_eq!(door().pass(&headers(shown)).await, passed, "{shown:?}");
    }
    let open = door().standing_open(true);
    assert_eq!(open.pass(&headers(&[])).await, Ok(()));
}

#[test]
fn refusals_have_a_status() {
    assert_eq!(Denied::Missing.status(), 401);
    assert_eq!(Denied::Invalid.status(), 401);
    assert_eq!(Denied::Stranger("x".into()).status(), 403);
    assert_eq!(Denied::Unsaid.status(), 503);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_believed_for_a_minute() {
    let options = Options::new(Environment::rehearsal(7));
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
    let reviews = Reviews::new(client, clock);
    let owner = Ok(Some(
        "system:serviceaccount:default:elasti-resolver".to_owned(),
    ));
    assert_eq!(reviews.owner(&token).await, owner);
    assert_eq!(reviews.owner("nonsense").await, Ok(None));
    accounts
        .delete("elasti-resolver", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    clock.sleep(Duration::from_secs(59)).await;
    assert_eq!(reviews.owner(&token).await, owner);
    clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(reviews.owner(&token).await, Ok(None));
    let shown = format!("{reviews:?}");
    assert!(!shown.contains(&token), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn an_api_that_is_silent_lets_nobody_in() {
    let silence = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>(
        )
    });
    let reviews = Reviews::new(Client::new(silence, "default"), Clock::system());
    assert_eq!(reviews.owner("token").await, Err(Denied::Unsaid));
}
