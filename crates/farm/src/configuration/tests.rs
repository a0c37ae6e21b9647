use std::fmt::Write as _;

use insta::assert_snapshot;

use super::*;
use crate::{
    api::{
        Access, Authentication, Authorizer, BuildbarnBrowserSpec, BuildbarnFrontendSpec,
        BuildbarnSchedulerSpec, BuildbarnStorageSpec, BuildbarnWorkerSpec, ConfigMapKey,
        MAX_SHARDS, PlatformProperty, PodOptions, PredeclaredQueue, Shard, Tls,
    },
    jsonnet::{EvaluationRequest, EvaluationResponse, evaluate},
    schema::SchemaVersion,
};

fn settings() -> FarmSettings {
    let shard = |key: &str| Shard {
        key: key.to_owned(),
        weight: 1,
    };
    FarmSettings {
        namespace: "buildbarn".to_owned(),
        storage: SharedStorage {
            name: "storage".to_owned(),
            shards: vec![shard("0"), shard("1")],
            former: None,
            replicas: 2,
        },
        maximum_message_bytes: 2 << 20,
        browser_url: "http://builds.example.com".to_owned(),
        schedulers: BTreeMap::from([(String::new(), "scheduler".to_owned())]),
    }
}

fn all(settings: &FarmSettings, pod: Option<PodOptions>) -> Vec<RenderedFiles> {
    let volumes = ["cas", "ac", "fsac"].map(str::to_owned);
    vec![
        storage(
            &BuildbarnStorageSpec {
                pod: pod.clone(),
                ..BuildbarnStorageSpec::default()
            },
            settings,
            &volumes,
        ),
        scheduler(
            "scheduler",
            &BuildbarnSchedulerSpec {
                pod: pod.clone(),
                predeclared_queues: vec![PredeclaredQueue {
                    platform: vec![PlatformProperty::new("OSFamily", "linux")],
                    size_classes: vec![1, 4],
                    ..PredeclaredQueue::default()
                }],
                ..BuildbarnSchedulerSpec::default()
            },
            settings,
        ),
        worker(
            &BuildbarnWorkerSpec {
                pod: pod.clone(),
                ..BuildbarnWorkerSpec::default()
            },
            settings,
            "scheduler",
        ),
        frontend(
            &BuildbarnFrontendSpec {
                pod: pod.clone(),
                ..BuildbarnFrontendSpec::default()
            },
            settings,
        ),
        browser(
            &BuildbarnBrowserSpec {
                pod,
                ..BuildbarnBrowserSpec::default()
            },
            settings,
        ),
    ]
}

/// What the programs would read: the files, evaluated.
fn evaluated(files: &RenderedFiles) -> Vec<(String, Value)> {
    let variables =
        ["POD_NAME", "NODE_NAME", "POD_IP"].map(|name| (name.to_owned(), "fd00::1".to_owned()));
    let names = files.files.keys().filter(|name| name.ends_with(".jsonnet"));
    names
        .map(|name| {
            let request = EvaluationRequest {
                files: files.files.clone(),
                main: name.clone(),
                variables: variables.clone().into(),
            };
            match evaluate(&request) {
                EvaluationResponse::Value(value) => (name.clone(), value),
                EvaluationResponse::Failed(message) => panic!("{name}: {message}"),
            }
        })
        .collect()
}

#[test]
fn rendered_configurations_are_as_recorded() {
    let mut text = String::new();
    for files in all(&settings(), None) {
        for (name, content) in &files.files {
            if name != COMMON || text.is_empty() || !text.contains(COMMON) {
                let _ = writeln!(text, "=== {name}\n{content}");
            }
        }
    }
    assert_snapshot!(text);
}

#[test]
fn every_rendered_configuration_evaluates_and_passes_both_checks() {
    let mut resharding = settings();
    resharding.storage.former = Some(vec![resharding.storage.shards[0].clone()]);
    let pod = PodOptions {
        listen_on: ListenOn::PodIp,
        ..PodOptions::default()
    };
    for (settings, pod) in [(settings(), None), (resharding, Some(pod))] {
        for version in [SchemaVersion::Newest, SchemaVersion::March2026] {
            let schema = Schema::of(version);
            for files in all(&settings, pod.clone()) {
                assert_eq!(files.findings(schema), [], "{:?}", files.files.keys());
                for (name, value) in evaluated(&files) {
                    let program = files
                        .configurations
                        .iter()
                        .find(|it| it.1 == name)
                        .unwrap()
                        .0;
                    assert_eq!(check_both(schema, program, &value), [], "{name}");
                }
            }
        }
    }
}

