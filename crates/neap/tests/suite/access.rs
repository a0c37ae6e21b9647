//! Access of clients to the containers of a pod: logs, exec and resource usage.

#[path = "../../src/up/runtime.rs"]
mod runtime;

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use futures::{AsyncBufReadExt, SinkExt, TryStreamExt};
use http::Request;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    api::{AttachParams, AttachedProcess, LogParams, PostParams, TerminalSize},
    runtime::wait::await_condition,
};
use neap_kit::{clock::Clock, context::Context, lease::Leadership, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use neap_world::node::{self, address::Block, image::Images};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

struct AccessNode {
    pods: Api<Pod>,
    client: Client,
    _folder: TempDir,
    _tasks: JoinSet<()>,
}

impl AccessNode {
    /// Starts a server that listens on a socket, and a node.
    async fn start(block: u8, namespaces: bool) -> Self {
        let containers = Arc::new(runtime::NodeRuntime::default());
        let mut options = Options::new(Environment::simulated(7));
        options.root_ca = Some("none that is used here".into());
        options.runtime = Some(containers.clone());
        let pocket = Pocket::open(options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, pocket));
        let client = Client::try_from(Config::new(url.parse().unwrap())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::system();
        let (watches, watching) = Watches::new(clock);
        let context = Context {
            client: client.clone(),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let neap = Path::new(env!("CARGO_BIN_EXE_neap"));
        let options = node::NodeOptions {
            name: "here".into(),
            folder: folder.path().to_owned(),
            launcher: neap.to_owned(),
            images: Images::builtin(neap).into(),
            block: Block::new(block).unwrap(),
            environment: BTreeMap::new(),
            namespaces,
            own_proc: namespaces && node::namespace_support::own_proc(neap, folder.path()).is_ok(),
            restricted: false,
            as_root: namespaces && node::namespace_support::as_root(neap, folder.path()).is_ok(),
        };
        let (service, access) = node::component_with_access(&context, options).unwrap();
        containers.set_node(access);
        tasks.spawn(service.run(CancellationToken::new()));
        tasks.spawn(watching.run(CancellationToken::new()));
        Self {
            pods: Api::default_namespaced(client.clone()),
            client,
            _folder: folder,
            _tasks: tasks,
        }
    }

    /// Creates a pod with one container that runs `script`, and waits until its status as JSON contains
    /// `expected`.
    async fn run(&self, name: &str, script: &str, policy: &str, expected: &str) {
        let container =
            json!({"name": "main", "image": "busybox", "command": ["sh", "-c", script]});
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"nodeName": "here", "restartPolicy": policy, "containers": [container]},
        });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods
            .create(&PostParams::default(), &pod)
            .await
            .unwrap();
        let says = |pod: Option<&Pod>| {
            pod.is_some_and(|pod| {
                serde_json::to_string(&pod.status)
                    .unwrap()
                    .contains(expected)
            })
        };
        let waited = await_condition(self.pods.clone(), name, says);
        tokio::time::timeout(WAIT_TIMEOUT, waited)
            .await
            .unwrap()
            .unwrap();
    }

    async fn exec(&self, pod: &str, script: &str, how: &AttachParams) -> AttachedProcess {
        let command = ["sh", "-c", script];
        self.pods.exec(pod, command, how).await.unwrap()
    }

    async fn log(&self, pod: &str, how: &LogParams) -> Result<String, kube::Error> {
        self.pods.logs(pod, how).await
    }

    async fn get(&self, path: &str) -> Value {
        let request = Request::get(path).body(Vec::new()).unwrap();
        self.client.request(request).await.unwrap()
    }
}

/// Serves without TLS, which these tests do not need.
async fn serve(listener: TcpListener, pocket: Pocket) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = TowerToHyperService::new(pocket.service());
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(async move {
            // A client may disconnect early.
            let _ = connection.with_upgrades().await;
        });
    }
}

