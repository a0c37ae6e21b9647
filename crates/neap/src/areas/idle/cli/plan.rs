//! `neap idle plan`: what the operator would do next about a service, without doing it.

use std::{fmt::Write as _, io::Write, time::Duration};

use neap_idle::{
    elasti_service::decide::{Inquiry, ServiceChange},
    operator::{
        OperatorOptions,
        dry_run::{self, DryRun},
    },
    options::Installation,
    reason::Reason,
};
use neap_kit::{apply::PlannedChange, event::EventDraft, key::Key, why::chain};
use serde_json::{Value, json};

use super::{PlanOptions, cluster_scope::ClusterScope};
use crate::{
    exit::{Exit, Failure},
    inspect::{
        print,
        read::{self, SERVICE},
    },
    printable::printable_line,
    symbols::Symbols,
};

/// Name of the port that identifies the Service of the resolvers, whatever the name of the Service.
const RESOLVER_PORT_NAME: &str = "http-resolver-reverse-proxy";

pub(super) async fn run(
    options: &PlanOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scope = ClusterScope::named(&options.cluster, options.namespace.as_deref()).await?;
    scope.check_served().await?;
    let namespace = scope.namespace.clone().unwrap_or_default();
    let key = Key::new(&namespace, &options.name);
    let operator = OperatorOptions::new(installation(&scope).await?);
    let client = scope.cluster.client.clone();
    let found = Box::pin(dry_run::dry_run(client, scope.clock, &operator, &key)).await;
    let found = found.map_err(|error| unreadable(&key, &error))?;
    let items = items(&key, &found);
    if items.is_empty() {
        return Err(missing(&key));
    }
    if let Some(format) = options.output.data() {
        let items: Vec<_> = items.iter().map(PlannedItem::json).collect();
        return print::data(out, format, "IdlePlan", &json!({ "items": items }));
    }
    let texts: Vec<_> = items.iter().map(|item| item.text(symbols)).collect();
    print::text(out, &texts.join("\n"))
}

/// The names of the installation, by the Service of its resolvers; the standard names if there is none.
async fn installation(scope: &ClusterScope) -> Result<Installation, Failure> {
    let services = read::list(&scope.cluster.client, SERVICE, None, None).await;
    let services = services.map_err(|error| scope.cluster.failed("Services", &error))?;
    let standard = Installation::standard();
    let resolver = services.iter().find(|service| {
        let ports = service["spec"]["ports"].as_array();
        let mut ports = ports.into_iter().flatten();
        ports.any(|port| port["name"] == RESOLVER_PORT_NAME)
    });
    let Some(resolver) = resolver else {
        return Ok(standard);
    };
    let text = |field: &str| resolver["metadata"][field].as_str().unwrap_or_default();
    Ok(Installation {
        resolver_namespace: text("namespace").to_owned(),
        resolver_service: text("name").to_owned(),
        operator_namespace: text("namespace").to_owned(),
        ..standard
    })
}

/// The decision about one object.
struct PlannedItem {
    kind: &'static str,
    key: Key,
    reason: Reason,
    changes: Vec<PlannedLine>,
    /// The status that would be written; none if it stays as it is.
    status: Option<Value>,
    events: Vec<EventDraft>,
    inquiry: Option<String>,
    requeue_after: Option<Duration>,
    assumptions: Vec<String>,
}

/// One change, as text and as JSON.
struct PlannedLine {
    text: String,
    json: Value,
}

