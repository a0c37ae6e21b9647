//! The roles and bindings that the server makes when it starts, and keeps complete.

use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{
    Machine, Payload, Request, Served,
    create::Booking,
    own::{own_request, typed},
    update::Part,
};
use crate::{
    access::{
        self, CLUSTER_ROLES,
        bootstrap::{self, First},
    },
    rest::{DeleteOptions, Verb},
    status::Result,
};

/// Who fills roles that take their rules from others.
const AGGREGATOR: &str = "clusterrole-aggregation-controller";

impl Machine {
    /// Makes the roles and bindings that are missing and completes the others. All at once: a disk
    /// is waited for as for one write.
    pub(super) async fn make_first_roles(&self) -> Result<()> {
        let all = bootstrap::first();
        try_join_all(all.into_iter().map(|first| self.make_first(first))).await?;
        Ok(())
    }

    async fn make_first(&self, first: First) -> Result<()> {
        let place = super::path(first.namespace(), first.name());
        let stored = self.head_of(first.bucket, &place);
        let Some(stored) = stored.map(|object| object.value()) else {
            return self.create_first(first).await;
        };
        if bootstrap::is_misled(&stored, &first.object) {
            let served = self.stored_in(first.bucket)?;
            let options = DeleteOptions::default();
            self.remove(&served, first.namespace(), first.name(), &options)
                .await?;
            return self.create_first(first).await;
        }
        match bootstrap::restored(&stored, &first.object) {
            Some(restored) => self.replace_own(first.bucket, restored).await,
            None => Ok(()),
        }
    }

    async fn create_first(&self, first: First) -> Result<()> {
        let namespace = first.namespace().to_owned();
        let Some(rules) = first.gathered else {
            return self
                .create_own(first.bucket, &namespace, first.object)
                .await;
        };
        let served = self.stored_in(first.bucket)?;
        let request = own_request(&served, Verb::Create, &namespace, "");
        let mut value = typed(&served, first.object);
        self.book(&request, &served, Part::Main, None, &mut value)?;
        value["rules"] = rules;
        self.credit_aggregator(&served, &mut value);
        self.insert(&request, &served, value, Booking::Done, &mut Vec::new())
            .await?;
        Ok(())
    }

    /// Books the rules to whom they will be booked when they are gathered again.
    fn credit_aggregator(&self, served: &Served, value: &mut Value) {
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

    /// Gives a cluster role the rules that it takes from others. Nothing is written if it has them.
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
