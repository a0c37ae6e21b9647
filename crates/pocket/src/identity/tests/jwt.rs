use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};

use super::*;
use crate::store::Object;

/// Objects by bucket and path.
struct StoredObjects(Vec<(&'static str, Value)>);

impl Records for StoredObjects {
    fn find(&self, bucket: &str, path: &str) -> Option<Arc<Object>> {
        let place = format!("{bucket}/{path}");
        let found = self.0.iter().find(|(at, _)| *at == place)?;
        Some(Arc::new(Object::unstored(&found.1)))
    }
}

const NOW: i64 = 1_800_000_000;

fn robot() -> Reference {
    Reference {
        name: "robot".into(),
        uid: "u-robot".into(),
    }
}

fn kept() -> StoredObjects {
    let account = json!({"metadata": {"name": "robot", "namespace": "n", "uid": "u-robot"}});
    StoredObjects(vec![("/serviceaccounts/n/robot", account)])
}

fn accounts() -> AccountTokens {
    AccountTokens::new(ISSUER.into(), None)
}

fn grant(spec: &Value) -> Grant {
    Grant::read(&json!({ "spec": spec }), &[ISSUER.into()]).unwrap()
}

fn token(accounts: &AccountTokens, grant: Grant) -> String {
    let issued = accounts.issue("n", robot(), grant, "id-1".into(), at(NOW));
    issued.unwrap().0
}

fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64.decode(claims).unwrap()).unwrap()
}

#[test]
fn a_token_says_whose_it_is_and_is_known_again() {
    let accounts = accounts();
    let token = token(&accounts, grant(&json!({})));
    assert_eq!(
        claims(&token),
        json!({
            "aud": [ISSUER], "iss": ISSUER, "jti": "id-1", "sub": "system:serviceaccount:n:robot",
            "exp": NOW + 3600, "iat": NOW, "nbf": NOW,
            "kubernetes.io": {"namespace": "n", "serviceaccount": {"name": "robot", "uid": "u-robot"}},
        })
    );
    let holder = accounts.holder(&token, accounts.audiences(), at(NOW), &kept());
    let holder = holder.unwrap();
    assert_eq!(holder.user.name, "system:serviceaccount:n:robot");
    assert_eq!(
        holder.user.groups,
        [
            "system:serviceaccounts",
            "system:serviceaccounts:n",
            AUTHENTICATED
        ]
    );
    assert_eq!(holder.audiences, [ISSUER]);
}

#[test]
fn only_what_our_key_signed_is_taken() {
    let accounts = accounts();
    let good = token(&accounts, grant(&json!({})));
    let parts: Vec<&str> = good.split('.').collect();
    let encode = |value: &Value| BASE64.encode(value.to_string());
    let mut other = claims(&good);
    other["sub"] = json!("system:serviceaccount:kube-system:admin");
    let mut foreign = claims(&good);
    foreign["iss"] = json!("https://elsewhere");
    let none = encode(&json!({"alg": "none"}));
    let stranger = token(&self::accounts(), grant(&json!({})));
    for (forged, why) in [
        (
            format!("{}.{}.{}", parts[0], encode(&other), parts[2]),
            Refused::Signature,
        ),
        (format!("{}.{}.", none, parts[1]), Refused::Signature),
        (
            format!("{}.{}.{}", none, parts[1], parts[2]),
            Refused::Signature,
        ),
        (stranger, Refused::Signature),
        (
            format!("{}.{}.{}", parts[0], encode(&foreign), parts[2]),
            Refused::Unknown,
        ),
        (format!("{}.{}", parts[0], parts[1]), Refused::Unknown),
        (format!("{good}.x"), Refused::Unknown),
        ("a.b.c".into(), Refused::Unknown),
        (String::new(), Refused::Unknown),
    ] {
        let told = accounts.holder(&forged, accounts.audiences(), at(NOW), &kept());
        assert_eq!(told.unwrap_err(), why, "{forged}");
    }
    // The cached result for the right token is the same.
    let told = accounts.holder(&good, accounts.audiences(), at(NOW), &kept());
    assert!(told.is_ok());
}

