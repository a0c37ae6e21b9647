//! Everybody who has a role of the bootstrap policy may do what they may at a real server, and
//! nothing else.

use std::collections::HashSet;

use crate::asker::{Asker, RBAC, user};
use neap_pocket::access::{Access, Attributes, What, Who};
use serde_json::json;

const TABLE: &str = include_str!("../data/access.txt");

/// What was asked of everybody.
#[derive(Default)]
struct Questions<'a> {
    verbs: Vec<&'a str>,
    /// A place, and the verbs that only it has.
    places: Vec<(&'a str, Vec<&'a str>)>,
    paths: Vec<&'a str>,
}

/// Somebody who was asked about, and what they may do.
struct Row<'a> {
    kind: &'a str,
    name: &'a str,
    namespace: &'a str,
    /// Verb and place, or verb and path.
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
    /// The name and groups that the question is asked about.
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
            other => panic!("nobody is a {other}"),
        }
    }

    /// The namespace that the question is asked in.
    fn place(&self) -> &str {
        match self.kind {
            "clusterrole" => "default",
            "role" => self.namespace,
            _ => "kube-system",
        }
    }

    /// Gives those who stand for a role that role.
    async fn bind(&self, admin: &Asker) {
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
fn what<'a>(place: &'a str, namespace: &'a str) -> What<'a> {
    let (place, name) = place.split_once('=').unwrap_or((place, ""));
    let (group, resource) = place.split_once('/').unwrap();
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    What::Resource {
        group: if group == "core" { "" } else { group },
        resource,
        subresource,
        name,
        namespace,
    }
}

#[tokio::test(start_paused = true)]
async fn everybody_may_do_what_they_may_at_a_real_server_and_nothing_else() {
    let (questions, rows) = read(TABLE);
    let admin = Asker::new().await;
    for row in &rows {
        row.bind(&admin).await;
    }
    let access = Access::default();
    access.follow(admin.pocket.store());
    let (mut asked, mut wrong) = (0, Vec::new());
    for row in &rows {
        let (name, groups) = row.who();
        let who = Who {
            name: &name,
            groups: &groups,
        };
        let places = questions.places.iter().flat_map(|(place, own)| {
            let verbs = questions.verbs.iter().chain(own);
            verbs.map(|verb| (*verb, *place, what(place, row.place())))
        });
        let paths = questions.paths.iter().flat_map(|path| {
            let verbs = ["get", "post"];
            verbs.map(|verb| (verb, *path, What::Path(path)))
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
