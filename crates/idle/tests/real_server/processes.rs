//! Operator and resolver as processes, with the arguments, variables and accounts of their Deployments.

use std::collections::BTreeMap;

use neap_idle::{operator::OperatorOptions, process, resolver::ResolverOptions};
use neap_kit::{
    assembly::{Identity, ProcessClients},
    process::Process,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    account::Account,
    test_namespace::{DEPLOYMENT, Kind, TestNamespace},
};

const MAP: Kind = ("v1", "ConfigMap");

/// An address to listen on, unique to this run of the test.
pub(crate) fn address(number: u32) -> String {
    let [.., high, low] = (std::process::id() * 4 + number).to_be_bytes();
    format!("127.255.{high}.{low}")
}

/// Variables and arguments of the first container of a live Deployment.
async fn started(
    cluster: &TestNamespace,
    namespace: &str,
    name: &str,
) -> (BTreeMap<String, String>, Vec<String>) {
    let found = cluster
        .api_in(namespace, DEPLOYMENT)
        .get(name)
        .await
        .unwrap();
    let container = &found.data["spec"]["template"]["spec"]["containers"][0];
    let list = |field: &str| container[field].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut variables = BTreeMap::new();
    for from in list("envFrom") {
        let map = text(&from["configMapRef"]["name"]);
        let map = cluster.api_in(namespace, MAP).get(&map).await.unwrap();
        let data = map.data["data"].as_object().unwrap().clone();
        variables.extend(data.iter().map(|(name, value)| (name.clone(), text(value))));
    }
    let own = list("env").into_iter();
    variables.extend(own.map(|one| (text(&one["name"]), text(&one["value"]))));
    (variables, list("args").iter().map(text).collect())
}

/// The operator and the resolver of an install, until dropped.
pub(crate) struct Processes {
    pub(crate) operator: String,
    pub(crate) resolver: String,
    stop: CancellationToken,
    tasks: JoinSet<Result<(), process::Error>>,
}

impl Processes {
    pub(crate) async fn start(
        cluster: &TestNamespace,
        namespace: &str,
        names: [&str; 2],
        accounts: [&Account; 2],
    ) -> Self {
        let (operator, resolver) = (address(1), address(2));
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let (mut variables, words) = started(cluster, namespace, names[0]).await;
        variables.extend(placed(&operator, accounts[0]));
        let variable = |name: &str| variables.get(name).cloned();
        let options = OperatorOptions::read(words, &variable).unwrap();
        let operators = clients(accounts[0]).await;
        tasks.spawn(process::operator(
            operators,
            options,
            identity("one", 1),
            stop.clone(),
        ));
        let (mut variables, _) = started(cluster, namespace, names[1]).await;
        variables.extend(placed(&resolver, accounts[1]));
        variables.insert(
            "ELASTI_OPERATOR_ADDRESS".to_owned(),
            format!("{operator}:8013"),
        );
        variables.insert("ELASTI_DRAIN_SECONDS".to_owned(), "1".to_owned());
        let options = ResolverOptions::read(&|name| variables.get(name).cloned()).unwrap();
        let resolvers = clients(accounts[1]).await;
        tasks.spawn(process::resolver(
            resolvers,
            options,
            identity("two", 2),
            stop.clone(),
        ));
        Self {
            operator,
            resolver,
            stop,
            tasks,
        }
    }

    /// Shuts both down.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap().unwrap();
        }
    }
}

async fn clients(account: &Account) -> ProcessClients {
    ProcessClients {
        client: account.client().await,
        election: account.client().await,
        process: Process::default(),
    }
}

fn identity(name: &str, seed: u64) -> Identity {
    Identity {
        name: name.to_owned(),
        seed,
    }
}

fn placed(address: &str, account: &Account) -> [(String, String); 2] {
    let file = account.file().display().to_string();
    [
        ("ELASTI_LISTEN_ADDRESS".to_owned(), address.to_owned()),
        ("ELASTI_TOKEN_FILE".to_owned(), file),
    ]
}

/// Sends a request and returns the status of the answer; `None` without an answer.
pub(crate) async fn request_status(
    place: &str,
    line: &str,
    token: &str,
    body: &str,
) -> Option<u16> {
    let mut stream = TcpStream::connect(place).await.ok()?;
    let shown = if token.is_empty() {
        String::new()
    } else {
        format!("Authorization: Bearer {token}\r\n")
    };
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {place}\r\n{shown}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}
