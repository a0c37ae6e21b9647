//! The variables with which the pod of a ProwJob learns what to verify.

use serde_json::{Value, json};

use crate::stream::options::Architecture;

/// What a run is about.
#[derive(Debug, Clone)]
pub(super) struct Images {
    /// The release.
    pub(super) latest: String,
    /// The release that an upgrade starts from.
    pub(super) initial: Option<String>,
    /// Whether it is an upgrade.
    pub(super) is_upgrade: bool,
    /// The repository of the mirror; none for images that are only referred to.
    pub(super) mirror_repository: Option<String>,
    /// Whether the images are only referred to.
    pub(super) is_reference: bool,
    /// The architecture of the release.
    pub(super) architecture: Architecture,
    /// Values for variables of jobs that analyse others.
    pub(super) analysis: Vec<(&'static str, String)>,
}

/// The variables cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EnvironmentProblem {
    /// The job upgrades, and there is nothing to upgrade from.
    #[error("there is no release that the upgrade could start from")]
    NoInitialRelease,
    /// The job uses images of the release, and there is no mirror with a repository.
    #[error("the job uses images of the mirror, and the mirror has no public repository")]
    NoMirror,
}

const LATEST: &str = "RELEASE_IMAGE_LATEST";
const INITIAL: &str = "RELEASE_IMAGE_INITIAL";
const IMAGE_FORMAT: &str = "IMAGE_FORMAT";
const IMAGE_PREFIX: &str = "IMAGE_";
const STEP_PARAMETER: &str = "--multi-stage-param=RELEASE_CONTROLLER_JOB=true";

/// Sets the variables in every container of a pod.
pub(super) fn inject(pod: &mut Value, images: &Images) -> Result<(), EnvironmentProblem> {
    let containers = pod.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        inject_container(container, images)?;
    }
    Ok(())
}

fn inject_container(container: &mut Value, images: &Images) -> Result<(), EnvironmentProblem> {
    if !container["env"].is_array() {
        container["env"] = json!([]);
    }
    let (mut has_latest, mut has_initial) = (false, false);
    let variables = container["env"].as_array_mut();
    let Some(variables) = variables else {
        return Ok(());
    };
    for variable in variables.iter_mut() {
        let name = variable["name"].as_str().unwrap_or_default().to_owned();
        let value = match name.as_str() {
            LATEST => {
                has_latest = true;
                Some(images.latest.clone())
            }
            INITIAL => {
                has_initial = true;
                let initial = images.initial.clone();
                Some(initial.ok_or(EnvironmentProblem::NoInitialRelease)?)
            }
            _ => image_variable(&name, images)?,
        };
        let analysed = images.analysis.iter().find(|(known, _)| *known == name);
        if let Some(value) = value.or_else(|| analysed.map(|(_, value)| value.clone())) {
            *variable = json!({"name": name, "value": value});
        }
    }
    let mut add = |name: String, value: &str| variables.push(json!({"name": name, "value": value}));
    let kinds = images.architecture.in_variables();
    if !has_latest {
        for kind in kinds {
            add(format!("RELEASE_IMAGE_{kind}LATEST"), &images.latest);
        }
    }
    if !has_initial {
        let initial = if images.is_upgrade {
            images
                .initial
                .as_ref()
                .ok_or(EnvironmentProblem::NoInitialRelease)?
        } else {
            &images.latest
        };
        for kind in kinds {
            add(format!("RELEASE_IMAGE_{kind}INITIAL"), initial);
        }
    }
    add("OPENSHIFT_INSTALL_AWS_PUBLIC_ONLY".to_owned(), "false");
    if !container["args"].is_array() {
        container["args"] = json!([]);
    }
    if let Some(arguments) = container["args"].as_array_mut() {
        arguments.push(json!(STEP_PARAMETER));
    }
    Ok(())
}

