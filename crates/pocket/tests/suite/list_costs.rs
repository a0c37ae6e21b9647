//! The cost of long lists: for every list field of every built-in kind, a body with twice the
//! entries may cost at most two and a half times the processor time, whichever verb brings it. Work
//! that is linear costs twice as much and a little more, since longer lists leave the caches; work
//! that is quadratic costs four times as much.
//!
//! Bodies have a small part of the allowed size, except for the lists that are long in practice, and
//! fields of the pod template are tried in two of the kinds that have one. With
//! `NEAP_LIST_BYTES=3145728` bodies are as large as they may be, and all fields of all kinds are
//! tried; that takes hours. `NEAP_LIST_KIND` selects one kind.

mod bases;
mod exceptions;
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

const USUAL_BODY_BYTES: usize = 32 << 10;
/// Of the lists that are long in practice.
const LONG_BODY_BYTES: usize = 512 << 10;
/// The largest body that is tried: the largest that the server reads, less what a step adds to it.
const MAX_TRIED_BYTES: usize = (3 << 20) - (64 << 10);
/// How much longer than asked for the bodies of each attempt are. What is only noise in short lists is
/// gone in longer ones; what is not is clearer there.
const SIZE_FACTORS: [usize; 11] = [1, 1, 1, 1, 1, 4, 4, 4, 8, 8, 8];
/// How often a list is halved whose object is larger than may be stored.
const MAX_HALVINGS: u32 = 2;
/// The processor time of a request beside its list: routing, other fields, the clock's own grain.
const FIXED_NANOS: u64 = 200_000;

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

/// The answer to a step and its processor time. A kind without the verb has no answer.
#[derive(Clone, Copy)]
struct Cost {
    status: u16,
    nanos: u64,
}

impl Default for Cost {
    fn default() -> Self {
        Self {
            status: 0,
            nanos: u64::MAX,
        }
    }
}

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

    async fn cost(&self, method: &str, uri: &str, kind: &str, body: &Bytes) -> Cost {
        let meter = Meter::start();
        let status = self.send(method, uri, kind, body).await;
        let nanos = meter.nanos();
        Cost { status, nanos }
    }

    /// The cost of each step for a list of `count` entries.
    async fn costs(&self, case: &Case<'_>, name: &str, count: usize) -> [Cost; 7] {
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
        let mut costs = [Cost::default(); 7];
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

impl Case<'_> {
    fn entries_in(&self, bytes: usize) -> usize {
        let base = self.kind.object("n0000000");
        self.field.entries_in(self.filling, &base, bytes)
    }

    fn error(&self, step: &str, what: &str) -> String {
        let Case { kind, field, .. } = self;
        format!(
            "{} {} {:?}, {step}: {what}",
            kind.name, field.path, self.filling
        )
    }
}

/// What is known of the steps of a case.
#[derive(Default)]
struct Verdict {
    errors: Vec<String>,
    /// The steps at which half of the list and the whole were accepted.
    accepted: [bool; 7],
}

/// Compares the costs of a list and of its half, in bodies of up to `bytes`.
async fn judge(server: &Server, case: &Case<'_>, bytes: usize, serial: &mut usize) -> Verdict {
    let mut verdict = Verdict::default();
    let mut measured = Measured::default();
    let mut halvings = 0;
    let mut factors = SIZE_FACTORS.into_iter();
    let mut next = factors.next();
    // A step that was quick enough once is: what else the machine does only adds time.
    let mut slow = STEPS.to_vec();
    while let Some(factor) = next {
        let count = case.entries_in((bytes * factor).min(MAX_TRIED_BYTES)) >> halvings;
        measured.restart_with(count.max(2));
        measured.add(server, case, serial).await;
        if let Some(step) = measured.too_large() {
            // A stored object is larger than the body by its managed fields.
            halvings += 1;
            if halvings > MAX_HALVINGS {
                let what = format!("{count} entries are too large");
                verdict.errors.push(case.error(step, &what));
                return verdict;
            }
            continue;
        }
        if factor == 1 {
            verdict.accepted = measured.accepted();
        }
        let too_costly: Vec<_> = measured.too_costly().map(|(step, ..)| step).collect();
        slow.retain(|step| too_costly.contains(step));
        if slow.is_empty() {
            return verdict;
        }
        next = factors.next();
    }
    let found = measured.too_costly();
    let found = found.filter(|(step, ..)| slow.contains(step));
    let found = found.map(|(step, half, whole)| {
        let count = measured.count;
        let what = format!(
            "{} entries {} µs, {count} entries {} µs",
            count / 2,
            half / 1000,
            whole / 1000
        );
        case.error(step, &what)
    });
    verdict.errors.extend(found);
    verdict
}

/// The least costs of a list's half and of the whole.
#[derive(Default)]
struct Measured {
    /// Entries of the whole list.
    count: usize,
    half: [Cost; 7],
    whole: [Cost; 7],
}

