//! Authentication policies and authorizers.

use serde_json::{Value, json};

use super::jsonnet_text::{code, literal};
use crate::api::{Access, Authentication, Authorizer, ConfigMapKey};

/// Where the ConfigMap with the authorities or keys is mounted.
pub(crate) const TRUST_FOLDER: &str = "/trust";
/// Where the Secret with the certificate is mounted.
pub(crate) const TLS_FOLDER: &str = "/tls";

/// The authentication policy of a server.
pub(super) fn policy(access: Option<&Access>) -> Value {
    let authentication = access.and_then(|access| access.authentication.as_ref());
    let Some(Authentication {
        deny,
        client_certificate,
        jwt,
        ..
    }) = authentication
    else {
        return json!({"allow": {}});
    };
    if let Some(message) = deny {
        return json!({"deny": literal(message)});
    }
    if let Some(ConfigMapKey { key, .. }) = client_certificate {
        let authorities = format!("importstr '{TRUST_FOLDER}/{}'", escaped(key));
        return json!({"tlsClientCertificate": {
            "clientCertificateAuthorities": code(&authorities),
            "validationJmespathExpression": {"expression": "`true`"},
            "metadataExtractionJmespathExpression": {"expression": "{\"public\": @}"},
        }});
    }
    if let Some(ConfigMapKey { key, .. }) = jwt {
        return json!({"jwt": {
            "jwksFile": format!("{TRUST_FOLDER}/{key}"),
            "maximumCacheSize": 1000,
            "cacheReplacementPolicy": "LEAST_RECENTLY_USED",
            "claimsValidationJmespathExpression": {"expression": "`true`"},
            "metadataExtractionJmespathExpression": {"expression": "{\"public\": @}"},
        }});
    }
    json!({"allow": {}})
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// The TLS settings of a server, if it has a certificate.
pub(super) fn tls(access: Option<&Access>) -> Option<Value> {
    access.and_then(|access| access.tls.as_ref())?;
    Some(json!({"serverKeyPair": {"files": {
        "certificatePath": format!("{TLS_FOLDER}/tls.crt"),
        "privateKeyPath": format!("{TLS_FOLDER}/tls.key"),
        "refreshInterval": "3600s",
    }}}))
}

/// An authorizer; every authenticated caller, or with `closed` none, if it is not set.
pub(super) fn authorizer(authorizer: Option<&Authorizer>, closed: bool) -> Value {
    let default = || {
        if closed {
            json!({"deny": {}})
        } else {
            json!({"allow": {}})
        }
    };
    let Some(authorizer) = authorizer else {
        return default();
    };
    if let Some(prefixes) = &authorizer.instance_name_prefixes {
        let prefixes: Vec<_> = prefixes.iter().map(|it| literal(it)).collect();
        return json!({"instanceNamePrefix": {"allowedInstanceNamePrefixes": prefixes}});
    }
    if let Some(expression) = &authorizer.jmespath {
        return json!({"jmespathExpression": {"expression": literal(expression)}});
    }
    match (authorizer.allow, authorizer.deny) {
        (_, Some(true)) | (Some(false), _) => json!({"deny": {}}),
        (Some(true), _) => json!({"allow": {}}),
        _ => default(),
    }
}
