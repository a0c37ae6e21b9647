//! Authentication of a request.

use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use rustls::pki_types::CertificateDer;

use crate::{
    identity::{User, Verdict},
    rest::Machine,
    status::{ApiError, Result},
};

/// The user. A certificate takes precedence over a token, and the first valid credential decides; a
/// request with only invalid ones is refused, and one with none is anonymous where that is allowed.
pub(super) fn user(
    machine: &Machine,
    headers: &HeaderMap,
    certificates: &[CertificateDer<'_>],
    anonymous: bool,
) -> Result<User> {
    let certificate = match &machine.authenticator {
        Some(authenticator) if !certificates.is_empty() => authenticator.certificate(certificates),
        _ => Verdict::Silent,
    };
    if let Verdict::Known(user) = certificate {
        return Ok(user.authenticated());
    }
    let token = bearer(headers);
    // A token that is not UTF-8 is invalid, but counts as presented.
    let readable = token.and_then(|token| std::str::from_utf8(token).ok());
    if let Some(user) = readable.and_then(|token| machine.bearer(token)) {
        return Ok(user.authenticated());
    }
    let nothing = certificate == Verdict::Silent && token.is_none();
    if nothing && anonymous {
        return Ok(User::anonymous());
    }
    Err(unauthorized())
}

/// The token of a `Bearer` header: the second word, if there is one.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut words = value.split(|byte| *byte == b' ');
    let bearer = words.next()?.eq_ignore_ascii_case(b"bearer");
    words.next().filter(|token| bearer && !token.is_empty())
}

fn unauthorized() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
}

#[cfg(test)]
mod tests;
