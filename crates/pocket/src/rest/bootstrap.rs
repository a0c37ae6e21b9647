//! The bootstrap roles and bindings: created when the server starts, and kept complete.

use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{
    Machine, Payload, Request, Served,
    create::FieldOwnership,
    own::{own_request, typed},
    update::ObjectPart,
};
use crate::{
    access::{
        self, CLUSTER_ROLES,
        bootstrap::{self, BootstrapObject},
    },
    rest::{DeleteOptions, Verb},
    status::Result,
};

/// The manager of aggregated rules.
const AGGREGATOR: &str = "clusterrole-aggregation-controller";

impl Machine {
    /// Creates the missing roles and bindings and completes the others. All at once: this waits for
    /// the disk as for one write.
    pub(super) async fn ensure_bootstrap_roles(&self) -> Result<()> {
        let all = bootstrap::first();
        try_join_all(
            all.into_iter()
                .map(|first| self.ensure_bootstrap_object(first)),
        )
        .await?;
        Ok(())
    }

    async fn ensure_bootstrap_object(&self, first: BootstrapObject) -> Result<()> {
        let place = super::path(first.namespace(), first.name());
        let stored = self.head_of(first.bucket, &place);
        let Some(stored) = stored.map(|object| object.value()) else {
            return self.create_bootstrap_object(first).await;
        };
        if bootstrap::refers_elsewhere(&stored, &first.object) {
            let served = self.stored_in(first.bucket)?;
            let options = DeleteOptions::default();
            self.remove(&served, first.namespace(), first.name(), &options)
                .await?;
            return self.create_bootstrap_object(first).await;
        }
        match bootstrap::restored(&stored, &first.object) {
            Some(restored) => self.replace_own(first.bucket, restored).await,
            None => Ok(()),
        }
    }

    async fn create_bootstrap_object(&self, first: BootstrapObject) -> Result<()> {
        let namespace = first.namespace().to_owned();
        let Some(rules) = first.gathered else {
            return self
                .create_own(first.bucket, &namespace, first.object)
                .await;
        };
        let served = self.stored_in(first.bucket)?;
        let request = own_request(&served, Verb::Create, &namespace, "");
        let mut value = typed(&served, first.object);
        self.record_ownership(&request, &served, ObjectPart::Main, None, &mut value)?;
        value["rules"] = rules;
        self.record_aggregator(&served, &mut value);
        self.insert(
            &request,
            &served,
            value,
            FieldOwnership::Done,
            &mut Vec::new(),
        )
        .await?;
        Ok(())
    }

    /// Records the rules for the manager that will own them when they are aggregated again.
    fn record_aggregator(&self, served: &Served, value: &mut Value) {
        let entry = json!({
            "manager": AGGREGATOR,
            "operation": "Apply",
            "apiVersion": served.api_version,
            "time": self.environment.timestamp(),
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:rules": {}},
        });
        if let Some(entries) = value["metadata"]["managedFields"].as_array_mut() {
            entries.insert(0, entry);
        }
    }

    /// Replaces an object in the server's own name.
    async fn replace_own(&self, bucket: &str, value: Value) -> Result<()> {
        let served = self.stored_in(bucket)?;
        let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
        let request = own_request(&served, Verb::Update, text("namespace"), text("name"));
        let body = Some(Payload {
            value,
            duplicates: Vec::new(),
            problem: None,
        });
        self.handle(Request { body, ..request }).await?;
        Ok(())
    }

    /// Gives a cluster role its aggregated rules. Nothing is written if it has them.
    pub(crate) async fn gather_rules(&self, name: &str) -> Result<()> {
        let Some(stored) = self.head_of(CLUSTER_ROLES, name) else {
            return Ok(());
        };
        let stored = stored.value();
        let Some(selectors) = stored["aggregationRule"]["clusterRoleSelectors"].as_array() else {
            return Ok(());
        };
        let rules = self.access.gathered(name, selectors);
        if access::are_same(&access::rules_of(&stored["rules"]), &rules) {
            return Ok(());
        }
        let served = self.stored_in(CLUSTER_ROLES)?;
        let request = own_request(&served, Verb::Patch, "", name);
        let config = json!({"metadata": {"name": name}, "rules": rules});
        let query = [("fieldManager", AGGREGATOR), ("force", "true")];
        let applied = Request {
            body: Some(Payload {
                value: typed(&served, config),
                duplicates: Vec::new(),
                problem: None,
            }),
            content_type: "application/apply-patch+yaml".into(),
            query: query.map(|(key, value)| (key.into(), value.into())).into(),
            ..request
        };
        self.handle(applied).await?;
        Ok(())
    }
}