#[test]
fn programs_that_share_a_network_listen_on_the_address_of_their_pod() {
    let pod = PodOptions {
        listen_on: ListenOn::PodIp,
        ..PodOptions::default()
    };
    let files = all(&settings(), Some(pod)).remove(0);
    let value = &evaluated(&files)[0].1;
    assert_eq!(
        value["grpcServers"][0]["listenAddresses"][0],
        "[fd00::1]:8981"
    );
}

#[test]
fn access_is_rendered_and_results_are_closed_unless_the_spec_opens_them() {
    let mut spec = BuildbarnFrontendSpec::default();
    let value = evaluated(&frontend(&spec, &settings())).remove(0).1;
    assert_eq!(value["actionCache"]["putAuthorizer"], json!({"deny": {}}));
    let trust = ConfigMapKey {
        config_map_name: "trust".to_owned(),
        key: "ca.crt".to_owned(),
    };
    spec.access = Some(Access {
        tls: Some(Tls {
            secret_name: "frontend".to_owned(),
        }),
        authentication: Some(Authentication {
            client_certificate: Some(trust),
            ..Authentication::default()
        }),
        action_cache_write: Some(Authorizer {
            jmespath: Some("authenticationMetadata.public.ci".to_owned()),
            ..Authorizer::default()
        }),
        execute: Some(Authorizer {
            instance_name_prefixes: Some(vec!["ci".to_owned()]),
            ..Authorizer::default()
        }),
        ..Access::default()
    });
    let files = frontend(&spec, &settings());
    assert_eq!(files.findings(Schema::of(SchemaVersion::Newest)), []);
    let value = evaluated(&files).remove(0).1;
    let policy = &value["grpcServers"][0]["authenticationPolicy"]["tlsClientCertificate"];
    assert_eq!(policy["clientCertificateAuthorities"], "/trust/ca.crt");
    let execute = &value["executeAuthorizer"]["instanceNamePrefix"];
    assert_eq!(execute["allowedInstanceNamePrefixes"][0], "ci");
}

#[test]
fn what_users_write_is_never_an_expression() {
    let mut spec = BuildbarnWorkerSpec::default();
    let name = "'\"\\\u{1}std.extVar('SECRET')";
    spec.platform = Some(vec![PlatformProperty::new(name, "\u{1}error 'x'")]);
    spec.environment_variables = BTreeMap::from([("A".to_owned(), "\u{1}1+1".to_owned())]);
    let files = worker(&spec, &settings(), "scheduler");
    let values = evaluated(&files);
    let runner = &values
        .iter()
        .find(|it| it.0.starts_with("worker"))
        .unwrap()
        .1;
    let runner = &runner["buildDirectories"][0]["runners"][0];
    assert_eq!(runner["platform"]["properties"][0]["name"], name);
    assert_eq!(runner["platform"]["properties"][0]["value"], "error 'x'");
    assert_eq!(runner["environmentVariables"]["A"], "1+1");
}

#[test]
fn the_order_of_properties_is_that_of_the_scheduler() {
    let mut spec = BuildbarnWorkerSpec::default();
    let properties = [("b", "1"), ("a", "2"), ("a", "1")];
    spec.platform = Some(
        properties
            .map(|(name, value)| PlatformProperty::new(name, value))
            .into(),
    );
    let files = worker(&spec, &settings(), "scheduler");
    assert_eq!(files.findings(Schema::of(SchemaVersion::Newest)), []);
}

#[test]
fn older_ways_to_name_outputs_are_only_for_older_images() {
    let spec = BuildbarnWorkerSpec {
        legacy_outputs: true,
        ..BuildbarnWorkerSpec::default()
    };
    let files = worker(&spec, &settings(), "scheduler");
    assert_eq!(files.findings(Schema::of(SchemaVersion::March2026)), []);
    let findings = files.findings(Schema::of(SchemaVersion::Newest));
    assert!(
        findings[0].1.to_string().contains("removed on 2026-03-26"),
        "{findings:?}"
    );
}

#[test]
fn as_many_shards_as_are_possible_fit_into_a_config_map_while_they_change() {
    let shards = |first: i32| -> Vec<Shard> {
        let keys = (0..MAX_SHARDS).map(|number| (first + number).to_string());
        keys.map(|key| Shard { key, weight: 1 }).collect()
    };
    let mut settings = settings();
    settings.storage.shards = shards(0);
    settings.storage.former = Some(shards(1000));
    for rendered in all(&settings, None) {
        let size: usize = rendered.files.values().map(String::len).sum();
        assert!(size < 1 << 20, "{size}");
    }
}
