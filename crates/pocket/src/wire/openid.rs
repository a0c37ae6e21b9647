//! OpenID discovery: what other servers need to verify service account tokens themselves.

use http::{
    HeaderValue, Response,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use serde_json::Value;

use super::Body;
use crate::{
    identity::AccountTokens,
    rest::reply::JSON,
    status::{ApiError, Result},
};

/// The discovery document; `address` is the server's.
pub(super) fn issuer(accounts: &AccountTokens, address: &str) -> Response<Body> {
    let keys = format!("https://{address}/openid/v1/jwks");
    document(&accounts.discovery(&keys), JSON)
}

/// The key set.
pub(super) fn keys(accounts: &AccountTokens) -> Result<Response<Body>> {
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
