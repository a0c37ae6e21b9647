//! The cost of long lists: for every list field of every built-in kind, a body with twice the
//! entries may cost at most three times the processor time, whichever verb brings it. Work that is
//! linear costs twice as much and a little more, since longer lists leave the caches; work that is
//! quadratic costs four times as much.
//!
//! Bodies have a small part of the allowed size, and fields of the pod template are tried in two of
//! the kinds that have one. With `NEAP_LIST_BYTES=3145728` bodies are as large as they may be, and
//! all fields of all kinds are tried; that takes an hour. `NEAP_LIST_KIND` selects one kind.

mod bases;
mod fields;
mod meter;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};
use tower::ServiceExt;

use bases::Kind;
use fields::{Filling, ListField};
use meter::Meter;

const MAX_BODY_BYTES: usize = 3 << 20;
const USUAL_BODY_BYTES: usize = MAX_BODY_BYTES / 96;
/// The processor time of a request beside its list: routing, other fields, the clock's own grain.
const FIXED_NANOS: u64 = 2_000_000;

/// The verbs, in the order in which one object meets them.
const STEPS: [&str; 7] = [
    "create as a dry run",
    "update",
    "update of a long list",
    "strategic patch",
    "strategic patch of another order",
    "apply as a dry run",
    "apply",
];

struct Server(Pocket);

impl Server {
    async fn open() -> Self {
        let options = Options::new(Environment::simulated(1));
        Self(Pocket::open(options).await.unwrap())
    }

    #[expect(clippy::disallowed_methods, reason = "answers of a test are bounded")]
    async fn send(&self, method: &str, uri: &str, kind: &str, body: &Bytes) -> u16 {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", kind)
            .body(Full::new(body.clone()))
            .unwrap();
        let answer = self.0.service().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let _ = answer.into_body().collect().await.unwrap();
        status
    }

    async fn cost(&self, method: &str, uri: &str, kind: &str, body: &Bytes) -> (u16, u64) {
        let meter = Meter::start();
        let status = self.send(method, uri, kind, body).await;
        (status, meter.nanos())
    }

    /// The cost of each step for a list of `count` entries, and how often it was accepted.
    async fn costs(&self, case: &Case<'_>, name: &str, count: usize) -> [(u16, u64); 7] {
        let Case { kind, field, .. } = case;
        let base = kind.object(name);
        let stored = base["metadata"]["name"].as_str().unwrap().to_owned();
        let mut items = field.items(case.filling, count);
        let body =
            |items: Vec<Value>| Bytes::from(field.placed_in(base.clone(), items).to_string());
        let long = body(items.clone());
        items.reverse();
        let other = body(items);
        let base = Bytes::from(base.to_string());
        let (all, one) = (kind.collection(), kind.item(&stored));
        let dry = |uri: &str| format!("{uri}?dryRun=All");
        let apply = format!("{one}?fieldManager=cost&force=true");
        let dry_apply = format!("{apply}&dryRun=All");
        let (plain, strategic, yaml) = (
            "application/json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        );
        let mut costs = [(0, 0); 7];
        costs[0] = self.cost("POST", &dry(&all), plain, &long).await;
        if kind.can("update") {
            self.send("POST", &all, plain, &base).await;
            costs[1] = self.cost("PUT", &one, plain, &long).await;
            costs[2] = self.cost("PUT", &one, plain, &other).await;
        }
        if kind.can("patch") {
            costs[3] = self.cost("PATCH", &one, strategic, &long).await;
            costs[4] = self.cost("PATCH", &one, strategic, &other).await;
            costs[5] = self.cost("PATCH", &dry_apply, yaml, &long).await;
            costs[6] = self.cost("PATCH", &apply, yaml, &other).await;
        }
        if kind.can("delete") {
            self.send("PUT", &one, plain, &base).await;
            let now = Bytes::from(json!({"gracePeriodSeconds": 0}).to_string());
            self.send("DELETE", &one, plain, &now).await;
        }
        costs
    }
}

/// One list field, filled in one way.
struct Case<'a> {
    kind: &'a Kind,
    field: &'a ListField,
    filling: Filling,
}

