use super::*;
use crate::wire::route::{Route, route};

fn asked(method: &str, uri: &str) -> String {
    let (path, query) = uri
        .split_once('?')
        .map_or((uri, None), |(path, query)| (path, Some(query)));
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let asked = RequestAttributes::read(&method, path, query);
    let who = Requester {
        name: "bob",
        groups: &[],
    };
    asked.by(who).forbidden("").message
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn refusals_say_what_was_asked_as_the_real_server_does() {
    for (method, uri, message) in [
        (
            "GET",
            "/api/v1/namespaces/d/pods",
            "pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" in the namespace \"d\"",
        ),
        (
            "GET",
            "/api/v1/pods",
            "pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
        ),
        (
            "GET",
            "/api/v1/pods?watch=1",
            "pods is forbidden: User \"bob\" cannot watch resource \"pods\" in API group \"\" at the cluster scope",
        ),
        (
            "GET",
            "/api/v1/pods?watch=0&watch=true",
            "pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
        ),
        (
            "GET",
            "/api/v1/watch/pods",
            "pods is forbidden: User \"bob\" cannot watch resource \"pods\" in API group \"\" at the cluster scope",
        ),
        (
            "HEAD",
            "/api/v1/namespaces/d/pods/x?watch=1",
            "pods \"x\" is forbidden: User \"bob\" cannot get resource \"pods\" in API group \"\" in the namespace \"d\"",
        ),
        (
            "GET",
            "/api/v1/namespaces/d",
            "namespaces \"d\" is forbidden: User \"bob\" cannot get resource \"namespaces\" in API group \"\" in the namespace \"d\"",
        ),
        (
            "PUT",
            "/api/v1/namespaces/d/finalize",
            "namespaces \"d\" is forbidden: User \"bob\" cannot update resource \"namespaces/finalize\" in API group \"\" in the namespace \"d\"",
        ),
        (
            "GET",
            "/api/v1/namespaces",
            "namespaces is forbidden: User \"bob\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope",
        ),
        (
            "GET",
            "/apis/apps/v1/namespaces/d/deployments/x/scale",
            "deployments.apps \"x\" is forbidden: User \"bob\" cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"d\"",
        ),
        (
            "GET",
            "/apis/none/v1/namespaces/a/things/b/c/d",
            "things.none \"b\" is forbidden: User \"bob\" cannot get resource \"things/c\" in API group \"none\" in the namespace \"a\"",
        ),
        (
            "GET",
            "/api/v1/namespaces/d/pods?fieldSelector=metadata.name%3Dx,status.phase%3DRunning",
            "pods \"x\" is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" in the namespace \"d\"",
        ),
        (
            "POST",
            "/api/v1/namespaces/d/pods/x/binding",
            "pods \"x\" is forbidden: User \"bob\" cannot create resource \"pods/binding\" in API group \"\" in the namespace \"d\"",
        ),
        (
            "PATCH",
            "/api/v1/namespaces/d/pods",
            "pods is forbidden: User \"bob\" cannot patch resource \"pods\" in API group \"\" in the namespace \"d\"",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/d/pods",
            "pods is forbidden: User \"bob\" cannot deletecollection resource \"pods\" in API group \"\" in the namespace \"d\"",
        ),
        (
            "OPTIONS",
            "/api/v1/namespaces/d/pods",
            "pods is forbidden: User \"bob\" cannot  resource \"pods\" in API group \"\" in the namespace \"d\"",
        ),
        (
            "GET",
            "//api/v1/pods",
            "pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
        ),
        (
            "GET",
            "/api/v1/namespaces//pods",
            "pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
        ),
        (
            "GET",
            "/metrics",
            "forbidden: User \"bob\" cannot get path \"/metrics\"",
        ),
        (
            "POST",
            "/metrics",
            "forbidden: User \"bob\" cannot post path \"/metrics\"",
        ),
        (
            "GET",
            "/apis/none/v1",
            "forbidden: User \"bob\" cannot get path \"/apis/none/v1\"",
        ),
        ("GET", "/", "forbidden: User \"bob\" cannot get path \"/\""),
    ] {
        assert_eq!(asked(method, uri), message, "{method} {uri}");
    }
}

#[test]
fn a_selector_that_is_overruled_names_nothing() {
    for (query, start) in [
        (
            "fieldSelector=&fieldSelector=metadata.name%3Dmine",
            "secrets is",
        ),
        (
            "fieldSelector=metadata.name%3Dmine&fieldSelector=",
            "secrets \"mine\" is",
        ),
    ] {
        let message = asked("GET", &format!("/api/v1/secrets?{query}"));
        assert!(message.starts_with(start), "{message}");
    }
}

/// A request must not be authorized as one thing and handled as another.
#[test]
fn what_is_judged_is_what_is_answered() {
    let paths = [
        "/api/v1/namespaces/d/pods/x/status",
        "/api/v1/namespaces/d/pods/x/status/",
        "/api/v1/namespaces/d%2Fsecrets%2Fx/pods",
        "/api/v1/namespaces/d/pods%2Fx%2Fstatus",
        "/api/v1/namespaces/d/pods/x%2F",
        "/api/v1/namespaces%2Fd/secrets",
        "/api/v1/namespaces/d%2Ffinalize",
        "/api%2Fv1/secrets/x",
        "/apis%2Fapps/v1/deployments",
        "/apis/apps%2Fv1%2Fnamespaces/d/deployments/x/scale",
        "/api/v1/namespaces/d%252Fsecrets/pods",
        "/api/v1//namespaces/d/pods",
        "/api/v1/namespaces//pods/x",
        "/api/v1/namespaces/%2Fpods/x",
        "//api/v1/secrets",
        "/api/v1/secrets//x",
    ];
    let mut answered = 0;
    for path in paths {
        let Route::Resource(target) = route(path) else {
            continue;
        };
        answered += 1;
        let meant = meant(path);
        let asked = RequestAttributes::read(&Method::GET, &meant, None);
        let AccessTarget::Resource {
            group,
            resource,
            subresource,
            name,
            namespace,
        } = asked.what
        else {
            panic!("{path} is judged as no resource");
        };
        let below = target.subresource.as_deref().unwrap_or_default();
        let judged = (group, resource, name, subresource);
        let (of, plural, named) = (&*target.group, &*target.plural, &*target.name);
        assert_eq!(judged, (of, plural, named, below), "{path}");
        // The namespace of a namespace is its own name.
        let home = match plural {
            "namespaces" => &target.name,
            _ => &target.namespace,
        };
        assert_eq!(namespace, home, "{path}");
    }
    assert_eq!(answered, 11);
}
