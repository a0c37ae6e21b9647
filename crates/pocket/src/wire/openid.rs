//! What others need to check the tokens of service accounts without asking us each time.

use http::{
    HeaderValue, Response,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use serde_json::Value;

use super::Body;
use crate::{
    identity::Accounts,
    rest::reply::JSON,
    status::{ApiError, Result},
};

/// Who makes the tokens, and where its keys are found; `address` is where the server is.
pub(super) fn issuer(accounts: &Accounts, address: &str) -> Response<Body> {
    let keys = format!("https://{address}/openid/v1/jwks");
    document(&accounts.discovery(&keys), JSON)
}

/// The keys.
pub(super) fn keys(accounts: &Accounts) -> Result<Response<Body>> {
    let keys = accounts
        .keys()
        .map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(document(&keys, "application/jwk-set+json"))
}

fn document(value: &Value, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(value.to_string()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let hour = HeaderValue::from_static("public, max-age=3600");
    headers.insert(CACHE_CONTROL, hour);
    response
}
