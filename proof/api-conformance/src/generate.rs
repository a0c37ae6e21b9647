//! Generates the calls of a run from a seed.
//!
//! The generator knows the responses of the reference. Of the other server it knows only which
//! objects were retired because of it: a seed repeats its calls as long as the same things differ,
//! and `--record` stores them.

mod edit;
mod malformed;
mod mutate;
mod patch;
mod read;
mod reproducible;
mod value;
mod write;

use std::sync::Arc;

use neap_load::rng::SeededRng;
use serde_json::Value;

pub(crate) use self::edit::made_from;
use self::value::{chance, pick};
use crate::{
    call::{About, Body, Call, Captures, capture},
    kinds::Kind,
    schema::Types,
};

/// What all generators share.
#[derive(Debug)]
pub struct Schemas {
    pub types: Types,
    pub kinds: Vec<Kind>,
}

/// An existing object.
#[derive(Debug, Clone)]
pub struct KnownObject {
    /// The index of its kind.
    pub kind: usize,
    /// Empty if it is cluster-scoped.
    pub namespace: String,
    /// May be a reference to a response.
    pub name: String,
    /// The calls that returned it, the newest last.
    pub seen: Vec<usize>,
}

/// Generates calls.
#[derive(Debug)]
pub struct CallGenerator {
    world: Arc<Schemas>,
    rng: SeededRng,
    seed: String,
    /// The namespaces of the objects.
    namespaces: Vec<String>,
    /// The existing objects.
    pub objects: Vec<KnownObject>,
    names: usize,
    /// The calls that created an object in each namespace for others to be owned by; it is never
    /// deleted.
    anchors: Vec<usize>,
    /// The call with a continue token, the path it continues, and the kind.
    pages: Option<(usize, String, usize)>,
    /// The kinds and calls of recent lists, for their revisions.
    lists: Vec<(usize, usize)>,
}

/// Responses per object that are remembered, for stale revisions.
const MAX_REMEMBERED: usize = 4;
/// Objects of one kind at most.
const MAX_OBJECTS_PER_KIND: usize = 14;

pub(super) const MANAGERS: [&str; 6] = [
    "ann",
    "bob",
    "kubectl",
    "helm",
    "ci",
    "kubectl-client-side-apply",
];

impl CallGenerator {
    /// A generator for one seed in `namespaces`; `anchors` are the calls that created the owner
    /// object in each.
    pub fn new(
        world: Arc<Schemas>,
        seed: u64,
        tag: &str,
        namespaces: Vec<String>,
        anchors: Vec<usize>,
    ) -> Self {
        Self {
            world,
            rng: SeededRng::new(seed),
            seed: format!("{seed}{tag}"),
            namespaces,
            objects: Vec::new(),
            names: 0,
            anchors,
            pages: None,
            lists: Vec::new(),
        }
    }

    /// The next call, given the responses of the reference so far.
    pub fn next(&mut self, captures: &Captures) -> Call {
        let call = self.any(captures);
        self.narrow(call, captures)
    }

    fn any(&mut self, captures: &Captures) -> Call {
        let kind = self.kind();
        let crowd = self.of_kind(kind).count();
        if crowd == 0 || (crowd < MAX_OBJECTS_PER_KIND && chance(&mut self.rng, 5)) {
            return self.create(kind);
        }
        match self.rng.below(100) {
            0..=7 => self.create(kind),
            8..=21 => self.put(kind, captures),
            22..=59 => self.patch(kind, captures),
            60..=68 => self.delete(kind),
            69..=70 => self.delete_many(kind),
            71..=78 => self.get(kind),
            79..=93 => self.list(kind, captures),
            _ => self.odd(kind, captures),
        }
    }

