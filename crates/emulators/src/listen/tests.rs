//! A system on a socket, with and without TLS and faults.

use std::{net::SocketAddr, time::Duration};

use futures::future::BoxFuture;
use neap_kit::client::{Client, Error, Fault, Proxies, Refusal, RetryPolicy, Trust};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
};
use tokio_rustls::rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    fault_book::CallMatcher,
    registry::{Access, Registry, Settings, User},
};

struct Served {
    registry: Emulator<Registry>,
    address: SocketAddr,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

async fn serve(access: Access, identity: Option<Arc<ServerConfig>>) -> Served {
    let clock = Clock::system();
    let settings = Settings {
        access,
        ..Settings::default()
    };
    let registry = Emulator::new(Registry::in_memory(settings, clock), clock);
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let emulator = registry.clone();
    let component = match identity {
        None => listen("registry", socket, clock, emulator),
        Some(identity) => listen_with_tls("registry", socket, clock, emulator, identity),
    };
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(component.run(stop.clone()));
    Served {
        registry,
        address,
        stop,
        tasks,
    }
}

fn client(trust: Trust) -> Client {
    Client::builder("test", Clock::system())
        .trust(trust)
        .proxies(Proxies::none())
        .retry(RetryPolicy::never())
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_system_answers_on_a_socket_until_it_is_stopped() {
    let mut served = serve(Access::Open, None).await;
    let client = client(Trust::default());
    let address = format!("http://{}/v2/", served.address);
    let answer = client.get(&address).fetch(100).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(served.registry.calls().lines(), ["GET /v2/ 200"]);
    served.stop.cancel();
    served.tasks.join_next().await.unwrap().unwrap();
    let gone = client.get(&address).fetch(100).await;
    assert!(gone.is_err(), "{gone:?}");
}

#[tokio::test]
async fn faults_reach_callers_through_the_socket() {
    let served = serve(Access::Open, None).await;
    let client = client(Trust::default());
    let address = format!("http://{}/v2/", served.address);
    let refused = Refusal {
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after: Some(7),
    };
    for fault in [
        Fault::RequestLost,
        Fault::AnswerLost,
        Fault::Truncated(1),
        Fault::Refused(refused),
    ] {
        served.registry.faults().clear();
        let once = CallMatcher::any().times(1);
        served.registry.faults().inject(once, fault);
        let answer = client.get(&address).fetch(100).await;
        match (fault, answer) {
            (Fault::Refused(_), Ok(answer)) => {
                assert_eq!(answer.status, 429);
                assert_eq!(answer.retry_after(), Some(Duration::from_secs(7)));
            }
            (_, Err(Error::Interrupted { .. })) => {}
            (fault, answer) => panic!("{fault}: {answer:?}"),
        }
        assert!(served.registry.faults().unused().is_empty(), "{fault}");
        let next = client.get(&address).fetch(100).await.unwrap();
        assert_eq!(next.status, 200, "after {fault}");
    }
}

#[tokio::test]
async fn a_registry_behind_tls_sends_callers_to_its_own_token_endpoint() {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = key.cert.pem();
    let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
    let private = key.signing_key.serialize_pem();
    let private = PrivateKeyDer::from_pem_slice(private.as_bytes()).unwrap();
    let identity = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .unwrap();
    let users = vec![User::new("builder", "secret").pushes("*")];
    let served = serve(Access::Token(users), Some(Arc::new(identity))).await;
    let trust = Trust::default()
        .only_added()
        .with_authorities(pem.as_bytes());
    let client = client(trust.unwrap());
    let host = format!("localhost:{}", served.address.port());
    let refused = client.get(format!("https://{host}/v2/")).fetch(1000).await;
    let refused = refused.unwrap();
    let challenge = refused.header("www-authenticate").unwrap();
    let realm = format!(r#"Bearer realm="https://{host}/token""#);
    assert!(challenge.starts_with(&realm), "{challenge}");
}

/// A system that answers after the server has looked several times for more from its client.
struct Slow;

impl System for Slow {
    fn respond(self: Arc<Self>, _: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            Response::new(Body::from("answered"))
        })
    }
}

/// What a client gets that sends `request` and then shuts its side.
async fn answer_of(request: &str) -> String {
    let emulator = Emulator::new(Slow, Clock::system());
    let (mut near, far) = tokio::io::duplex(4096);
    near.write_all(request.as_bytes()).await.unwrap();
    near.shutdown().await.unwrap();
    let mut answer = String::new();
    let reading = near.read_to_string(&mut answer);
    let (read, ()) = tokio::join!(reading, serve_connection(far, emulator, false));
    read.unwrap();
    answer
}

#[tokio::test]
async fn a_client_that_shuts_its_side_gets_its_answer_and_a_host_is_named_once() {
    for (target, hosts, status, end) in [
        ("/ HTTP/1.1", "Host: x\r\n", 200, "answered"),
        ("/ HTTP/1.0", "", 200, "answered"),
        ("/ HTTP/1.1", "", 400, "has no Host header\n"),
        (
            "/ HTTP/1.1",
            "Host: x\r\nHost: x\r\n",
            400,
            "more than one Host header\n",
        ),
        (
            "/ HTTP/1.1",
            "Host: x y\r\n",
            400,
            "the Host header is invalid\n",
        ),
        ("http://x/ HTTP/1.1", "Host: x\r\n", 200, "answered"),
        (
            "http://y/ HTTP/1.1",
            "Host: x\r\n",
            400,
            "the target of the request differ\n",
        ),
    ] {
        let request = format!("GET {target}\r\n{hosts}\r\n");
        let answer = answer_of(&request).await;
        let found = answer.split(' ').nth(1).map(str::parse);
        assert_eq!(found, Some(Ok(status)), "{request:?}: {answer}");
        assert!(answer.ends_with(end), "{request:?}: {answer}");
    }
}