fn items(key: &Key, found: &DryRun) -> Vec<PlannedItem> {
    let annotated = found.annotated.iter().map(|one| {
        let decision = &one.decision;
        PlannedItem {
            kind: one.kind,
            key: key.clone(),
            reason: decision.reason.clone(),
            changes: decision.plan.iter().map(line).collect(),
            status: None,
            events: decision.events.clone(),
            inquiry: None,
            requeue_after: decision.requeue_after,
            assumptions: Vec::new(),
        }
    });
    let service = found.service.iter().map(|one| {
        let decision = &one.decision;
        let changes = decision.plan.iter().map(service_line);
        let before = one.service.status.clone().unwrap_or_default();
        let changed = decision.status != before;
        PlannedItem {
            kind: "ElastiService",
            key: key.clone(),
            reason: decision.reason.clone(),
            changes: changes.collect(),
            status: changed.then(|| json!(decision.status)),
            events: decision.events.clone(),
            inquiry: decision.inquiry.as_ref().map(inquiry),
            requeue_after: decision.requeue_after,
            assumptions: one.assumptions.clone(),
        }
    });
    annotated.chain(service).collect()
}

fn line(change: &PlannedChange) -> PlannedLine {
    let key = change.key();
    let resource = &change.kind().resource;
    PlannedLine {
        text: change.to_string(),
        json: json!({
            "verb": change.verb(),
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "namespace": key.namespace(),
            "name": key.name(),
            "subresource": change.subresource(),
            "content": change.content(),
            "reason": change.reason(),
        }),
    }
}

fn service_line(change: &ServiceChange) -> PlannedLine {
    match change {
        ServiceChange::Write(change) => line(change),
        ServiceChange::FreePorts { ports, reason } => PlannedLine {
            text: change.to_string(),
            json: json!({"verb": "free", "ports": ports, "reason": reason}),
        },
    }
}

fn inquiry(inquiry: &Inquiry) -> String {
    match inquiry {
        Inquiry::Proof(claim) => {
            format!("prove that the data plane reaches {:?}", claim.towards).to_lowercase()
        }
        Inquiry::WakeBreakdown => "measure the parts of the last wake".to_owned(),
    }
}

impl PlannedItem {
    fn text(&self, symbols: Symbols) -> String {
        let mark = if self.changes.is_empty() && self.inquiry.is_none() {
            symbols.dot
        } else {
            symbols.note
        };
        let mut text = format!("{mark} {} {}\n", self.kind, self.key);
        let mut line = |title: &str, value: &str| {
            let _ = writeln!(text, "  {title:<9} {}", printable_line(value));
        };
        let Reason { name, message, .. } = &self.reason;
        line("Reason", &format!("{name}: {message}"));
        if self.changes.is_empty() {
            line("Plan", "nothing to write");
        }
        for (at, change) in self.changes.iter().enumerate() {
            let title = if at == 0 { "Plan" } else { "" };
            line(title, &format!("{}. {}", at + 1, change.text));
        }
        if let Some(status) = &self.status {
            let status = format!("{status:#}");
            for (at, part) in status.lines().enumerate() {
                line(if at == 0 { "Status" } else { "" }, part);
            }
        } else if self.kind == "ElastiService" {
            line("Status", "stays as it is");
        }
        for event in &self.events {
            line("Event", &format!("{}: {}", event.reason, event.message));
        }
        if let Some(inquiry) = &self.inquiry {
            line("Then", inquiry);
        }
        match self.requeue_after {
            Some(delay) => line("Next", &format!("in {delay:?}, or with the next change")),
            None => line("Next", "with the next change"),
        }
        for assumption in &self.assumptions {
            line("Assumed", assumption);
        }
        text
    }

    fn json(&self) -> Value {
        let changes = self.changes.iter().map(|change| change.json.clone());
        let events = self.events.iter().map(|event| {
            json!({
                "type": format!("{:?}", event.type_),
                "reason": event.reason,
                "message": event.message,
            })
        });
        json!({
            "kind": self.kind,
            "namespace": self.key.namespace(),
            "name": self.key.name(),
            "reason": {"name": self.reason.name, "message": self.reason.message},
            "plan": changes.collect::<Vec<_>>(),
            "status": self.status,
            "events": events.collect::<Vec<_>>(),
            "inquiry": self.inquiry,
            "requeueAfterSeconds": self.requeue_after.map(|it| it.as_secs_f64()),
            "assumptions": self.assumptions,
        })
    }
}