impl Measured {
    /// Forgets what was measured with another number of entries.
    fn restart_with(&mut self, count: usize) {
        if self.count != count {
            *self = Self {
                count,
                ..Self::default()
            };
        }
    }

    async fn add(&mut self, server: &Server, case: &Case<'_>, serial: &mut usize) {
        for (least, count) in [
            (&mut self.half, self.count / 2),
            (&mut self.whole, self.count),
        ] {
            *serial += 1;
            let costs = server.costs(case, &format!("n{serial}"), count).await;
            for (least, cost) in least.iter_mut().zip(costs) {
                least.status = cost.status;
                least.nanos = cost.nanos.min(least.nanos);
            }
        }
    }

    fn steps(&self) -> impl Iterator<Item = (&'static str, Cost, Cost)> {
        let pairs = self.half.into_iter().zip(self.whole);
        let steps = STEPS.into_iter().zip(pairs);
        steps.map(|(step, (half, whole))| (step, half, whole))
    }

    fn too_large(&self) -> Option<&'static str> {
        let mut steps = self.steps();
        let found = steps.find(|(_, half, whole)| [half.status, whole.status].contains(&413));
        found.map(|(step, ..)| step)
    }

    fn accepted(&self) -> [bool; 7] {
        let is_accepted = |cost: Cost| cost.status / 100 == 2;
        std::array::from_fn(|at| is_accepted(self.half[at]) && is_accepted(self.whole[at]))
    }

    /// The steps at which the whole costs more than it may, with both costs. A refusal may come before
    /// the work, so that only equal answers can be compared.
    fn too_costly(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let answered = self.steps().filter(|(_, half, _)| half.status != 0);
        answered
            .filter(|(_, half, whole)| half.status == whole.status)
            .map(|(step, half, whole)| (step, half.nanos, whole.nanos))
            .filter(|(_, half, whole)| whole.saturating_sub(FIXED_NANOS) * 2 > half * 5)
    }
}

/// The errors of a list field however it is filled, and the steps at which no long list is accepted.
async fn judge_field(
    server: &Server,
    kind: &Kind,
    field: &ListField,
    bytes: usize,
    serial: &mut usize,
) -> (Vec<String>, Vec<&'static str>) {
    let mut errors = Vec::new();
    let mut accepted = [false; 7];
    for filling in Filling::ALL {
        let case = Case {
            kind,
            field,
            filling,
        };
        let verdict = judge(server, &case, bytes, serial).await;
        errors.extend(verdict.errors);
        for (all, one) in accepted.iter_mut().zip(verdict.accepted) {
            *all |= one;
        }
    }
    let verbs = [
        "create", "update", "update", "patch", "patch", "patch", "patch",
    ];
    let steps = STEPS.into_iter().zip(verbs).zip(accepted);
    let refused = steps.filter(|((_, verb), accepted)| kind.can(verb) && !accepted);
    (errors, refused.map(|((step, _), _)| step).collect())
}

async fn try_kinds(takes: impl Fn(&Kind) -> bool, template_too: bool) {
    let variable = |name: &str| std::env::var(name).ok();
    let given: Option<usize> = variable("NEAP_LIST_BYTES").and_then(|text| text.parse().ok());
    let only = variable("NEAP_LIST_KIND");
    let exceptions = exceptions::read();
    let mut errors = Vec::new();
    let (mut fields, mut serial) = (0, 0);
    for kind in bases::kinds() {
        if !takes(&kind) || only.as_ref().is_some_and(|only| *only != kind.name) {
            continue;
        }
        let server = Server::open().await;
        for field in fields::lists_of(&kind.ty) {
            if field.is_of_template() && !template_too && given.is_none() {
                continue;
            }
            fields += 1;
            let name = format!("{} {}", kind.title(), field.path);
            let bytes = given.unwrap_or(USUAL_BODY_BYTES);
            let (found, refused) = judge_field(&server, &kind, &field, bytes, &mut serial).await;
            errors.extend(found);
            if given.is_none() {
                // Other sizes meet other limits on the number of entries.
                errors.extend(exceptions.problem(&name, &refused));
                if exceptions::LONG.contains(&&*name) {
                    let bytes = LONG_BODY_BYTES;
                    let judged = judge_field(&server, &kind, &field, bytes, &mut serial).await;
                    errors.extend(judged.0);
                }
            }
        }
    }
    assert!(only.is_some() || fields > 0, "no list was tried");
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

#[test]
fn every_exception_is_a_list_of_a_kind() {
    let kinds = bases::kinds();
    let lists = kinds.iter().flat_map(|kind| {
        let lists = fields::lists_of(&kind.ty).into_iter();
        lists.map(|list| format!("{} {}", kind.title(), list.path))
    });
    let lists: Vec<_> = lists.collect();
    let exceptions = exceptions::read();
    for field in exceptions.fields().chain(exceptions::LONG) {
        assert!(lists.iter().any(|list| list == field), "{field}");
    }
}