    /// A watch: its kind, namespace and path. None if all kinds are cluster-scoped, because other
    /// clients write such objects too.
    pub fn watch(&mut self) -> Option<(usize, String, String)> {
        let drawn = |kind: &Kind| kind.namespaced && kind.weight > 0;
        if !self.world.kinds.iter().any(drawn) {
            return None;
        }
        let kind = loop {
            let kind = self.kind();
            if self.world.kinds[kind].namespaced {
                break kind;
            }
        };
        let namespace = self.namespace(kind);
        let listed = self
            .lists
            .iter()
            .rev()
            .find(|(of, _)| self.world.kinds[*of].namespaced);
        let since = match (self.rng.below(5), listed) {
            (0, _) => "&resourceVersion=0".to_owned(),
            (1, _) => {
                "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
                    .to_owned()
            }
            (2 | 3, Some((_, number))) => format!(
                "&resourceVersion={}",
                capture(*number, "/metadata/resourceVersion")
            ),
            _ => String::new(),
        };
        let selected = *pick(
            &mut self.rng,
            &[
                "",
                "",
                "&labelSelector=app%3Dweb",
                "&labelSelector=app",
                "&fieldSelector=metadata.name!%3Dnone",
            ],
        );
        let path = format!(
            "{}?watch=true{since}{selected}",
            self.world.kinds[kind].collection(&namespace)
        );
        Some((kind, namespace, path))
    }

    fn kind(&mut self) -> usize {
        let world = self.world.clone();
        let total: usize = world.kinds.iter().map(|kind| kind.weight).sum();
        let mut drawn = self.rng.below(total);
        for (place, kind) in world.kinds.iter().enumerate() {
            if drawn < kind.weight {
                return place;
            }
            drawn -= kind.weight;
        }
        0
    }

    /// The objects of a kind, in any of its versions.
    fn of_kind(&self, kind: usize) -> impl Iterator<Item = &KnownObject> {
        let plural = &self.world.kinds[kind].plural;
        self.objects
            .iter()
            .filter(move |known| self.world.kinds[known.kind].plural == *plural)
    }

    fn some_object(&mut self, kind: usize) -> Option<KnownObject> {
        let all: Vec<_> = self.of_kind(kind).cloned().collect();
        (!all.is_empty()).then(|| pick(&mut self.rng, &all).clone())
    }

    fn new_name(&mut self, kind: usize) -> String {
        self.names += 1;
        let stem = self.world.kinds[kind].name.to_lowercase();
        let stem = &stem[..stem.len().min(4)];
        if self.world.kinds[kind].name == "CustomResourceDefinition" {
            return format!("x{}s.s{}.example.com", self.names, self.seed);
        }
        format!("{stem}-{}-{}", self.seed, self.names)
    }

    fn namespace(&mut self, kind: usize) -> String {
        if self.world.kinds[kind].namespaced {
            pick(&mut self.rng, &self.namespaces).clone()
        } else {
            String::new()
        }
    }

    /// The path of an object, by the endpoint of `kind`.
    fn place(&self, kind: usize, known: &KnownObject, subresource: &str) -> String {
        let mut path = self.world.kinds[kind].collection(&known.namespace);
        path.push('/');
        path.push_str(&known.name);
        if !subresource.is_empty() {
            path.push('/');
            path.push_str(subresource);
        }
        path
    }

    fn call(&self, kind: usize, verb: &str, method: &str, path: String) -> Call {
        Call {
            method: method.into(),
            path,
            accept: "application/json".into(),
            content_type: String::new(),
            body: Body::None,
            about: About {
                kind: self.world.kinds[kind].name.clone(),
                verb: verb.into(),
                object: None,
            },
        }
    }

    /// The object as the reference last returned it, with values chosen by servers replaced by
    /// references.
    fn base(known: &KnownObject, captures: &Captures) -> Option<Value> {
        let number = *known.seen.last()?;
        let mut value = captures.get(&number)?.clone();
        edit::symbolic(&mut value, number, &known.name);
        Some(value)
    }

