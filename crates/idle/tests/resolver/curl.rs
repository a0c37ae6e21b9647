//! curl over HTTP/1.1, HTTP/2 and TLS, against a sleeping service.

use std::sync::{Arc, atomic::Ordering};

use serde_json::json;
use tokio::{io::AsyncReadExt, io::AsyncWriteExt, net::TcpListener};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use crate::{
    fixture::ResolverFixture,
    pod::Pod,
    programs::{program, stdout_of},
};

const MARK: &str = "\n%{http_code} %{http_version}";

#[tokio::test]
async fn curl_waits_for_a_pod_over_http_1_and_http_2() {
    let test = "curl::curl_waits_for_a_pod_over_http_1_and_http_2";
    let Some(curl) = program(test, "NEAP_CURL") else {
        return;
    };
    for (flag, version) in [("--http1.1", "1.1"), ("--http2-prior-knowledge", "2")] {
        let fixture = ResolverFixture::new("HTTP", &json!({}));
        let pod = Pod::new(&fixture.tasks).await;
        let url = format!("http://{}/", fixture.address);
        let request = stdout_of(&curl, ["-sS", flag, "-w", MARK, "-i", &url]);
        let wake = async {
            fixture.wait_until_held(1).await;
            fixture.pods(&[pod.address]);
        };
        let (answer, ()) = tokio::join!(request, wake);
        assert!(
            answer.ends_with(&format!("hello\n200 {version}")),
            "{answer}"
        );
        assert!(
            answer.contains("x-neaptide-cold-start: queue;dur="),
            "{answer}"
        );
        assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn curl_uploads_to_a_service_that_sleeps_and_gets_every_byte_back() {
    let test = "curl::curl_uploads_to_a_service_that_sleeps_and_gets_every_byte_back";
    let Some(curl) = program(test, "NEAP_CURL") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (sent, got) = (folder.path().join("sent"), folder.path().join("got"));
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    std::fs::write(&sent, &bytes).unwrap();
    let body = format!("@{}", sent.display());
    let output = got.display().to_string();
    // With a length curl waits for 100 Continue; with chunks it does not send a length.
    for more in ["Expect: 100-continue", "Transfer-Encoding: chunked"] {
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let fixture = ResolverFixture::new("HTTP", &json!({}));
            let pod = Pod::new(&fixture.tasks).await;
            let url = format!("http://{}/echo", fixture.address);
            let request = stdout_of(
                &curl,
                [
                    "-sS",
                    version,
                    "-H",
                    more,
                    "--data-binary",
                    &body,
                    "-o",
                    &output,
                    &url,
                ],
            );
            let wake = async {
                fixture.wait_until_held(1).await;
                fixture.pods(&[pod.address]);
            };
            tokio::join!(request, wake);
            assert!(std::fs::read(&got).unwrap() == bytes, "{more} {version}");
            assert_eq!(pod.requests.load(Ordering::SeqCst), 1);
        }
    }
}

#[tokio::test]
async fn curl_speaks_tls_with_the_pod_itself() {
    let test = "curl::curl_speaks_tls_with_the_pod_itself";
    let Some(curl) = program(test, "NEAP_CURL") else {
        return;
    };
    let fixture = ResolverFixture::new("TLS", &json!({}));
    let name = "cart.example.com";
    let certified = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let trusted = folder.path().join("ca.pem");
    std::fs::write(&trusted, certified.cert.pem()).unwrap();
    let key = certified.signing_key.serialize_der().try_into().unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pod = listener.local_addr().unwrap();
    fixture.tasks.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let mut request = [0; 4096];
        assert_ne!(stream.read(&mut request).await.unwrap(), 0);
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret";
        stream.write_all(answer).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    let url = format!("https://{name}:443/");
    let to = format!("{name}:443:{}", fixture.address);
    let trusted = trusted.display().to_string();
    let request = stdout_of(
        &curl,
        ["-sS", "--cacert", &trusted, "--connect-to", &to, &url],
    );
    let wake = async {
        fixture.wait_until_held(1).await;
        fixture.pods(&[pod]);
    };
    let (answer, ()) = tokio::join!(request, wake);
    assert_eq!(answer, "secret");
}