/// Standard output, standard error and exit code of a command.
async fn outcome(mut process: AttachedProcess) -> (String, String, i32) {
    let (mut out, mut err) = (String::new(), String::new());
    let status = process.take_status().unwrap();
    if let Some(mut stdout) = process.stdout() {
        stdout.read_to_string(&mut out).await.unwrap();
    }
    if let Some(mut stderr) = process.stderr() {
        stderr.read_to_string(&mut err).await.unwrap();
    }
    let status = status.await.unwrap();
    let causes = status.details.and_then(|details| details.causes);
    let code = causes.into_iter().flatten().find_map(|cause| {
        let is_code = cause.reason.as_deref() == Some("ExitCode");
        is_code.then(|| cause.message.unwrap().parse().unwrap())
    });
    (out, err, code.unwrap_or(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_in_a_container() {
    for (block, namespaces) in [(78, true), (79, false)] {
        let node = AccessNode::start(block, namespaces).await;
        node.run("host", "sleep 60", "Never", "\"Running\"").await;
        let how = AttachParams::default();
        let script = "echo from $HOSTNAME; echo bad >&2; exit 7";
        let ended = outcome(node.exec("host", script, &how).await).await;
        assert_eq!(ended, ("from host\n".into(), "bad\n".into(), 7));

        let how = AttachParams::default().stdin(true).stderr(false);
        let mut process = node.exec("host", "wc -c", &how).await;
        let mut stdin = process.stdin().unwrap();
        // More than any pipe buffer on the way holds.
        stdin.write_all(&vec![b'x'; 1 << 20]).await.unwrap();
        stdin.shutdown().await.unwrap();
        drop(stdin);
        let (out, _, code) = outcome(process).await;
        assert_eq!((out.trim(), code), ("1048576", 0));

        let how = AttachParams::default();
        let missing = node.pods.exec("host", ["/no/such"], &how).await;
        let (_, err, code) = outcome(missing.unwrap()).await;
        assert_eq!(code, 127);
        assert!(err.contains("/no/such could not be started"), "{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_can_have_a_terminal() {
    let node = AccessNode::start(80, true).await;
    node.run("host", "sleep 60", "Never", "\"Running\"").await;
    let how = AttachParams::interactive_tty();
    let script = "test -t 0 && test -t 2 && echo $TERM; \
        trap 'stty size; exit 3' INT; until stty size | grep -q 50; do sleep 0.02; done; \
        echo sized; while :; do sleep 0.02; done";
    let mut process = node.exec("host", script, &how).await;
    let mut sizes = process.terminal_size().unwrap();
    let size = TerminalSize {
        width: 132,
        height: 50,
    };
    sizes.send(size).await.unwrap();
    let mut stdin = process.stdin().unwrap();
    let mut stdout = process.stdout().unwrap();
    let mut shown = String::new();
    let mut buffer = [0; 1024];
    while !shown.contains("sized") {
        let count = tokio::time::timeout(WAIT_TIMEOUT, stdout.read(&mut buffer));
        let count = count.await.unwrap().unwrap();
        assert!(count > 0, "it ended with {shown:?}");
        shown += std::str::from_utf8(&buffer[..count]).unwrap();
    }
    assert!(shown.starts_with("xterm\r\n"), "{shown:?}");
    // The character of Ctrl-C.
    stdin.write_all(b"\x03").await.unwrap();
    let status = process.take_status().unwrap();
    stdout.read_to_string(&mut shown).await.unwrap();
    assert!(shown.contains("50 132"), "{shown:?}");
    let causes = status.await.unwrap().details.unwrap().causes.unwrap();
    assert_eq!(causes[0].message.as_deref(), Some("3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_is_refused_in_a_container_that_does_not_run() {
    let node = AccessNode::start(81, false).await;
    node.run("done", "exit 0", "Never", "\"Succeeded\"").await;
    let refused = node
        .pods
        .exec("done", ["true"], &AttachParams::default())
        .await;
    assert!(refused.is_err());
    let path = "/api/v1/namespaces/default/pods/done/exec?command=true&container=other&stdout=true";
    let request = Request::get(path).body(Vec::new()).unwrap();
    let refused = node.client.request::<Value>(request).await.unwrap_err();
    let expected = "container other is not valid for pod done";
    assert!(refused.to_string().contains(expected), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_read_followed_and_kept_across_a_restart() {
    let node = AccessNode::start(82, true).await;
    let script = "test -f /dev/shm/again-$POD_IP && { echo second; rm /dev/shm/again-$POD_IP; sleep 60; }; \
        touch /dev/shm/again-$POD_IP; echo one; echo two; echo three >&2; sleep 1; echo end; exit 1";
    node.run("web", script, "Always", "\"Running\"").await;
    let follow = LogParams {
        follow: true,
        ..LogParams::default()
    };
    let lines = node.pods.log_stream("web", &follow).await.unwrap();
    let lines: Vec<String> = tokio::time::timeout(WAIT_TIMEOUT, lines.lines().try_collect())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[3], "end", "the stream ends with the process");
    let previous = LogParams {
        previous: true,
        tail_lines: Some(1),
        ..LogParams::default()
    };
    let says = |pod: Option<&Pod>| {
        pod.is_some_and(|pod| {
            let text = serde_json::to_string(&pod.status).unwrap();
            text.contains("\"restartCount\":1")
        })
    };
    let refused = node.log("web", &previous).await;
    let waited = await_condition(node.pods.clone(), "web", says);
    tokio::time::timeout(WAIT_TIMEOUT, waited)
        .await
        .unwrap()
        .unwrap();
    if let Err(refused) = refused {
        // The container had not been restarted yet.
        let expected = "previous terminated container \"main\" in pod \"web\" not found";
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    assert_eq!(node.log("web", &previous).await.unwrap(), "end\n");
    let mut polls = tokio::time::interval(Duration::from_millis(10));
    let mut log = String::new();
    while log.is_empty() {
        polls.tick().await;
        log = node.log("web", &LogParams::default()).await.unwrap();
    }
    assert_eq!(log, "second\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn resource_usage_is_measured() {
    let node = AccessNode::start(83, true).await;
    let script = "echo ready; while :; do :; done";
    node.run("busy", script, "Never", "\"Running\"").await;
    let path = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
    let mut polls = tokio::time::interval(Duration::from_millis(50));
    let number = |text: &Value, unit: &str| -> u64 {
        let text = text.as_str().unwrap();
        text.strip_suffix(unit).unwrap().parse().unwrap()
    };
    let usage = loop {
        polls.tick().await;
        let list = node.get(path).await;
        let usage = list["items"][0]["containers"][0].clone();
        if !usage.is_null() && number(&usage["usage"]["cpu"], "u") > 1000 {
            break usage;
        }
    };
    assert_eq!(usage["name"], "main");
    let memory = number(&usage["usage"]["memory"], "Ki");
    assert!((100..100_000).contains(&memory), "{usage}");
    let one = node.get(&format!("{path}/busy")).await;
    assert_eq!(one["window"], "15s");
    let groups = node.get("/apis/metrics.k8s.io/v1beta1").await;
    let names: Vec<_> = groups["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(names, ["nodes", "pods"]);
}
