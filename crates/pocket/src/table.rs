//! Tables (`meta.k8s.io/v1`), which `kubectl get` prints.
//!
//! A [`Printer`] is chosen once per resource and turns objects into rows. Column names of built-in
//! kinds are data (`data/columns.json`); the cells are computed in code, as kube-apiserver does.
//! Kinds without columns of their own print a name and an age.
//!
//! Everything here is pure: the time is a parameter. A printer never fails: objects are shown as
//! far as they can be read.

mod access;
mod age;
mod cluster;
mod columns;
mod custom;
mod events;
mod network;
mod pods;
mod read;
mod scaling;
mod storage;
#[cfg(test)]
mod tests;
mod workloads;

use jiff::Timestamp;
use serde_json::Value;

pub use age::human_duration;
pub use columns::ColumnDefinition;
pub use custom::Column;

const META: &str = "meta.k8s.io/v1";

/// What a row contains beside its cells (`includeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Include {
    None,
    /// The object's metadata, as `PartialObjectMetadata`.
    #[default]
    Metadata,
    Object,
}

/// Makes the cells of one object, one for each column.
type Cells = fn(&Value, Timestamp) -> Vec<Value>;

/// Prints the objects of one resource.
#[derive(Debug)]
pub struct Printer {
    columns: Vec<ColumnDefinition>,
    source: CellSource,
    /// Whether rows of finished objects have a condition.
    completes: bool,
}

#[derive(Debug)]
enum CellSource {
    Builtin(Cells),
    Custom(Vec<Column>),
}

impl Printer {
    /// The printer of a built-in resource.
    pub fn builtin(group: &str, version: &str, plural: &str) -> Self {
        match columns::published(group, version, plural) {
            Some(columns) => Self {
                columns: columns.to_vec(),
                source: CellSource::Builtin(builtin_cells(group, version, plural)),
                completes: (group, plural) == ("", "pods"),
            },
            None => Self {
                columns: vec![ColumnDefinition::name(), ColumnDefinition::age()],
                source: CellSource::Builtin(name_and_age),
                completes: false,
            },
        }
    }

    /// The printer of a custom resource: its name, then its `additionalPrinterColumns`, or its age
    /// if it declares none.
    pub fn custom(columns: Vec<Column>) -> Self {
        if columns.is_empty() {
            let mut plain = Self::builtin("", "", "");
            if let Some(age) = plain.columns.last_mut() {
                age.kind = "date".into();
            }
            return plain;
        }
        let declared = columns.iter().map(|column| column.definition.clone());
        Self {
            columns: std::iter::once(ColumnDefinition::name())
                .chain(declared)
                .collect(),
            source: CellSource::Custom(columns),
            completes: false,
        }
    }

    /// The columns, wide ones included.
    pub fn columns(&self) -> &[ColumnDefinition] {
        &self.columns
    }

    /// One cell for each column.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.source {
            CellSource::Builtin(cells) => cells(object, now),
            CellSource::Custom(columns) => {
                let rest = columns.iter().map(|column| column.cell(object, now));
                std::iter::once(read::name(object)).chain(rest).collect()
            }
        }
    }

    /// One row: `{cells, object}`.
    pub fn row(&self, object: &Value, now: Timestamp, include: Include) -> Value {
        let cells = ("cells", Value::Array(self.cells(object, now)));
        let shown = match include {
            Include::None => Value::Null,
            Include::Metadata => partial(object),
            Include::Object => object.clone(),
        };
        let mut row = object_of([cells, ("object", shown)]);
        if self.completes
            && let Some(done) = pods::completion(object)
        {
            row["conditions"] = Value::Array(vec![done]);
        }
        row
    }

    /// A whole table. `metadata` is the list's; a watch sends one row at a time and the columns
    /// only with the first (`with_columns`).
    pub fn table<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Value>,
        now: Timestamp,
        include: Include,
        metadata: Value,
        with_columns: bool,
    ) -> Value {
        let rows = objects.into_iter().map(|o| self.row(o, now, include));
        let mut table = self.frame(metadata, with_columns);
        table["rows"] = rows.collect();
        table
    }

    /// A table without its rows.
    pub fn frame(&self, metadata: Value, with_columns: bool) -> Value {
        let definitions = if with_columns {
            self.columns
                .iter()
                .map(ColumnDefinition::to_value)
                .collect()
        } else {
            Value::Null
        };
        object_of([
            ("kind", "Table".into()),
            ("apiVersion", META.into()),
            ("metadata", metadata),
            ("columnDefinitions", definitions),
        ])
    }
}

/// The object as `PartialObjectMetadata`.
pub fn partial(object: &Value) -> Value {
    object_of([
        ("kind", "PartialObjectMetadata".into()),
        ("apiVersion", META.into()),
        ("metadata", object["metadata"].clone()),
    ])
}

/// Unlike `json!`, moves its values without copying them.
fn object_of<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
    Value::Object(entries.collect())
}

fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![read::name(object), read::age(object, now)]
}

fn name_and_creation(object: &Value, _: Timestamp) -> Vec<Value> {
    let created = object["metadata"]["creationTimestamp"].clone();
    vec![read::name(object), created]
}

/// Chosen by the resource and never by the object: items of lists do not carry their kind.
fn builtin_cells(group: &str, version: &str, plural: &str) -> Cells {
    match (group, plural) {
        ("", "pods") => pods::pod,
        ("apps", "deployments") => workloads::deployment,
        ("apps", "replicasets") => workloads::replica_set,
        ("", "replicationcontrollers") => workloads::replication_controller,
        ("apps", "statefulsets") => workloads::stateful_set,
        ("apps", "daemonsets") => workloads::daemon_set,
        ("apps", "controllerrevisions") => workloads::controller_revision,
        ("batch", "jobs") => workloads::job,
        ("batch", "cronjobs") => workloads::cron_job,
        ("", "podtemplates") => workloads::pod_template,
        ("autoscaling", "horizontalpodautoscalers") if version == "v1" => scaling::cpu_autoscaler,
        ("autoscaling", "horizontalpodautoscalers") => scaling::autoscaler,
        ("policy", "poddisruptionbudgets") => scaling::disruption_budget,
        ("", "services") => network::service,
        ("", "endpoints") => network::endpoints,
        ("discovery.k8s.io", "endpointslices") => network::endpoint_slice,
        ("networking.k8s.io", "ingresses") => network::ingress,
        ("networking.k8s.io", "ingressclasses") => network::ingress_class,
        ("networking.k8s.io", "networkpolicies") => network::policy,
        ("", "persistentvolumes") => storage::volume,
        ("", "persistentvolumeclaims") => storage::claim,
        ("storage.k8s.io", "storageclasses") => storage::class,
        ("", "nodes") => cluster::node,
        ("", "namespaces") => cluster::namespace,
        ("", "resourcequotas") => cluster::quota,
        ("coordination.k8s.io", "leases") => cluster::lease,
        ("scheduling.k8s.io", "priorityclasses") => cluster::priority_class,
        ("node.k8s.io", "runtimeclasses") => cluster::runtime_class,
        ("", "events") => events::event,
        ("events.k8s.io", "events") => events::regarding_event,
        ("", "configmaps") => access::config_map,
        ("", "secrets") => access::secret,
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => access::binding,
        ("admissionregistration.k8s.io", _) => access::webhooks,
        ("rbac.authorization.k8s.io" | "apiextensions.k8s.io", _) | ("", "limitranges") => {
            name_and_creation
        }
        _ => name_and_age,
    }
}