    /// Learns from the reference's response to a call.
    pub fn learn(&mut self, number: usize, call: &Call, code: u16, body: &Value) {
        if body["metadata"]["continue"]
            .as_str()
            .is_some_and(|token| !token.is_empty())
        {
            let path = call
                .path
                .split("&continue")
                .next()
                .unwrap_or_default()
                .to_owned();
            let kind = self.kind_named(&call.about.kind, &call.path);
            self.pages = Some((number, path, kind));
        }
        let kind = self.kind_named(&call.about.kind, &call.path);
        // A list of an older state depends on a server's cache.
        let newest = !call.path.contains("resourceVersion=") && !call.path.contains("continue=");
        if call.about.verb.starts_with("list") && code == 200 && newest {
            self.lists.push((kind, number));
            self.lists.drain(..self.lists.len().saturating_sub(8));
        }
        self.learn_object(kind, number, call, code, body);
    }

    fn learn_object(&mut self, kind: usize, number: usize, call: &Call, code: u16, body: &Value) {
        if call.about.kind == "Service" && call.about.verb == "deletecollection" && code == 200 {
            // Addresses and ports of a deleted service may be assigned again, on one side or both.
            self.objects.retain(|known| known.kind != kind);
        }
        let Some((namespace, name)) = &call.about.object else {
            return;
        };
        let found = self.objects.iter().position(|known| {
            known.name == *name
                && known.namespace == *namespace
                && self.world.kinds[known.kind].plural == self.world.kinds[kind].plural
        });
        if code == 404 || code == 200 && body["kind"] == "Status" {
            if let Some(found) = found {
                self.objects.remove(found);
            }
            return;
        }
        let written = matches!(code, 200..=202) && !call.is_dry_run();
        if !written || body["metadata"]["uid"].is_null() || body["kind"] != call.about.kind {
            return;
        }
        // The response to a delete of a service shows it as it was.
        let answered = call.about.verb == "delete" && call.about.kind == "Service";
        let gone = (answered || !body["metadata"]["deletionTimestamp"].is_null())
            && body["metadata"]["finalizers"].is_null()
            && body["metadata"]["deletionGracePeriodSeconds"]
                .as_i64()
                .unwrap_or(0)
                == 0
            && body["spec"]["finalizers"].is_null();
        match found {
            Some(found) if gone => drop(self.objects.remove(found)),
            Some(found) => {
                let seen = &mut self.objects[found].seen;
                seen.push(number);
                seen.drain(..seen.len().saturating_sub(MAX_REMEMBERED));
                self.objects[found].kind = kind;
            }
            None if gone => {}
            None => self.objects.push(KnownObject {
                kind,
                namespace: namespace.clone(),
                name: if name.is_empty() {
                    capture(number, "/metadata/name")
                } else {
                    name.clone()
                },
                seen: vec![number],
            }),
        }
    }

    fn kind_named(&self, name: &str, path: &str) -> usize {
        let mut kinds = self.world.kinds.iter().enumerate();
        let version = |kind: &Kind| path.contains(&format!("/{}/", kind.api_version));
        kinds
            .find(|(_, kind)| kind.name == name && (!kind.custom || version(kind)))
            .map_or(0, |(place, _)| place)
    }

    pub fn forget(&mut self, namespace: &str, name: &str) {
        self.objects
            .retain(|known| known.namespace != namespace || known.name != name);
    }

    /// The calls whose responses may still be referred to.
    pub fn needed(&self) -> Vec<usize> {
        let seen = self
            .objects
            .iter()
            .flat_map(|known| known.seen.iter().copied());
        let lists = self.lists.iter().map(|(_, number)| *number);
        let names = self.objects.iter().filter_map(|known| {
            known
                .name
                .strip_prefix('⟦')?
                .split_once(':')?
                .0
                .parse()
                .ok()
        });
        let page = self.pages.iter().map(|(number, _, _)| *number);
        seen.chain(lists)
            .chain(names)
            .chain(page)
            .chain(self.anchors.iter().copied())
            .collect()
    }
}