#[test]
fn a_token_has_its_time_and_its_audience() {
    let accounts = accounts();
    let spec = json!({"expirationSeconds": 600, "audiences": ["a", "b"]});
    let token = token(&accounts, grant(&spec));
    let told = |audiences: &[&str], now| {
        let audiences: Vec<_> = audiences.iter().map(|&a| a.to_owned()).collect();
        let holder = accounts.holder(&token, &audiences, at(now), &kept());
        holder
            .map(|holder| holder.audiences)
            .map_err(|why| why.to_string())
    };
    assert_eq!(told(&["c", "b"], NOW), Ok(vec!["b".to_owned()]));
    assert_eq!(
        told(&["c"], NOW).unwrap_err(),
        "token audiences [\"a\" \"b\"] is invalid for the target audiences [\"c\"]"
    );
    // One minute of clock skew is tolerated.
    assert!(told(&["a"], NOW + 660).is_ok());
    assert_eq!(
        told(&["a"], NOW + 661).unwrap_err(),
        "service account token has expired"
    );
    assert!(told(&["a"], NOW - 60).is_ok());
    assert_eq!(
        told(&["a"], NOW - 61).unwrap_err(),
        "service account token is not valid yet"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of ends")]
fn a_token_ends_with_its_account_and_with_what_it_is_bound_to() {
    let accounts = accounts();
    let mut bound = grant(&json!({}));
    let reference = |name: &str| Reference {
        name: name.into(),
        uid: format!("u-{name}"),
    };
    bound.bind(BoundObjectKind::Pod, reference("p"));
    bound.bind(BoundObjectKind::Node, reference("m"));
    let of_pod = token(&accounts, bound);
    let mut bound = grant(&json!({}));
    bound.bind(BoundObjectKind::Node, reference("m"));
    let of_node = token(&accounts, bound);
    let object = |name: &str, uid: &str| json!({"metadata": {"name": name, "uid": uid}});
    let all = || {
        let mut kept = kept();
        kept.0.push(("/pods/n/p", object("p", "u-p")));
        kept.0.push(("/nodes/m", object("m", "u-m")));
        kept
    };
    let told = |token: &str, change: &dyn Fn(&mut StoredObjects)| {
        let mut kept = all();
        change(&mut kept);
        let holder = accounts.holder(token, accounts.audiences(), at(NOW), &kept);
        holder
            .map(|holder| holder.user.extra)
            .map_err(|why| why.to_string())
    };
    let without =
        |place: &'static str| move |kept: &mut StoredObjects| kept.0.retain(|(at, _)| *at != place);
    let replaced = |index: usize| {
        move |kept: &mut StoredObjects| kept.0[index].1["metadata"]["uid"] = json!("new")
    };
    let going = |kept: &mut StoredObjects| {
        kept.0[1].1["metadata"]["deletionTimestamp"] =
            json!(crate::environment::rfc3339(at(NOW - 61)));
    };

    let extra = told(&of_pod, &|_| {}).unwrap();
    for (key, value) in [
        ("credential-id", "JTI=id-1"),
        ("pod-name", "p"),
        ("pod-uid", "u-p"),
        ("node-name", "m"),
        ("node-uid", "u-m"),
    ] {
        assert_eq!(
            extra[&format!("authentication.kubernetes.io/{key}")],
            [value]
        );
    }
    // A pod may outlive its node.
    assert!(told(&of_pod, &without("/nodes/m")).is_ok());
    let invalidated = "service account token has been invalidated";
    for (token, change, why) in [
        (
            &of_pod,
            &without("/pods/n/p") as &dyn Fn(&mut StoredObjects),
            invalidated,
        ),
        (&of_pod, &going, invalidated),
        (&of_node, &without("/nodes/m"), invalidated),
        (
            &of_pod,
            &without("/serviceaccounts/n/robot"),
            "serviceaccounts \"robot\" not found",
        ),
        (
            &of_pod,
            &replaced(0),
            "service account UID (new) does not match claim (u-robot)",
        ),
        (
            &of_pod,
            &replaced(1),
            "pod UID (new) does not match service account pod ref claim (u-p)",
        ),
    ] {
        assert_eq!(told(token, change).unwrap_err(), why);
    }
}

#[test]
fn a_pod_that_never_looks_for_a_new_token_is_not_locked_out() {
    let accounts = accounts();
    let lasts = |spec: Value, pod: bool| {
        let mut grant = grant(&spec);
        if pod {
            grant.bind(BoundObjectKind::Pod, robot());
        }
        let issued = accounts.issue("n", robot(), grant, String::new(), at(NOW));
        let (token, ends) = issued.unwrap();
        let claims = claims(&token);
        let warn = claims["kubernetes.io"]["warnafter"].as_i64();
        (
            claims["exp"].as_i64().unwrap() - NOW,
            warn.map(|at| at - NOW),
            ends.as_second() - NOW,
        )
    };
    let kubelets = || json!({"expirationSeconds": 3607});
    assert_eq!(lasts(kubelets(), true), (31_536_000, Some(3607), 3607));
    assert_eq!(lasts(kubelets(), false), (3607, None, 3607));
    assert_eq!(
        lasts(json!({"expirationSeconds": 3606}), true),
        (3606, None, 3606)
    );
    let elsewhere = json!({"expirationSeconds": 3607, "audiences": ["vault"]});
    assert_eq!(lasts(elsewhere, true), (3607, None, 3607));
}

#[test]
fn a_key_is_found_again_in_its_file_and_published() {
    let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let made = || AccountTokens::new(ISSUER.into(), Some(SigningKey::from_pem(&pem).unwrap()));
    let (before, after) = (made(), made());
    let token = token(&before, grant(&json!({})));
    assert!(
        after
            .holder(&token, after.audiences(), at(NOW), &kept())
            .is_ok()
    );
    let keys = after.keys().unwrap();
    assert_eq!(keys, before.keys().unwrap());
    let header = token.split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&BASE64.decode(header).unwrap()).unwrap();
    assert_eq!(
        header,
        json!({"alg": "ES256", "kid": keys["keys"][0]["kid"]})
    );
    for coordinate in ["x", "y"] {
        let bytes = BASE64.decode(keys["keys"][0][coordinate].as_str().unwrap());
        assert_eq!(bytes.unwrap().len(), 32);
    }
    assert!(!format!("{before:?} {:?}", SigningKey::from_pem(&pem)).contains(&pem[40..60]));
    for wrong in [
        "",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    ] {
        assert!(SigningKey::from_pem(wrong).is_err());
    }
}

#[test]
fn requests_are_refused_as_the_real_server_refuses_them() {
    let refused = |spec: Value| {
        let request = json!({ "spec": spec });
        let read = Grant::read(&request, &[]).map(|_| ());
        let bound = BoundObjectKind::of(&request["spec"]["boundObjectRef"]).map(|_| ());
        read.and(bound).unwrap_err().message
    };
    let invalid = "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: ";
    for seconds in [599, 0, -5] {
        let told = refused(json!({ "expirationSeconds": seconds }));
        let why = "may not specify a duration less than 10 minutes";
        assert_eq!(told, format!("{invalid}{seconds}: {why}"));
    }
    let told = refused(json!({"expirationSeconds": 4_294_967_297_i64}));
    let why = "4294967297: may not specify a duration larger than 2^32 seconds";
    assert_eq!(told, format!("{invalid}{why}"));
    for (reference, named) in [
        (
            json!({"kind": "ConfigMap", "apiVersion": "v1"}),
            "/v1, Kind=ConfigMap",
        ),
        (
            json!({"kind": "Pod", "apiVersion": "apps/v1"}),
            "apps/v1, Kind=Pod",
        ),
        (json!({}), "/, Kind="),
    ] {
        let told = refused(json!({ "boundObjectRef": reference }));
        assert_eq!(told, format!("cannot bind token to object of type {named}"));
    }
}
