//! What a registry asks for when it answers 401: the header `WWW-Authenticate`.

use std::collections::BTreeMap;

/// How a registry wants to be spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// User name and password with each request.
    Basic,
    /// A token, which another service gives.
    Bearer {
        /// The address of the service.
        realm: String,
        /// The registry's name for itself.
        service: Option<String>,
        /// What the token must allow.
        scope: Option<String>,
    },
}

/// The challenge in the values of the header. A token is preferred: it can do less than a password.
pub fn parse<'a>(values: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let mut basic = false;
    for value in values {
        for (scheme, mut parameters) in challenges(value) {
            match scheme.as_str() {
                "bearer" => {
                    if let Some(realm) = parameters.remove("realm") {
                        return Some(Challenge::Bearer {
                            realm,
                            service: parameters.remove("service"),
                            scope: parameters.remove("scope"),
                        });
                    }
                }
                "basic" => basic = true,
                _ => {}
            }
        }
    }
    basic.then_some(Challenge::Basic)
}

/// Schemes in lowercase with their parameters. A header may hold several, separated by commas like their
/// parameters.
fn challenges(header: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut found: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    let mut rest = header.trim_start_matches([' ', ',', '\t']);
    while !rest.is_empty() {
        let end = rest.find([' ', '=', ',', '\t']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let after = after.trim_start();
        if let Some(value) = after.strip_prefix('=') {
            let (value, after) = value_of(value.trim_start());
            if let Some((_, parameters)) = found.last_mut() {
                parameters.insert(word.to_ascii_lowercase(), value);
            }
            rest = after;
        } else {
            if !word.is_empty() {
                found.push((word.to_ascii_lowercase(), BTreeMap::new()));
            }
            rest = after;
        }
        rest = rest.trim_start_matches([' ', ',', '\t']);
    }
    found
}

/// A value, quoted or not, and what follows it.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, next)| next)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(header: &str) -> Option<Challenge> {
        parse([header].into_iter())
    }

    #[test]
    fn tokens_and_passwords_are_told_apart() {
        assert_eq!(one("Basic realm=\"reg\""), Some(Challenge::Basic));
        assert_eq!(one("Negotiate"), None);
        let bearer = one(
            r#"Bearer realm="https://auth.example/token",service="reg.example",scope="repository:a/b:pull,push""#,
        );
        assert_eq!(
            bearer,
            Some(Challenge::Bearer {
                realm: "https://auth.example/token".to_owned(),
                service: Some("reg.example".to_owned()),
                scope: Some("repository:a/b:pull,push".to_owned()),
            })
        );
    }

    #[test]
    fn a_token_is_preferred_to_a_password() {
        let both = one(r#"Basic realm="x", Bearer realm="https://a.example/t", service=plain"#);
        assert!(
            matches!(both, Some(Challenge::Bearer { service: Some(name), .. }) if name == "plain")
        );
        let apart = parse([r#"Bearer realm="https://a.example""#, "Basic"].into_iter());
        assert!(matches!(apart, Some(Challenge::Bearer { .. })));
    }

    #[test]
    fn nonsense_is_no_challenge() {
        for text in [
            "",
            ",,,",
            "=",
            "Bearer",
            "Bearer scope=x",
            "Bearer realm",
            "\"",
            "Bearer =\"x",
        ] {
            assert_eq!(one(text), None, "{text}");
        }
    }
}
