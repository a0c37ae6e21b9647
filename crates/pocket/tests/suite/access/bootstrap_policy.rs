//! Users with roles of the bootstrap policy are allowed exactly what they are at kube-apiserver.

use std::collections::HashSet;

use super::client::{RBAC, TestClient, user};
use neap_pocket::access::{AccessTarget, Attributes, Authorizer, Requester};
use serde_json::json;

const TABLE: &str = include_str!("../../data/access.txt");

/// The questions asked about every user.
#[derive(Default)]
struct Questions<'a> {
    verbs: Vec<&'a str>,
    /// A resource, and the verbs that only it has.
    places: Vec<(&'a str, Vec<&'a str>)>,
    paths: Vec<&'a str>,
}

/// A user, and what they may do.
struct Row<'a> {
    kind: &'a str,
    name: &'a str,
    namespace: &'a str,
    /// Verb and resource, or verb and path.
    allowed: HashSet<(&'a str, &'a str)>,
}

fn read(table: &str) -> (Questions<'_>, Vec<Row<'_>>) {
    let mut questions = Questions::default();
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some((verbs, places)) = line.strip_prefix("  ").and_then(|l| l.split_once(": ")) {
            let row = rows.last_mut().unwrap();
            for place in places.split(' ') {
                row.allowed
                    .extend(verbs.split(' ').map(|verb| (verb, place)));
            }
            continue;
        }
        let mut words = line.split(' ');
        match (words.next().unwrap(), words.next()) {
            ("", _) => {}
            ("verbs", first) => questions.verbs = first.into_iter().chain(words).collect(),
            ("place", place) => questions.places.push((place.unwrap(), words.collect())),
            ("path", path) => questions.paths.extend(path),
            (kind, name) => rows.push(Row {
                kind,
                name: name.unwrap(),
                namespace: words.next().unwrap_or_default(),
                allowed: HashSet::new(),
            }),
        }
    }
    (questions, rows)
}

impl Row<'_> {
    /// The name and groups of the user.
    fn who(&self) -> (String, Vec<String>) {
        let Self {
            name, namespace, ..
        } = self;
        match self.kind {
            "clusterrole" => (format!("probe:{name}"), vec![]),
            "role" => (format!("probe:{namespace}:{name}"), vec![]),
            "user" => ((*name).into(), vec![]),
            "group" => ("probe".into(), vec![(*name).into()]),
            "serviceaccount" => (format!("system:serviceaccount:{namespace}:{name}"), vec![]),
            other => panic!("unknown kind of user: {other}"),
        }
    }

    /// The namespace of the questions.
    fn place(&self) -> &str {
        match self.kind {
            "clusterrole" => "default",
            "role" => self.namespace,
            _ => "kube-system",
        }
    }

    /// Binds the role that a row is named after to its user.
    async fn bind(&self, admin: &TestClient) {
        let (who, _) = self.who();
        match self.kind {
            "clusterrole" => admin.bind(&who, self.name, user(&who)).await,
            "role" => {
                let binding = json!({
                    "metadata": {"name": who},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": self.name},
                    "subjects": [user(&who)],
                });
                let path = format!("{RBAC}/namespaces/{}/rolebindings", self.namespace);
                admin.make(&path, binding).await;
            }
            _ => {}
        }
    }
}

/// `group/resource/subresource=name`.
fn what<'a>(place: &'a str, namespace: &'a str) -> AccessTarget<'a> {
    let (place, name) = place.split_once('=').unwrap_or((place, ""));
    let (group, resource) = place.split_once('/').unwrap();
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    AccessTarget::Resource {
        group: if group == "core" { "" } else { group },
        resource,
        subresource,
        name,
        namespace,
    }
}

#[tokio::test(start_paused = true)]
async fn bootstrap_roles_allow_what_they_do_at_a_real_server() {
    let (questions, rows) = read(TABLE);
    let admin = TestClient::new().await;
    for row in &rows {
        row.bind(&admin).await;
    }
    let access = Authorizer::default();
    access.follow(admin.pocket.store());
    let (mut asked, mut wrong) = (0, Vec::new());
    for row in &rows {
        let (name, groups) = row.who();
        let who = Requester {
            name: &name,
            groups: &groups,
        };
        let places = questions.places.iter().flat_map(|(place, own)| {
            let verbs = questions.verbs.iter().chain(own);
            verbs.map(|verb| (*verb, *place, what(place, row.place())))
        });
        let paths = questions.paths.iter().flat_map(|path| {
            let verbs = ["get", "post"];
            verbs.map(|verb| (verb, *path, AccessTarget::Path(path)))
        });
        for (verb, place, what) in places.chain(paths) {
            asked += 1;
            let decision = access.decide(&Attributes { who, verb, what });
            if decision.allowed != row.allowed.contains(&(verb, place)) {
                wrong.push(format!(
                    "{} {}: {verb} {place}: {decision:?}",
                    row.kind, row.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        rows.len() >= 128 && asked > 154_000,
        "{asked} of {}",
        rows.len()
    );
}
