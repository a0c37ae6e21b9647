//! Token reviews, self reviews and token requests for service accounts.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    admission::{GroupVersionKind, Operation},
    environment::rfc3339,
    identity::{BoundObjectKind, Grant, Holder, Reference, check_name, check_uid},
    rest::{
        Machine, Reply, Request, Served,
        admission::ReviewedWrite,
        incoming::{Origin, shape},
        metadata, path,
        registry::{Resource, SchemaSource, missing},
        reply::finish,
        update::ObjectPart,
    },
    schema,
    status::{ApiError, Result},
};

/// Fields of metadata that only the server sets, and that a review does not have.
const SERVER_FIELDS: [&str; 5] = [
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

impl Machine {
    /// Answers a TokenReview, which is normalized and has its managed fields already.
    pub(super) fn review_token(&self, mut review: Value) -> Value {
        let token = review["spec"]["token"].as_str().unwrap_or_default();
        let mut audiences = texts(&review["spec"]["audiences"]);
        if audiences.is_empty() {
            audiences = self.accounts.audiences().to_vec();
        }
        let status = match self.holder(token, &audiences) {
            Ok(Holder { user, audiences }) => {
                json!({"authenticated": true, "user": user.to_value(), "audiences": audiences})
            }
            Err(refused) => json!({"user": {}, "error": refused.review()}),
        };
        metadata::of(&mut review).retain(|field, _| !SERVER_FIELDS.contains(&field.as_str()));
        review["status"] = status;
        review
    }

    /// Answers a SelfSubjectReview, which is normalized and has its managed fields already. The
    /// reply has nothing of what was sent.
    pub(super) fn review_self(&self, request: &Request, review: &Value) -> Value {
        json!({
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "metadata": {"creationTimestamp": self.environment.timestamp()},
            "status": {"userInfo": request.user.to_value()},
        })
    }

    /// Issues a token for a service account.
    pub(super) async fn request_token(
        &self,
        request: &Request,
        accounts: &Arc<Served>,
    ) -> Result<Reply> {
        let payload = request.payload()?;
        check_name(&payload.value, &request.target.name)?;
        let served = requests(accounts)?;
        let mut warnings = Vec::new();
        let mut asked = shape(request, &served, payload, Origin::Body, &mut warnings)?;
        request.dry_run()?;
        if let Some(fields) = asked.as_object_mut() {
            // Only the server sets it, and it has no owner.
            fields.remove("status");
        }
        let spec = metadata::part(&mut asked, "spec");
        spec.entry("expirationSeconds")
            .or_insert(json!(Grant::DEFAULT_SECONDS));
        self.record_ownership(
            request,
            &served,
            ObjectPart::Other("token"),
            None,
            &mut asked,
        )?;
        self.check_namespace(request, accounts).await?;
        let kind = GroupVersionKind {
            group: &served.resource.group,
            version: &served.version,
            kind: &served.resource.kind,
        };
        let matter = ReviewedWrite::action(request, accounts, Operation::Create, kind);
        self.change_action(&matter, &mut asked, &mut warnings)
            .await?;
        let account = self.read(request, accounts).await?;
        let mut grant = Grant::read(&asked, self.accounts.audiences())?;
        self.agree_to_action(&matter, &asked, &mut warnings).await?;
        self.bind_token(request, &asked["spec"]["boundObjectRef"], &mut grant)
            .await?;
        let account = Reference {
            name: account.metadata().name.to_string(),
            uid: account.metadata().uid.to_string(),
        };
        let answer = self.granted(asked, &request.target.namespace, account, grant)?;
        let reply = finish(request, StatusCode::CREATED, answer.to_string().into())?;
        Ok(reply.with_warnings(warnings))
    }

    /// The request with the issued token.
    fn granted(
        &self,
        mut asked: Value,
        namespace: &str,
        account: Reference,
        grant: Grant,
    ) -> Result<Value> {
        let now = self.environment.clock.now();
        let metadata = metadata::of(&mut asked);
        metadata.insert("namespace".into(), json!(namespace));
        metadata.insert("uid".into(), json!(account.uid));
        metadata.insert("creationTimestamp".into(), json!(rfc3339(now)));
        let spec = metadata::part(&mut asked, "spec");
        spec.insert("audiences".into(), json!(grant.audiences));
        spec.entry("boundObjectRef").or_insert(Value::Null);
        let id = self.environment.uuid();
        let (token, ends) = self
            .accounts
            .issue(namespace, account, grant, id, now)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        asked["status"] = json!({"token": token, "expirationTimestamp": rfc3339(ends)});
        Ok(asked)
    }

    /// Binds a token to the object named in the request.
    async fn bind_token(
        &self,
        request: &Request,
        reference: &Value,
        grant: &mut Grant,
    ) -> Result<()> {
        let Some(to) = BoundObjectKind::of(reference)? else {
            return Ok(());
        };
        let name = reference["name"].as_str().unwrap_or_default();
        let namespace = match to {
            BoundObjectKind::Node => "",
            BoundObjectKind::Pod | BoundObjectKind::Secret => &request.target.namespace,
        };
        let place = path(namespace, name);
        let bucket = format!("/{}", to.plural());
        let Some(object) = self.view.get(&bucket, &place).await? else {
            return Err(ApiError::not_found("", to.plural(), name));
        };
        if to == BoundObjectKind::Pod {
            let pod = object.value();
            check_account(&pod, &request.target.name)?;
            if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|n| !n.is_empty()) {
                grant.bind(BoundObjectKind::Node, self.node(node).await?);
            }
        }
        let found = Reference {
            name: name.into(),
            uid: object.metadata().uid.to_string(),
        };
        check_uid(to, reference, &found)?;
        grant.bind(to, found);
        Ok(())
    }

    /// The node of a pod, which need not exist.
    async fn node(&self, name: &str) -> Result<Reference> {
        let found = self.view.get("/nodes", name).await?;
        let uid = found.map(|node| node.metadata().uid.to_string());
        Ok(Reference {
            name: name.into(),
            uid: uid.unwrap_or_default(),
        })
    }
}

/// Refuses a review without a token.
pub(super) fn check_token(review: &Value) -> Result<()> {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        let why = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(why));
    }
    Ok(())
}

/// Token requests as a resource of their own, so that they are normalized and tracked as others
/// are.
fn requests(accounts: &Served) -> Result<Served> {
    let token = accounts.subresource("token").ok_or_else(missing)?;
    let (group, version, kind) = ("authentication.k8s.io", "v1", token.kind.as_str());
    let schema = schema::of_kind(group, version, kind).ok_or_else(missing)?;
    let api_version = format!("{group}/{version}");
    Ok(Served {
        resource: Arc::new(Resource {
            group: group.into(),
            kind: kind.into(),
            storage: api_version.clone(),
            ..Resource::clone(&accounts.resource)
        }),
        version: version.into(),
        api_version,
        shape: SchemaSource::BuiltIn {
            schema,
            stored: schema,
            alias: None,
        },
        ..accounts.clone()
    })
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

/// Refuses a token for one account that is bound to a pod of another.
fn check_account(pod: &Value, account: &str) -> Result<()> {
    if pod["spec"]["serviceAccountName"] == account {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "cannot bind token for serviceaccount {account:?} to pod running with different \
         serviceaccount name."
    )))
}