/// What a case costs too much, if anything; and how many of its requests were accepted.
async fn judge(
    server: &Server,
    case: &Case<'_>,
    bytes: usize,
    serial: &mut usize,
) -> (Vec<String>, usize) {
    let mut entries = case.field.entries_in(case.filling, bytes);
    let mut least = [[u64::MAX; 7]; 2];
    let mut accepted = 0;
    // What is only noise in short lists is gone in longer ones; what is not is clearer there.
    for (attempt, longer) in [1, 1, 1, 4, 4, 4, 8, 8, 8].into_iter().enumerate() {
        let count = case.field.entries_in(case.filling, bytes * longer);
        if count != entries {
            (entries, least) = (count, [[u64::MAX; 7]; 2]);
        }
        for (size, count) in [entries / 2, entries].into_iter().enumerate() {
            *serial += 1;
            let name = format!("n{serial}");
            let costs = server.costs(case, &name, count).await;
            if attempt == 0 {
                accepted += costs.iter().filter(|(code, _)| *code / 100 == 2).count();
            }
            for (least, (_, cost)) in least[size].iter_mut().zip(costs) {
                *least = cost.min(*least);
            }
        }
        if too_much(&least).next().is_none() {
            return (Vec::new(), accepted);
        }
    }
    let field = &case.field.path;
    let kind = &case.kind.name;
    let found = too_much(&least).map(|(step, half, whole)| {
        format!(
            "{kind} {field} {:?}, {step}: {} entries {} ms, {entries} entries {} ms",
            case.filling,
            entries / 2,
            half / 1_000_000,
            whole / 1_000_000
        )
    });
    (found.collect(), accepted)
}

fn too_much(least: &[[u64; 7]; 2]) -> impl Iterator<Item = (&'static str, u64, u64)> {
    let [half, whole] = *least;
    let steps = STEPS.into_iter().zip(half).zip(whole);
    steps
        .map(|((step, half), whole)| (step, half, whole))
        .filter(|(_, half, whole)| whole.saturating_sub(FIXED_NANOS) > half * 3)
}

async fn try_kinds(takes: impl Fn(&Kind) -> bool, shared_too: bool) {
    let variable = |name: &str| std::env::var(name).ok();
    let given = variable("NEAP_LIST_BYTES").and_then(|text| text.parse().ok());
    let bytes = given.unwrap_or(USUAL_BODY_BYTES);
    let only = variable("NEAP_LIST_KIND");
    let mut errors = Vec::new();
    let (mut fields, mut accepted, mut serial) = (0, 0, 0);
    for kind in bases::kinds() {
        if !takes(&kind) || only.as_ref().is_some_and(|only| *only != kind.name) {
            continue;
        }
        let all = shared_too || given.is_some();
        let server = Server::open().await;
        for field in fields::lists_of(&kind.ty) {
            if field.is_of_template() && !all {
                continue;
            }
            fields += 1;
            for filling in Filling::ALL {
                let (kind, field) = (&kind, &field);
                let case = Case {
                    kind,
                    field,
                    filling,
                };
                let (found, good) = judge(&server, &case, bytes, &mut serial).await;
                accepted += good;
                errors.extend(found);
            }
        }
    }
    assert!(only.is_some() || fields > 0, "no list was tried");
    assert!(
        only.is_some() || accepted > fields,
        "hardly any request was accepted"
    );
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn twice_the_entries_of_a_pods_list_cost_twice_the_time() {
    try_kinds(|kind| kind.name == "Pod", true).await;
}

#[tokio::test(start_paused = true)]
async fn twice_the_entries_of_a_templates_list_cost_twice_the_time() {
    try_kinds(|kind| kind.name == "Deployment", true).await;
}

#[tokio::test(start_paused = true)]
async fn twice_the_entries_of_any_other_list_cost_twice_the_time() {
    let takes = |kind: &Kind| !matches!(&*kind.name, "Pod" | "Deployment");
    try_kinds(takes, false).await;
}