fn unreadable(key: &Key, error: &dry_run::Error) -> Failure {
    let what = format!("the next decision about {key} cannot be shown");
    Failure::new("NT-IDLE-0014", Exit::Failed, &what, &chain(error))
        .remedy("use an account that may list all objects the operator reads")
}

fn missing(key: &Key) -> Failure {
    let what = format!("there is nothing to plan for {key}");
    let why = "there is no ElastiService of that name, and no Service, Deployment or StatefulSet of \
               that name has the annotation idle.neaptide.dev/enabled";
    Failure::new("NT-IDLE-0007", Exit::NotFound, &what, why)
        .remedy("neap idle list -A lists all; name another namespace with -n")
}

#[cfg(test)]
mod tests {
    use neap_idle::api::ElastiService;
    use neap_kit::apply::{DesiredObject, IfExists, ObjectRef};

    use super::*;

    fn item() -> PlannedItem {
        let service = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
            "spec": {
                "service": "web",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            },
        });
        let service: ElastiService = serde_json::from_value(service).unwrap();
        let create = PlannedChange::Post {
            object: DesiredObject::of(&service),
            owner: Some(ObjectRef::of(&service)),
            if_exists: IfExists::Conflict,
            reason: "the annotations enable sleep".to_owned(),
        };
        let free = ServiceChange::FreePorts {
            ports: vec![20_000],
            reason: "the service no longer uses them".to_owned(),
        };
        PlannedItem {
            kind: "ElastiService",
            key: Key::new("shop", "web"),
            reason: Reason::new("CoolingDown", "the cooldown is not over"),
            changes: vec![line(&create), service_line(&free)],
            status: Some(json!({"mode": "serve"})),
            events: vec![EventDraft::normal("FellAsleep", "it sleeps")],
            inquiry: Some(inquiry(&Inquiry::WakeBreakdown)),
            requeue_after: Some(Duration::from_secs(90)),
            assumptions: vec!["triggers: unknown".to_owned()],
        }
    }

    #[test]
    fn the_text_has_the_changes_in_order_with_their_reasons() {
        let text = item().text(Symbols::ASCII);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert!(lines[0].ends_with("ElastiService shop/web"), "{text}");
        assert_eq!(
            lines[1..],
            [
                "Reason    CoolingDown: the cooldown is not over",
                "Plan      1. create ElastiService shop/web: the annotations enable sleep",
                "2. free resolver ports 20000: the service no longer uses them",
                "Status    {",
                "\"mode\": \"serve\"",
                "}",
                "Event     FellAsleep: it sleeps",
                "Then      measure the parts of the last wake",
                "Next      in 90s, or with the next change",
                "Assumed   triggers: unknown",
            ]
        );
    }

    #[test]
    fn the_json_has_the_same_for_programs() {
        let json = item().json();
        assert_eq!(json["plan"][0]["verb"], "create");
        assert_eq!(json["plan"][0]["content"]["spec"]["service"], "web");
        assert_eq!(json["plan"][1]["ports"], json!([20_000]));
        assert_eq!(json["reason"]["name"], "CoolingDown");
        assert_eq!(json["requeueAfterSeconds"], 90.0);
        assert_eq!(json["events"][0]["type"], "Normal");
    }

    #[test]
    fn a_decision_without_writes_says_so() {
        let idle = PlannedItem {
            changes: Vec::new(),
            status: None,
            requeue_after: None,
            inquiry: None,
            ..item()
        };
        let text = idle.text(Symbols::ASCII);
        assert!(text.starts_with(Symbols::ASCII.dot), "{text}");
        assert!(text.contains("nothing to write"), "{text}");
        assert!(text.contains("stays as it is"), "{text}");
        assert!(text.contains("with the next change"), "{text}");
    }
}
