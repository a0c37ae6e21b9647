//! The flags with which Bazel builds on a farm. Pure.

use std::fmt::Write;

use crate::{
    api::{PlatformProperty, ports},
    farm::{Component, ComponentKind},
    platform::QueueName,
};

/// The lines for `.bazelrc`: the address of the frontend, and what a pool needs. None without a frontend.
/// `address` is where the frontend is, HOST:PORT; its external address or its name in the cluster if absent.
pub fn bazelrc(
    components: &[Component],
    pool: Option<&str>,
    address: Option<&str>,
) -> Option<String> {
    let frontend = frontend(components)?;
    let spec = frontend.frontend()?;
    let has_tls = spec
        .access
        .as_ref()
        .is_some_and(|access| access.tls.is_some());
    let external = spec.external_address.clone().filter(|_| address.is_none());
    let address = external.unwrap_or_else(|| {
        let scheme = if has_tls { "grpcs" } else { "grpc" };
        let (name, namespace) = (frontend.name(), frontend.namespace());
        let name = || format!("{name}.{namespace}:{}", ports::FRONTEND);
        format!("{scheme}://{}", address.map_or_else(name, str::to_owned))
    });
    let pools = components
        .iter()
        .filter(|it| it.kind == ComponentKind::Worker);
    let mut pools = pools.filter(|it| pool.is_none_or(|pool| pool == it.name()));
    let chosen = pools.next();
    let queue = chosen.and_then(Component::worker).map(QueueName::of);
    let jobs: i32 = chosen.map_or(0, |pool| {
        let concurrency = pool.worker().and_then(|spec| spec.concurrency).unwrap_or(8);
        pool.replicas().saturating_mul(concurrency)
    });
    let mut text = String::new();
    let mut line = |text_line: &str| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{text_line}");
    };
    if let Some(pool) = chosen {
        line(&format!(
            "# The pool {} of the farm in {}",
            pool.name(),
            frontend.namespace()
        ));
    }
    line(&format!("build --remote_executor={address}"));
    if let Some(queue) = queue {
        if !queue.instance_name_prefix.is_empty() {
            line(&format!(
                "build --remote_instance_name={}",
                queue.instance_name_prefix
            ));
        }
        for PlatformProperty { name, value } in &queue.platform {
            line(&format!(
                "build --remote_default_exec_properties={name}={value}"
            ));
        }
    }
    if jobs > 0 {
        line(&format!("build --jobs={jobs}"));
    }
    line(
        "# What is lost with a worker or a restart of the scheduler is asked for again, for a minute.",
    );
    // Without it an operation that a restarted scheduler does not know is an error of the build.
    line("build --experimental_remote_execution_keepalive");
    line("build --remote_retries=20");
    line("build --remote_timeout=3600");
    Some(text)
}

/// The frontend of a farm.
pub fn frontend(components: &[Component]) -> Option<&Component> {
    let mut components = components.iter();
    components.find(|it| it.kind == ComponentKind::Frontend)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::{BuildbarnFrontend, BuildbarnWorker};

    fn farm() -> Vec<Component> {
        let metadata = |name: &str| json!({"name": name, "namespace": "buildbarn"});
        let frontend: BuildbarnFrontend = serde_json::from_value(json!({
            "apiVersion": "buildbarn.io/v1alpha1", "kind": "BuildbarnFrontend",
            "metadata": metadata("frontend"), "spec": {},
        }))
        .unwrap();
        let worker: BuildbarnWorker = serde_json::from_value(json!({
            "apiVersion": "buildbarn.io/v1alpha1", "kind": "BuildbarnWorker",
            "metadata": metadata("linux"),
            "spec": {
                "replicas": 2, "concurrency": 4, "instanceNamePrefix": "ci",
                "platform": [{"name": "OSFamily", "value": "linux"}],
            },
        }))
        .unwrap();
        vec![Component::from(&frontend), Component::from(&worker)]
    }

    #[test]
    fn the_flags_are_those_of_the_pool() {
        let text = bazelrc(&farm(), Some("linux"), None).unwrap();
        let flags: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            flags,
            [
                "build --remote_executor=grpc://frontend.buildbarn:8980",
                "build --remote_instance_name=ci",
                "build --remote_default_exec_properties=OSFamily=linux",
                "build --jobs=8",
                "build --experimental_remote_execution_keepalive",
                "build --remote_retries=20",
                "build --remote_timeout=3600",
            ]
        );
    }

    #[test]
    fn an_address_takes_the_place_of_the_name() {
        let text = bazelrc(&farm(), None, Some("127.1.128.4:8980")).unwrap();
        let first = text.lines().find(|line| !line.starts_with('#'));
        let expected = "build --remote_executor=grpc://127.1.128.4:8980";
        assert_eq!(first, Some(expected));
    }

    #[test]
    fn there_are_none_without_a_frontend() {
        assert_eq!(bazelrc(&farm()[1..], None, None), None);
    }
}
