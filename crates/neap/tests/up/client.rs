//! The smallest HTTPS client that can show a certificate or a token.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    client::ResolvesClientCert,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    sign::CertifiedKey,
};

use crate::running::Kubeconfig;

/// What a request shows.
pub(crate) enum Credentials {
    None,
    Token(String),
    Certificate { certificate: String, key: String },
}

impl Credentials {
    pub(crate) fn certificate(config: &Kubeconfig) -> Self {
        Self::Certificate {
            certificate: config.certificate.clone(),
            key: config.key.clone(),
        }
    }
}

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Talks to one server, and trusts its authority alone.
pub(crate) struct Client {
    config: ClientConfig,
    address: String,
    token: Option<String>,
}

impl Client {
    pub(crate) fn new(server: &Kubeconfig, credentials: Credentials) -> Self {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(server.authority.as_bytes()).unwrap())
            .unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let (config, token) = match credentials {
            Credentials::None => (builder.with_no_client_auth(), None),
            Credentials::Token(token) => (builder.with_no_client_auth(), Some(token)),
            Credentials::Certificate { certificate, key } => {
                let resolver = Arc::new(Always(certified(&certificate, &key)));
                (builder.with_client_cert_resolver(resolver), None)
            }
        };
        Self {
            config,
            address: server.address(),
            token,
        }
    }

    /// The status of a GET.
    pub(crate) fn get(&self, path: &str) -> u16 {
        let mut stream = self.send(path, "close");
        let mut answer = Vec::new();
        // A server may close without a TLS goodbye; the status line is what counts.
        let _ = stream.read_to_end(&mut answer);
        status(&answer)
    }

    /// The status and the text of an answer; a request with a body is a POST.
    pub(crate) fn ask(&self, path: &str, body: &str) -> (u16, String) {
        let mut stream = self.request(path, "close", body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        (status(&answer), String::from_utf8(answer).unwrap())
    }

    /// A connection that stays open after a GET was answered.
    pub(crate) fn open(&self, path: &str) -> Stream {
        let mut stream = self.send(path, "keep-alive");
        let mut answer = [0; 4096];
        let length = stream.read(&mut answer).unwrap();
        assert_eq!(status(&answer[..length]), 200);
        stream
    }

    fn send(&self, path: &str, connection: &str) -> Stream {
        self.request(path, connection, "")
    }

    fn request(&self, path: &str, connection: &str, body: &str) -> Stream {
        let mut stream = self.connect(self.config.clone());
        let authorization = match &self.token {
            Some(token) => format!("Authorization: Bearer {token}\r\n"),
            None => String::new(),
        };
        let address = &self.address;
        let (method, length) = match body.len() {
            0 => ("GET", String::new()),
            length => ("POST", format!("Content-Length: {length}\r\n")),
        };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}{length}Connection: {connection}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// The protocol that the server picks of those offered.
    pub(crate) fn negotiate(&self, protocols: &[&[u8]]) -> Option<Vec<u8>> {
        let mut config = self.config.clone();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let mut stream = self.connect(config);
        stream.conn.complete_io(&mut stream.sock).unwrap();
        stream.conn.alpn_protocol().map(<[u8]>::to_vec)
    }

    fn connect(&self, config: ClientConfig) -> Stream {
        let host = self.address.rsplit_once(':').unwrap().0.to_owned();
        let name = ServerName::try_from(host).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let socket = TcpStream::connect(&self.address).unwrap();
        StreamOwned::new(connection, socket)
    }
}

fn status(answer: &[u8]) -> u16 {
    let answer = String::from_utf8_lossy(answer);
    let status = answer.split(' ').nth(1).expect("a status line");
    status.parse().unwrap()
}

fn certified(certificate: &str, key: &str) -> CertifiedKey {
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(vec![certificate], key, &provider).unwrap()
}

/// Shows its certificate whatever authorities the server hints at, as a stubborn client does.
#[derive(Debug)]
struct Always(CertifiedKey);

impl ResolvesClientCert for Always {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::new(self.0.clone()))
    }

    fn has_certs(&self) -> bool {
        true
    }
}