/// The value of a variable that names an image of the release.
fn image_variable(name: &str, images: &Images) -> Result<Option<String>, EnvironmentProblem> {
    let Some(component) = name
        .strip_prefix(IMAGE_PREFIX)
        .filter(|_| !images.is_reference)
    else {
        return Ok(None);
    };
    let repository = images
        .mirror_repository
        .as_ref()
        .ok_or(EnvironmentProblem::NoMirror)?;
    Ok(Some(if name == IMAGE_FORMAT {
        format!("{repository}:${{component}}")
    } else {
        format!(
            "{repository}:{}",
            component.to_lowercase().replace('_', "-")
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images() -> Images {
        Images {
            latest: "reg.example/ocp/release:4.21".to_owned(),
            initial: None,
            is_upgrade: false,
            mirror_repository: Some("reg.example/ocp/mirror".to_owned()),
            is_reference: false,
            architecture: Architecture::Amd64,
            analysis: Vec::new(),
        }
    }

    fn injected(
        variables: &Value,
        images: &Images,
    ) -> Result<Vec<(String, String)>, EnvironmentProblem> {
        let mut pod = json!({"containers": [{"env": variables}, {}]});
        inject(&mut pod, images)?;
        assert_eq!(pod["containers"][0]["args"], json!([STEP_PARAMETER]));
        assert!(
            pod["containers"][1]["env"].as_array().unwrap().len() >= 3,
            "every container is told"
        );
        let found = pod["containers"][0]["env"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(found
            .map(|it| (text(&it["name"]), text(&it["value"])))
            .collect())
    }

    fn value<'a>(found: &'a [(String, String)], name: &str) -> Option<&'a str> {
        found
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    #[test]
    fn variables_that_are_there_are_set_and_missing_ones_added() {
        let variables = json!([
            {"name": "IMAGE_FORMAT"}, {"name": "IMAGE_CLUSTER_ETCD_OPERATOR"}, {"name": "OTHER", "value": "x"},
        ]);
        let found = injected(&variables, &images()).unwrap();
        assert_eq!(
            value(&found, "IMAGE_FORMAT"),
            Some("reg.example/ocp/mirror:${component}")
        );
        let etcd = value(&found, "IMAGE_CLUSTER_ETCD_OPERATOR");
        assert_eq!(etcd, Some("reg.example/ocp/mirror:cluster-etcd-operator"));
        assert_eq!(value(&found, "OTHER"), Some("x"));
        for name in ["RELEASE_IMAGE_LATEST", "RELEASE_IMAGE_INITIAL"] {
            assert_eq!(value(&found, name), Some("reg.example/ocp/release:4.21"));
        }
        assert_eq!(
            value(&found, "OPENSHIFT_INSTALL_AWS_PUBLIC_ONLY"),
            Some("false")
        );
    }

    #[test]
    fn each_architecture_has_its_variables() {
        for (architecture, wanted) in [
            (Architecture::Arm64, &["RELEASE_IMAGE_ARM64_LATEST"][..]),
            (Architecture::S390x, &["RELEASE_IMAGE_S390X_LATEST"]),
            (Architecture::Ppc64le, &["RELEASE_IMAGE_PPC64LE_LATEST"]),
            (
                Architecture::Multi,
                &["RELEASE_IMAGE_LATEST", "RELEASE_IMAGE_MULTI_LATEST"],
            ),
        ] {
            let images = Images {
                architecture,
                ..images()
            };
            let found = injected(&json!([]), &images).unwrap();
            let names: Vec<_> = found
                .iter()
                .map(|(name, _)| name.as_str())
                .filter(|it| it.ends_with("LATEST"))
                .collect();
            assert_eq!(names, wanted);
        }
    }

    #[test]
    fn an_upgrade_starts_from_another_release() {
        let upgrade = Images {
            is_upgrade: true,
            ..images()
        };
        let problem = EnvironmentProblem::NoInitialRelease;
        assert_eq!(injected(&json!([]), &upgrade), Err(problem.clone()));
        let given = Images {
            initial: Some("old".to_owned()),
            ..upgrade
        };
        let found = injected(&json!([{"name": "RELEASE_IMAGE_INITIAL"}]), &given).unwrap();
        assert_eq!(value(&found, "RELEASE_IMAGE_INITIAL"), Some("old"));
        assert_eq!(
            injected(&json!([{"name": "RELEASE_IMAGE_INITIAL"}]), &images()),
            Err(problem)
        );
    }

    #[test]
    fn images_of_a_release_are_in_its_mirror() {
        let without = Images {
            mirror_repository: None,
            ..images()
        };
        let variables = json!([{"name": "IMAGE_CLI"}]);
        assert_eq!(
            injected(&variables, &without),
            Err(EnvironmentProblem::NoMirror)
        );
        let reference = Images {
            is_reference: true,
            ..without
        };
        let found = injected(&variables, &reference).unwrap();
        assert_eq!(value(&found, "IMAGE_CLI"), Some(""), "left alone");
    }

    #[test]
    fn analyses_learn_what_they_analyse() {
        let analysis = vec![("PAYLOAD_TAG", "4.21".to_owned())];
        let images = Images {
            analysis,
            ..images()
        };
        let found = injected(&json!([{"name": "PAYLOAD_TAG", "value": ""}]), &images).unwrap();
        assert_eq!(value(&found, "PAYLOAD_TAG"), Some("4.21"));
        assert_eq!(
            value(&injected(&json!([]), &images).unwrap(), "PAYLOAD_TAG"),
            None,
            "never added"
        );
    }
}
