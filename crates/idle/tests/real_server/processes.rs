//! Operator and resolver as the processes of an install: with the arguments, variables and accounts of
//! its Deployments.

use std::collections::BTreeMap;

use neap_idle::{
    operator::settings::{Flags, ResolverSettings, Settings},
    process::{self, Identity, Means},
};
use neap_kit::process::Process;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    account::Account,
    stage::{DEPLOYMENT, Kind, Stage},
};

const MAP: Kind = ("v1", "ConfigMap");

/// Where they listen: no other run of this test does.
pub(crate) fn address(number: u32) -> String {
    let [.., high, low] = (std::process::id() * 4 + number).to_be_bytes();
    format!("127.255.{high}.{low}")
}

/// Variables and arguments of the first container of a live Deployment.
async fn started(
    stage: &Stage,
    namespace: &str,
    name: &str,
) -> (BTreeMap<String, String>, Vec<String>) {
    let found = stage.api_in(namespace, DEPLOYMENT).get(name).await.unwrap();
    let container = &found.data["spec"]["template"]["spec"]["containers"][0];
    let list = |field: &str| container[field].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut variables = BTreeMap::new();
    for from in list("envFrom") {
        let map = text(&from["configMapRef"]["name"]);
        let map = stage.api_in(namespace, MAP).get(&map).await.unwrap();
        let data = map.data["data"].as_object().unwrap().clone();
        variables.extend(data.iter().map(|(name, value)| (name.clone(), text(value))));
    }
    let own = list("env").into_iter();
    variables.extend(own.map(|one| (text(&one["name"]), text(&one["value"]))));
    (variables, list("args").iter().map(text).collect())
}

/// Both of an install, until this goes.
pub(crate) struct Processes {
    pub(crate) operator: String,
    pub(crate) resolver: String,
    stop: CancellationToken,
    tasks: JoinSet<Result<(), process::Error>>,
}

impl Processes {
    pub(crate) async fn start(
        stage: &Stage,
        namespace: &str,
        names: [&str; 2],
        accounts: [&Account; 2],
    ) -> Self {
        let (operator, resolver) = (address(1), address(2));
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let (mut variables, words) = started(stage, namespace, names[0]).await;
        variables.extend(placed(&operator, accounts[0]));
        let flags = Flags::read(words).unwrap();
        let settings = Settings::read(&|name| variables.get(name).cloned(), flags).unwrap();
        let (operators, elect) = (means(accounts[0]).await, accounts[0].client().await);
        let identity = Identity {
            name: "one".to_owned(),
            seed: 1,
        };
        tasks.spawn(process::operator(
            operators,
            elect,
            settings,
            identity,
            stop.clone(),
        ));
        let (mut variables, _) = started(stage, namespace, names[1]).await;
        variables.extend(placed(&resolver, accounts[1]));
        variables.insert(
            "ELASTI_OPERATOR_ADDRESS".to_owned(),
            format!("{operator}:8013"),
        );
        variables.insert("ELASTI_DRAIN_SECONDS".to_owned(), "1".to_owned());
        let settings = ResolverSettings::read(&|name| variables.get(name).cloned()).unwrap();
        let resolvers = means(accounts[1]).await;
        tasks.spawn(process::resolver(resolvers, settings, stop.clone()));
        Self {
            operator,
            resolver,
            stop,
            tasks,
        }
    }

    /// Ends both in order.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap().unwrap();
        }
    }
}

async fn means(account: &Account) -> Means {
    Means {
        client: account.client().await,
        process: Process::default(),
    }
}

fn placed(address: &str, account: &Account) -> [(String, String); 2] {
    let file = account.file().display().to_string();
    [
        ("ELASTI_LISTEN_ADDRESS".to_owned(), address.to_owned()),
        ("ELASTI_TOKEN_FILE".to_owned(), file),
    ]
}

/// The status of an answer; nothing if nobody answers.
pub(crate) async fn asked(place: &str, line: &str, token: &str, body: &str) -> Option<u16> {
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
