//! What is done to the farm, and what must come of it.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::{
    bazel::Bazel,
    platform::{COMPONENTS, Platform, ROLL_OUT_LIMIT, condition, until},
};

/// How long a few seconds of work may take on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

/// Bazel builds and tests through the frontend, and the second build runs nothing.
pub(super) fn builds(_: &Platform, bazel: &Bazel) -> Result<String> {
    let first = bazel.run("test", &["//..."])?.flawless()?;
    let remote = first.count("remote");
    // Eight parts, the whole, and the test.
    ensure!(
        remote >= 10,
        "only {remote} actions ran on the farm:\n{}",
        first.text
    );
    bazel.clean()?;
    let second = bazel.run("test", &["//..."])?.flawless()?;
    let hits = second.count("remote cache hit");
    ensure!(
        hits >= 10 && second.count("remote") == 0,
        "the second build is not from the cache:\n{}",
        second.text
    );
    Ok(format!(
        "{remote} actions ran remotely, then {hits} were in the cache"
    ))
}

/// A pool of 4 shrinks to 1 while actions run: each runs exactly once.
pub(super) fn shrinks(platform: &Platform, bazel: &Bazel) -> Result<String> {
    const ACTIONS: usize = 60;
    let pool = "buildbarnworker/linux";
    platform.patch(pool, &json!({"spec": {"replicas": 4, "concurrency": 2}}))?;
    platform.settled()?;
    bazel.take_flags(platform)?;
    let ledger = platform.folder().join("shrinks.txt");
    bazel.package("shrinks", ACTIONS, 2.0, &ledger)?;
    let built = thread::scope(|scope| {
        let build = scope.spawn(|| bazel.run("build", &["//shrinks/..."]));
        let begun = until("actions run", LIMIT, || {
            let over = build.is_finished();
            Ok((over || lines(&ledger)? >= 4).then_some(()))
        });
        let shrunk = begun.and_then(|()| platform.patch(pool, &json!({"spec": {"replicas": 1}})));
        let built = build
            .join()
            .map_err(|_| anyhow::anyhow!("the build panicked"));
        shrunk.and(built?)
    })?;
    built.flawless()?;
    platform.settled()?;
    let workers = platform.pods("worker")?.len();
    ensure!(workers == 1, "{workers} workers are left");
    let mut ran: BTreeMap<String, usize> = BTreeMap::new();
    for line in fs::read_to_string(&ledger)?.lines() {
        *ran.entry(line.trim().to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = ran.iter().filter(|(_, times)| **times != 1).collect();
    ensure!(
        ran.len() == ACTIONS && twice.is_empty(),
        "{} of {ACTIONS} actions ran; more than once: {twice:?}",
        ran.len()
    );
    platform.patch(pool, &json!({"spec": {"replicas": 2}}))?;
    platform.settled()?;
    Ok(format!("{ACTIONS} actions, each once"))
}

fn lines(file: &Path) -> Result<usize> {
    Ok(fs::read_to_string(file)?.lines().count())
}

/// Storage goes from 2 to 3 shards while Bazel builds: it shows no error.
pub(super) fn resharded(platform: &Platform, bazel: &Bazel) -> Result<String> {
    let storage = "buildbarnstorage/storage";
    let ledger = platform.folder().join("resharded.txt");
    bazel.package("resharded", 24, 0.2, &ledger)?;
    let over = AtomicBool::new(false);
    let (builds, resharded) = thread::scope(|scope| {
        let build = scope.spawn(|| -> Result<usize> {
            let mut builds = 0;
            while !over.load(Ordering::Acquire) {
                bazel.clean()?;
                // Every second build asks for what is in the cache already.
                let salt = format!("--action_env=SALT={}", builds / 2);
                bazel
                    .run("build", &[&salt, "//resharded/..."])?
                    .flawless()?;
                builds += 1;
            }
            Ok(builds)
        });
        let change = json!({"spec": {"replicas": 3, "resharding": {"windowSeconds": 10}}});
        let resharded = platform.patch(storage, &change).and_then(|()| {
            until("the shards are changed", ROLL_OUT_LIMIT, || {
                let status = platform.get(storage)?["status"]["storage"].take();
                let shards = status["shards"].as_array().map_or(0, Vec::len);
                Ok((shards == 3 && status["resharding"].is_null()).then_some(()))
            })?;
            platform.settled()
        });
        over.store(true, Ordering::Release);
        let builds = build
            .join()
            .map_err(|_| anyhow::anyhow!("the build panicked"));
        (builds.and_then(|it| it), resharded)
    });
    resharded?;
    let builds = builds?;
    ensure!(
        platform.pods("storage")?.len() == 3,
        "there are not three shards"
    );
    Ok(format!(
        "{builds} builds while the shards changed, and no error"
    ))
}

/// A configuration that is valid and whose program does not start is rolled out to one component only.
pub(super) fn broken(platform: &Platform, _: &Bazel) -> Result<String> {
    let storage = "buildbarnstorage/storage";
    let others = ["scheduler", "worker", "frontend"];
    let pods = |app: &&str| Ok((app.to_string(), platform.pods(app)?));
    let before: BTreeMap<_, _> = others.iter().map(pods).collect::<Result<_>>()?;
    // The folder of the state does not exist, which no check can see.
    let files = platform.get("statefulset/storage")?;
    let volumes = files["spec"]["template"]["spec"]["volumes"].as_array();
    let mut volumes = volumes.into_iter().flatten();
    let configs = volumes.find(|it| it["name"] == "configs");
    let name = configs.and_then(|it| it["configMap"]["name"].as_str());
    let name = name.context("the storage has no configuration")?.to_owned();
    let mut data = platform.get(&format!("configmap/{name}"))?["data"].take();
    let file = data["storage.jsonnet"]
        .as_str()
        .context("no storage.jsonnet")?;
    let text = file.replace("persistent_state", "no_such_folder");
    ensure!(text != file, "the configuration has no folder of its state");
    data["storage.jsonnet"] = text.into();
    platform.apply(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "broken", "namespace": super::platform::NAMESPACE},
        "data": data,
    }))?;
    platform.patch(
        storage,
        &json!({"spec": {"configMapName": "broken", "maximumMessageSize": "4Mi"}}),
    )?;
    let crashed = until("a shard does not start", LIMIT, || {
        let object = platform.get(storage)?;
        let why = condition(&object, "Ready");
        let not_ready = object["status"]["state"] != "Ready";
        Ok((not_ready && why[1].contains("storage")).then_some(why))
    })?;
    for component in &COMPONENTS[1..] {
        until("the others wait", LIMIT, || {
            let object = platform.get(component)?;
            let [reason, message] = condition(&object, "Ready");
            let waits = reason == "WaitingForRollout" && message.contains("BuildbarnStorage");
            Ok(waits.then_some(()))
        })?;
    }
    // As long as a roll-out of one component takes, and longer.
    thread::park_timeout(Duration::from_secs(20));
    let after: BTreeMap<_, _> = others.iter().map(pods).collect::<Result<_>>()?;
    if before != after {
        bail!("the roll-out went on: {before:?} became {after:?}");
    }
    platform.patch(
        storage,
        &json!({"spec": {"configMapName": null, "maximumMessageSize": null}}),
    )?;
    platform.settled()?;
    Ok(format!(
        "{}: {}",
        crashed[0],
        crashed[1].lines().next().unwrap_or_default()
    ))
}
