//! Assembly of a payload whose images and base are in the registry, beside a copy of the payload to another
//! tag.

use std::{fmt::Write, fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::registry::{Layer, RegistryProcess};
use crate::{
    measure::{Figure, median, milliseconds},
    stopwatch::Stopwatch,
};

/// Components of the payload, of which every second one has manifests.
const COMPONENTS: usize = 200;
/// Manifests of such a component.
const MANIFESTS: usize = 5;
/// The size of a layer of the base, before compression.
const BASE_LAYER: usize = 4 << 20;
const BASE_LAYERS: usize = 4;
const TIMES: usize = 5;
const COMPONENT_REPOSITORY: &str = "ocp/components";
const PAYLOAD_REPOSITORY: &str = "ocp/release";

/// Assembles a payload again and again, and copies it with skopeo in between: in Debian's registry, there also
/// with a folder that keeps what was read, and in the registry of `neap up`.
pub async fn assemble(neap: &Path, registry: &Path, skopeo: Option<&Path>) -> Result<Vec<Figure>> {
    let packaged = RegistryProcess::start(registry).await?;
    let apart = measure(neap, &packaged, skopeo).await?;
    drop(packaged);
    let own = RegistryProcess::of_neap_up(neap)?;
    let within = measure(neap, &own, skopeo).await?;
    let mut figures = vec![
        ("assemble", apart.assembled),
        ("assemble again", apart.again),
        ("assemble in neap up", within.assembled),
    ];
    if let (Some(apart), Some(within)) = (apart.copied, within.copied) {
        figures.extend([("skopeo", apart), ("skopeo in neap up", within)]);
    }
    Ok(figures)
}

/// Medians in milliseconds.
struct Times {
    assembled: f64,
    /// With a folder that keeps what was read.
    again: f64,
    copied: Option<f64>,
}

async fn measure(neap: &Path, registry: &RegistryProcess, skopeo: Option<&Path>) -> Result<Times> {
    let folder = tempfile::tempdir()?;
    let stream = folder.path().join("stream.yaml");
    fs::write(&stream, push_components(registry).await?)?;
    let repository = format!("{}/{PAYLOAD_REPOSITORY}", registry.host());
    let kept = folder.path().join("kept");
    let assembled = |number: usize, again: bool| {
        let mut command = Command::new(neap);
        command.args([
            "release",
            "assemble",
            "--quiet",
            "--reference-mode",
            "source",
        ]);
        command.args(["--to-image-base-tag", "component-000"]);
        command.arg("--name").arg(format!("4.99.{number}"));
        command.arg("--from-image-stream-file").arg(&stream);
        command
            .arg("--to-image")
            .arg(format!("{repository}:ours-{number}"));
        if again {
            command.arg("--cache").arg(&kept);
        }
        run(&mut command)
    };
    // The blobs of the base are in the repository of the payload from now on, and the images in the folder.
    assembled(0, true)?;
    let (mut ours, mut again, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=TIMES {
        ours.push(assembled(number, false)?);
        again.push(assembled(TIMES + number, true)?);
        if let Some(skopeo) = skopeo {
            let mut command = Command::new(skopeo);
            command.args(["--insecure-policy", "copy", "--all", "--quiet"]);
            command.args(["--src-tls-verify=false", "--dest-tls-verify=false"]);
            command.arg(format!("docker://{repository}:ours-0"));
            command.arg(format!("docker://{repository}:copy-{number}"));
            peer.push(run(&mut command)?);
        }
    }
    for number in [TIMES, 2 * TIMES] {
        check(neap, &format!("{repository}:ours-{number}"))?;
    }
    Ok(Times {
        assembled: median(ours)?,
        again: median(again)?,
        copied: skopeo.map(|_| median(peer)).transpose()?,
    })
}

/// Runs a command; the milliseconds that it took.
fn run(command: &mut Command) -> Result<f64> {
    let watch = Stopwatch::start();
    let output = command.output().context("cannot run it")?;
    let took = milliseconds(watch.elapsed());
    ensure!(
        output.status.success(),
        "{} ended with {}: {}",
        command.get_program().display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(took)
}

/// The payload has all components: nothing was measured that did not happen.
fn check(neap: &Path, payload: &str) -> Result<()> {
    let mut command = Command::new(neap);
    let output = command
        .args(["release", "info", "-o", "name", payload])
        .output()?;
    let names = String::from_utf8_lossy(&output.stdout).lines().count();
    ensure!(names == COMPONENTS, "the payload has {names} components");
    Ok(())
}

/// Pushes the images; an ImageStream that names them.
async fn push_components(registry: &RegistryProcess) -> Result<String> {
    let base = (0..BASE_LAYERS)
        .map(|layer| Layer::of(&[(format!("usr/lib/{layer}"), noise(layer, BASE_LAYER))]))
        .collect::<Result<Vec<_>>>()?;
    registry.push_layers(COMPONENT_REPOSITORY, &base).await?;
    let mut stream = String::from(
        "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {name: '4.99', namespace: ocp}\nspec:\n  tags:\n",
    );
    for number in 0..COMPONENTS {
        let is_operator = number % 2 == 0;
        let mut labels = json!({
            "io.openshift.build.commit.id": format!("{number:08x}"),
            "io.openshift.build.commit.ref": "main",
            "io.openshift.build.source-location": format!("https://github.com/example/{}", name(number)),
        });
        let mut files = vec![(format!("usr/bin/{number}"), noise(number, 10_000))];
        if is_operator {
            labels["io.openshift.release.operator"] = "true".into();
            files = manifests(number);
        }
        let own = Layer::of(&files)?;
        registry
            .push_layers(COMPONENT_REPOSITORY, std::slice::from_ref(&own))
            .await?;
        let mut layers = base.clone();
        layers.push(own);
        let config = registry
            .push_config(COMPONENT_REPOSITORY, &labels, &layers)
            .await?;
        let tag = name(number);
        let digest = registry
            .push_manifest(COMPONENT_REPOSITORY, &tag, &config, &layers, number)
            .await?;
        let image = format!("{}/{COMPONENT_REPOSITORY}@{digest}", registry.host());
        writeln!(
            stream,
            "  - {{name: {tag}, from: {{kind: DockerImage, name: '{image}'}}}}"
        )?;
    }
    Ok(stream)
}

fn name(number: usize) -> String {
    format!("component-{number:03}")
}

/// The manifests of an operator, which name its own image and that of the next component.
fn manifests(number: usize) -> Vec<(String, Vec<u8>)> {
    let mut references =
        String::from("kind: ImageStream\napiVersion: image.openshift.io/v1\nspec:\n  tags:\n");
    for number in [number, number + 1] {
        let name = name(number);
        let _ = writeln!(
            references,
            "  - {{name: {name}, from: {{kind: DockerImage, name: 'quay.io/example/{name}:latest'}}}}"
        );
    }
    let mut files = vec![(
        "manifests/image-references".to_owned(),
        references.into_bytes(),
    )];
    for file in 0..MANIFESTS {
        let (own, next) = (name(number), name(number + 1));
        let padding = "a comment that no program reads but many manifests have\\n".repeat(30);
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{own}-{file}', namespace: example}}\ndata:\n  \
             version: 0.0.1-snapshot\n  image: quay.io/example/{own}:latest\n  next: quay.io/example/{next}:latest\n  \
             text: \"{padding}\"\n"
        );
        files.push((
            format!("manifests/0000_50_{own}_{file}.yaml"),
            text.into_bytes(),
        ));
    }
    files
}

/// Bytes that do not compress, the same for the same seed.
fn noise(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed as u64 * 2 + 0x9e37_79b9_7f4a_7c15;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
