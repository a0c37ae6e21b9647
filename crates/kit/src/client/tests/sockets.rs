//! Over real sockets: TLS, certificates and proxies.

use std::{net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::{
    client::{Client, Error, Proxies, RetryPolicy, Trust},
    clock::Clock,
};

fn client(trust: Trust, proxies: Proxies) -> Client {
    Client::builder("test", Clock::system())
        .trust(trust)
        .proxies(proxies)
        .retry(RetryPolicy::never())
        .build()
        .unwrap()
}

/// The head of a request.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, seen: Arc<Mutex<Vec<String>>>) {
    let request = head(&mut stream).await;
    seen.lock().push(request);
    let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    stream.write_all(response).await.unwrap();
}

/// A server that answers `ok`, and the heads of the requests that it has received.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn plain() -> Self {
        Self::start(None).await
    }

    async fn with_tls(tls: Arc<ServerConfig>) -> Self {
        Self::start(Some(tls.into())).await
    }

    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let mut tasks = JoinSet::new();
        let log = seen.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                match &tls {
                    None => answer(stream, log.clone()).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answer(stream, log.clone()).await;
                        }
                    }
                }
            }
        });
        Self {
            address,
            seen,
            _tasks: tasks,
        }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }
}

/// A certificate for `localhost`, and the server's side of it.
fn certificate() -> (String, Arc<ServerConfig>) {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = key.cert.pem();
    let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
    let private = key.signing_key.serialize_pem();
    let private = PrivateKeyDer::from_pem_slice(private.as_bytes()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .unwrap();
    (pem, Arc::new(config))
}

#[tokio::test]
async fn a_certificate_is_verified_unless_its_host_is_insecure() {
    let (pem, tls) = certificate();
    let server = Server::with_tls(tls).await;
    let port = server.address.port();
    let url = format!("https://localhost:{port}/");

    let stranger = client(Trust::default(), Proxies::none());
    let error = stranger.get(&url).send().await.unwrap_err();
    assert!(matches!(error, Error::Untrusted { .. }), "{error:?}");

    let trust = Trust::default()
        .only_added()
        .with_authorities(pem.as_bytes());
    let trusting = client(trust.unwrap(), Proxies::none());
    let fetched = trusting.get(&url).fetch(10).await.unwrap();
    assert_eq!(fetched.body, "ok");

    let elsewhere = Trust::default().with_insecure_host("localhost:1");
    let error = client(elsewhere, Proxies::none()).get(&url).send().await;
    assert!(matches!(error, Err(Error::Untrusted { .. })), "{error:?}");
    for host in ["localhost".to_owned(), format!("LOCALHOST:{port}")] {
        let trust = Trust::default().with_insecure_host(&host);
        let fetched = client(trust, Proxies::none()).get(&url).fetch(10).await;
        assert_eq!(fetched.unwrap().body, "ok", "{host}");
    }
    let once = stranger.get(&url).insecure(true).fetch(10).await;
    assert_eq!(once.unwrap().body, "ok");
    let again = stranger.get(&url).send().await;
    assert!(
        matches!(again, Err(Error::Untrusted { .. })),
        "the next request is not insecure"
    );
}

#[test]
fn certificates_that_are_none_are_refused() {
    for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\nnonsense"] {
        assert!(
            Trust::default().with_authorities(pem.as_bytes()).is_err(),
            "{pem}"
        );
    }
}

#[tokio::test]
async fn a_proxy_gets_the_whole_address_and_its_credentials() {
    let proxy = Server::plain().await;
    let proxies = Proxies::of(
        &format!("http://me:pass@{}", proxy.address),
        "",
        "direct.example",
    );
    let client = client(Trust::default(), proxies);
    let fetched = client
        .get("http://unresolvable.example/a?b=c")
        .fetch(10)
        .await;
    assert_eq!(fetched.unwrap().body, "ok");
    let seen = proxy.seen().remove(0);
    assert!(
        seen.starts_with("GET http://unresolvable.example/a?b=c HTTP/1.1\r\n"),
        "{seen}"
    );
    assert!(
        seen.contains("proxy-authorization: Basic bWU6cGFzcw=="),
        "{seen}"
    );
}

#[tokio::test]
async fn hosts_without_a_proxy_are_called_directly() {
    let (proxy, server) = (Server::plain().await, Server::plain().await);
    let proxies = Proxies::of(&format!("http://{}", proxy.address), "", "127.0.0.0/8");
    let client = client(Trust::default(), proxies);
    client
        .get(format!("http://{}/", server.address))
        .fetch(10)
        .await
        .unwrap();
    assert!(proxy.seen().is_empty());
    assert!(server.seen()[0].starts_with("GET / HTTP/1.1\r\n"));
}

#[tokio::test]
async fn an_encrypted_connection_goes_through_a_tunnel() {
    let (pem, tls) = certificate();
    let server = Server::with_tls(tls).await;
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = socket.local_addr().unwrap();
    let target = server.address;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut inbound, _) = socket.accept().await.unwrap();
        let request = head(&mut inbound).await;
        assert!(
            request.starts_with("CONNECT localhost:9 HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(
            request.contains("Proxy-Authorization: Basic bWU6cGFzcw=="),
            "{request}"
        );
        let mut outbound = tokio::net::TcpStream::connect(target).await.unwrap();
        inbound.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut inbound, &mut outbound).await;
    });
    let trust = Trust::default()
        .only_added()
        .with_authorities(pem.as_bytes());
    let proxies = Proxies::of("", &format!("http://me:pass@{proxy}"), "");
    let client = client(trust.unwrap(), proxies);
    let fetched = client.get("https://localhost:9/x").fetch(10).await.unwrap();
    assert_eq!(fetched.body, "ok");
    let seen = server.seen().remove(0);
    assert!(
        !seen.to_lowercase().contains("proxy-authorization"),
        "{seen}"
    );
    tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn a_host_without_a_server_is_not_reached() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let client = client(Trust::default(), Proxies::none());
    let error = client
        .get(format!("http://{address}/"))
        .send()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotReached { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_hangs_up_interrupts_the_call() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = socket.accept().await.unwrap();
        head(&mut stream).await;
    });
    let client = client(Trust::default(), Proxies::none());
    let error = client
        .get(format!("http://{address}/"))
        .send()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }), "{error:?}");
}
