//! A minimal HTTPS client that can use a client certificate or a token.

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

use super::sandbox::AdminKubeconfig;

/// The credentials of a request.
pub(crate) enum Credentials {
    None,
    Token(String),
    Certificate { certificate: String, key: String },
}

impl Credentials {
    pub(crate) fn certificate(config: &AdminKubeconfig) -> Self {
        Self::Certificate {
            certificate: config.certificate.clone(),
            key: config.key.clone(),
        }
    }
}

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A client of one server that trusts only its authority.
pub(crate) struct HttpsClient {
    config: ClientConfig,
    address: String,
    token: Option<String>,
}

impl HttpsClient {
    pub(crate) fn new(server: &AdminKubeconfig, credentials: Credentials) -> Self {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(server.authority.as_bytes()).unwrap())
            .unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let (config, token) = match credentials {
            Credentials::None => (builder.with_no_client_auth(), None),
            Credentials::Token(token) => (builder.with_no_client_auth(), Some(token)),
            Credentials::Certificate { certificate, key } => {
                let resolver = Arc::new(FixedCertificate(certified(&certificate, &key)));
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
        let mut response = Vec::new();
        // The server may close without a TLS close_notify; only the status line matters.
        let _ = stream.read_to_end(&mut response);
        status(&response)
    }

    /// Status and text of a response; a request with a body is a POST.
    pub(crate) fn request_text(&self, path: &str, body: &str) -> (u16, String) {
        let mut stream = self.request(path, "close", body);
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        (status(&response), String::from_utf8(response).unwrap())
    }

    /// A connection that stays open after the response to a GET.
    pub(crate) fn open(&self, path: &str) -> Stream {
        let mut stream = self.send(path, "keep-alive");
        let mut response = [0; 4096];
        let length = stream.read(&mut response).unwrap();
        assert_eq!(status(&response[..length]), 200);
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

    /// The protocol that the server selects with ALPN.
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

fn status(response: &[u8]) -> u16 {
    let response = String::from_utf8_lossy(response);
    let status = response.split(' ').nth(1).expect("a status line");
    status.parse().unwrap()
}

fn certified(certificate: &str, key: &str) -> CertifiedKey {
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(vec![certificate], key, &provider).unwrap()
}

/// Sends its certificate whatever authorities the server requests.
#[derive(Debug)]
struct FixedCertificate(CertifiedKey);

impl ResolvesClientCert for FixedCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::new(self.0.clone()))
    }

    fn has_certs(&self) -> bool {
        true
    }
}
